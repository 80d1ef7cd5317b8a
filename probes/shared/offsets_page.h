/*
 * The page that the shim publishes in each 64-bit process, at one of two addresses that are the
 * same everywhere: which CPython this is, and where its frames have what a stack trace needs.
 * layout.c fills it in; tapset/generate/include.awk puts this file into the tapset, whose functions
 * run in the kernel and read the page in whatever probe they are called.  So it includes nothing,
 * and a change of what is in it is a new OFFSETS_MAGIC.
 *
 * It holds no addresses, which would tell where ASLR has put things.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_OFFSETS_PAGE_H
#define SHARED_OFFSETS_PAGE_H

/* ---------------------------------------------------------------- layout page */

/* Below all that Linux on x86-64 and aarch64 (48 bits) places itself, and where ASan, TSan and MSan
 * leave programs their memory.  The second is for a process that can't have the first: as programs
 * have less room (39 bits with some kernels for aarch64, 38 on riscv64 with Sv39), and it, too, is
 * below what Linux places there, or as the program uses the first itself. */
#define OFFSETS_ADDRESS 0x550070790000ULL
#define OFFSETS_LOW_ADDRESS 0x2070790000ULL
#define OFFSETS_MAGIC 0x37707473 /* "stp7" */

struct offsets_page {
    uint32_t magic;
    char version[20]; /* "3.11.2"; ends with a NUL */

    /* How the line of an instruction is found, and with it what FRAME_INSTRUCTION is. */
    uint16_t lines;

    /* In a free-threaded build so many bytes are before what other builds have at the start of
     * every object, and 0 elsewhere; the offsets below count from before them. */
    uint16_t ob_base_offset;

    /* Offsets in bytes.  In a frame, which is a PyFrameObject up to 3.10, and from 3.11 on a
     * _PyInterpreterFrame: as markers pass them.  The code may have its lowest bits set (3.14).
     * Frames between C and Python are to be passed over: None or the like in place of code (3.14+),
     * or a byte that says so. */
    uint16_t frame_previous, frame_executable, frame_instr_ptr;
    uint16_t frame_owner;      /* of that byte; 0 where there is none */
    uint16_t frame_tlbc_index; /* in a free-threaded build: an int, see code_copies */
    /* In a code object: two str, an int, a bytes, the first instruction. */
    uint16_t co_filename, co_name, co_firstlineno, co_linetable, co_code_adaptive;
    uint16_t code_basicsize; /* its type's __basicsize__ */
    /* In a free-threaded build each thread may have a copy of the instructions of its own.  Here is
     * the address of their table: how many there are, a word, and the first instruction of each. */
    uint16_t co_tlbc;

    /* From the thread pointer to the thread's PyThreadState, which is NULL in a thread that has
     * none; 0: not known, nor are the rest. */
    int32_t tstate_tls;
    /* In a PyThreadState: the innermost frame; if thread_cframe is not 0, it is at thread_frame in
     * what that points to. */
    uint16_t tstate_cframe, tstate_frame;

    /* In a frame: its globals, a dict; 0: not known, nor are dicts. */
    uint16_t frame_f_globals;
    /* In a dict: its keys, and values that are apart from them.  In these keys: how many entries
     * there are, and the indices, behind which the entries are. */
    uint16_t ma_keys, ma_values, dk_nentries, dk_indices;
    uint16_t dk_indices_size; /* of the indices: see keys_form */
    uint16_t dk_format;
    /* In values that are apart: the first of them. */
    uint16_t dv_values;
    uint16_t dv_format;
    uint16_t dv_preheader; /* 3.11: an object's values have a word of their own before it */
    /* In a type that a class statement made, and in a function: the qualified name, a str.  Behind
     * that of a type are the keys of its instances. */
    uint16_t ht_qualname, func_qualname;
    uint16_t tuple_ob_item; /* in a tuple: the first item */

    /* In a frame: its variables, and the dict of those that have no place there (f_locals); 0: not
     * known, nor is the rest. */
    uint16_t frame_localsplus, frame_f_locals;
    /* In a code object: flags, and how many arguments, of 4 bytes each; the names of variables, a
     * tuple; from 3.11 on their kinds, a bytes; before the names of cells and of free variables,
     * whose places are behind. */
    uint16_t co_flags, co_argcount, co_kwonlyargcount;
    uint16_t co_varnames, co_localspluskinds, co_cellvars, co_freevars;

    /* In a PyThreadState: its PyInterpreterState; and in that the dict of modules; 0: not known,
     * nor is the rest. */
    uint16_t tstate_interp;
    uint32_t interp_modules;

    /* The GIL: where its waiters sleep, by futex, is in gil_size bytes; 0: not known.  A
     * PyInterpreterState points to them at interpreter_gil; up to 3.11 that is 0: they are at
     * gil_distance from the type of the dict of modules, both of them in CPython's file. */
    uint16_t interp_gil;
    uint16_t gil_enabled; /* in a free-threaded build, where its first int is 0 while it's off */
    uint32_t gil_size;
    int64_t gil_from_dict_type;
    /* In it: the PyThreadState that took it last; an int that is 1 until that gives it up; and how
     * often another one took it, a word.  In 3.6 the last two are 0, and the first is NULL while
     * none has taken it. */
    int32_t gil_last_holder, gil_locked, gil_switch_number;
};

enum { FRAME_OWNED_BY_CSTACK = 3 }; /* FRAME_OWNED_BY_CSTACK, 3.12 and 3.13 */

/* An entry is a hash, the key and the value, of eight bytes each; without the hash where the third
 * byte of KEYS_LOG2 is not 0. */
enum dict_keys_format {
    KEYS_UNKNOWN,
    KEYS_COUNT, /* to 3.10: eight bytes: how many indices, of 1, 2, 4 or 8 bytes as they need */
    KEYS_LOG2,  /* 3.11+: three bytes; the second one is log2 of the size of all in bytes */
};

enum dict_values_format {
    VALUES_IN_ORDER,     /* to 3.10: as the keys */
    VALUES_BEHIND_ORDER, /* 3.11, 3.12: bytes before them say in which order they were set */
    VALUES_BEFORE_ORDER, /* 3.13+: bytes behind them do, and two before them how many */
};

enum line_table_format {
    LINES_UNKNOWN,   /* nothing but magic and version is filled in */
    LINES_LNOTAB,    /* to 3.9: int, in bytes; Objects/lnotab_notes.txt of 3.9 */
    LINES_LINETABLE, /* 3.10: int, in units of two bytes; Objects/lnotab_notes.txt of 3.10 */
    LINES_LOCATIONS, /* 3.11+: the instruction's address; Objects/locations.md, InternalDocs */
};

/* ---------------------------------------------------------------- names */

/* At most 15 characters each. */
/* - Active; */
#define SHIM_THREAD_NAME "python-stap"
/* - loaded into a running Python, which has not run any code since; */
#define SHIM_THREAD_NAME_NEW SHIM_THREAD_NAME "-new"
/* - active, but in an interpreter of the process all ids of sys.monitoring are taken by others, so
 *   that there are no markers of functions, lines, C functions and exceptions, and no sums.  As it
 *   was at attach, or while a marker was last wanted: filter_page.h has what is so now; */
#define SHIM_THREAD_NAME_NO_IDS SHIM_THREAD_NAME "-ids"
/* - active, but a thread has set a seccomp filter, so that hooks stay as they are.  Known from the
 *   last look, while a marker is wanted. */
#define SHIM_THREAD_NAME_FILTERED SHIM_THREAD_NAME "-sec"

/* - Asked to detach: it fires nothing any more, and ends when all hooks are gone. */
#define SHIM_THREAD_NAME_END SHIM_THREAD_NAME "-end"

#endif
