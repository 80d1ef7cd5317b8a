/*
 * The page that the shim publishes in each 64-bit process: the version of CPython, and the offsets
 * by which the tapset reads stacks and values.  shim/cpython/offsets.c fills it in.  The tapset's
 * functions run in the kernel and may read the page in any probe, so this file includes nothing.
 *
 * A change of the struct needs a new OFFSETS_MAGIC.  The page must not hold addresses: they would
 * reveal where ASLR has put things.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_OFFSETS_PAGE_H
#define SHARED_OFFSETS_PAGE_H

/* ---------------------------------------------------------------- offsets page */

/* The first address is below all that Linux places by itself on x86-64 and aarch64 (48 bits), in a
 * range that ASan, TSan and MSan leave to programs.  The low address is for a program that uses the
 * first itself or has less address space: 39 bits with some kernels for aarch64, 38 on riscv64 with
 * Sv39.  It is below what Linux places there, too. */
#define OFFSETS_ADDRESS 0x550070790000ULL
#define OFFSETS_LOW_ADDRESS 0x2070790000ULL
#define OFFSETS_MAGIC 0x39707473 /* "stp9" */

struct offsets_page {
    uint32_t magic;
    char version[20]; /* "3.11.2"; ends with a NUL */

    uint16_t lines; /* enum line_table_format */

    /* In a free-threaded build: the bytes before the part of an object's head that all builds have;
     * else 0.  The offsets below include these bytes. */
    uint16_t ob_base_offset;

    /* Offsets in bytes in a frame: of its caller, its code object and its instruction.  A frame is
     * a PyFrameObject up to 3.10, and a _PyInterpreterFrame from 3.11 on.  The lowest bits of the
     * pointer to the code object may be flags (3.14+).  From 3.12 on CPython puts a frame of its
     * own between C and Python.  Readers must skip it: frame_owner marks it (3.12, 3.13), or it has
     * None or the like as code object (3.14+). */
    uint16_t frame_previous, frame_executable, frame_instr_ptr;
    uint16_t frame_owner;      /* a byte, see FRAME_OWNED_BY_CSTACK; 0: there is none */
    uint16_t frame_tlbc_index; /* in a free-threaded build: an int, the index for co_tlbc */
    /* In a code object: two str, an int, a bytes, the first instruction. */
    uint16_t co_filename, co_name, co_firstlineno, co_linetable, co_code_adaptive;
    uint16_t code_basicsize; /* __basicsize__ of the code type */
    /* In a code object of a free-threaded build: the address of a struct PyCodeArray.  Each thread
     * may have its own copy of the instructions.  The struct has the number of copies, then the
     * address of the first instruction of each. */
    uint16_t co_tlbc;

    /* From the thread pointer to the word with the thread's PyThreadState, NULL in a thread without
     * one.  0: unknown; then no PyThreadState can be found. */
    int32_t tstate_tls;
    /* tstate_frame is the offset of the pointer to the innermost frame.  If tstate_cframe is 0, the
     * pointer is in the PyThreadState.  Else it is in the struct to which the word at tstate_cframe
     * in the PyThreadState points. */
    uint16_t tstate_cframe, tstate_frame;

    /* In a frame: its globals, a dict; 0: unknown, as are dicts. */
    uint16_t frame_f_globals;
    /* In a dict: the address of its keys, and that of its values if they are stored apart from the
     * keys.  In the keys: the number of entries, and the first index.  The entries come after the
     * indices. */
    uint16_t ma_keys, ma_values, dk_nentries, dk_indices;
    uint16_t dk_indices_size; /* in the keys: the size of the indices, in the form of dk_format */
    uint16_t dk_format;       /* enum dict_keys_format */
    uint16_t dv_values;       /* in values stored apart: the first one */
    uint16_t dv_format;       /* enum dict_values_format */
    uint16_t dv_preheader;    /* 3.11: 1, a word before an object points to its values */
    /* In a type that a class statement made, and in a function: the qualified name, a str.  In the
     * type, the next word is ht_cached_keys: the keys that the dicts of its instances share. */
    uint16_t ht_qualname, func_qualname;
    uint16_t tuple_ob_item; /* in a tuple: the first item */

    /* In a frame: its variables, and the dict of variables that have no slot there (f_locals).
     * frame_localsplus 0: unknown, as are the offsets up to co_freevars. */
    uint16_t frame_localsplus, frame_f_locals;
    /* In a code object: the flags and the numbers of arguments, of 4 bytes each, and the names of
     * variables, a tuple.  From 3.11 on: the kinds of variables, a bytes.  Up to 3.10: the names of
     * cells and of free variables; in a frame, their slots follow those of the variables. */
    uint16_t co_flags, co_argcount, co_kwonlyargcount;
    uint16_t co_varnames, co_localspluskinds, co_cellvars, co_freevars;

    /* In a PyThreadState: its PyInterpreterState.  In a PyInterpreterState: the dict of modules.
     * tstate_interp 0: unknown, as is all that follows. */
    uint16_t tstate_interp;
    uint32_t interp_modules;

    /* The GIL is a range of gil_size bytes.  A thread that waits for the GIL sleeps by futex on a
     * word of the range.  gil_size 0: the GIL is unknown.  From 3.12 on the word at interp_gil in a
     * PyInterpreterState points to the GIL.  Up to 3.11 interp_gil is 0: the GIL is
     * gil_from_dict_type bytes from the type of the dict of modules.  Both are in CPython's
     * file. */
    uint16_t interp_gil;
    uint16_t gil_enabled; /* 1 in a free-threaded build: the GIL's first int is 0 while it is off */
    uint32_t gil_size;
    int64_t gil_from_dict_type;
    /* In the GIL: the PyThreadState that took it last; an int, 1 until that thread releases it; a
     * word, how often the GIL went to another thread.  In 3.6 gil_locked and gil_switch_number are
     * 0, and the PyThreadState is NULL while no thread holds the GIL. */
    int32_t gil_last_holder, gil_locked, gil_switch_number;

    /* From 3.14 on.  In a PyThreadState: the task that runs there, and the head of the list of
     * tasks that were made there.  In a PyInterpreterState: the head of the list of tasks whose
     * threads have ended.  0: unknown. */
    uint16_t tstate_running_task, tstate_tasks_head;
    uint32_t interp_tasks_head;

    /* From 3.15 on.  In a PyThreadState: not NULL while the thread runs code that the JIT has
     * compiled.  Then the innermost frame's instruction may be an earlier one.  0: unknown. */
    uint16_t tstate_current_executor;

    uint16_t co_qualname; /* in a code object, from 3.11 on: the qualified name, a str; else 0 */

    /* An int, not 0 while an interpreter collects garbage.  From 3.9 on it is in the
     * PyInterpreterState, in 3.7 and 3.8 gil_to_collecting bytes behind the start of the GIL.  From
     * 3.15 on a word of the PyInterpreterState is the frame in which the collection began.  0:
     * unknown, as all of them are in 3.6 and in a free-threaded build. */
    uint32_t interp_collecting, interp_collecting_frame;
    int32_t gil_to_collecting;
};

/* In the page, from this byte on: a text for stap-python list, which says what can't be read, and
 * why, and ends with a NUL; "": nothing.  Written by the process, like the rest. */
enum { OFFSETS_LACKS = 1024, OFFSETS_LACKS_SIZE = 160 };

enum { FRAME_OWNED_BY_CSTACK = 3 }; /* in frame_owner, 3.12 and 3.13 */

/* What is at dk_indices_size.  An entry is a hash, the key and the value, of eight bytes each; it
 * has no hash if the third byte of KEYS_LOG2 is not 0. */
enum dict_keys_format {
    KEYS_UNKNOWN,
    KEYS_COUNT, /* to 3.10: eight bytes, the number of indices, of 1, 2, 4 or 8 bytes as needed */
    KEYS_LOG2,  /* 3.11+: three bytes; the second one is log2 of the size of all indices in bytes */
};

/* Where a dict with values apart from its keys has the order in which the values were set. */
enum dict_values_format {
    VALUES_IN_ORDER,     /* to 3.10: they are in the order of the keys */
    VALUES_BEHIND_ORDER, /* 3.11, 3.12: in bytes before them */
    VALUES_BEFORE_ORDER, /* 3.13+: in bytes after them; their number is before them */
};

/* What frame_instr_ptr is, and where CPython describes the format of co_linetable. */
enum line_table_format {
    LINES_UNKNOWN,   /* only magic, version and ob_base_offset may be used */
    LINES_LNOTAB,    /* to 3.9: an int, in bytes; Objects/lnotab_notes.txt of 3.9 */
    LINES_LINETABLE, /* 3.10: an int, in units of two bytes; Objects/lnotab_notes.txt of 3.10 */
    LINES_LOCATIONS, /* 3.11+: the instruction's address; Objects/locations.md, InternalDocs */
};

/* ---------------------------------------------------------------- names of the shim's thread */

/* Each name is a state of the shim.  It has at most 15 characters. */
/* Active. */
#define SHIM_THREAD_NAME "python-stap"
/* Loaded into a running Python, which has not run any code since. */
#define SHIM_THREAD_NAME_NEW SHIM_THREAD_NAME "-new"
/* Active, but other tools hold all ids of sys.monitoring in an interpreter: markers of functions,
 * lines, C functions and exceptions are missing, and sums.  This is the state at attach, or while
 * a marker was last enabled; lacks_id in filter_page.h is the present state. */
#define SHIM_THREAD_NAME_NO_IDS SHIM_THREAD_NAME "-ids"
/* Active, but a thread has set a seccomp filter, so hooks stay as they are.  This is the result of
 * the last check; checks are made while a marker is enabled. */
#define SHIM_THREAD_NAME_FILTERED SHIM_THREAD_NAME "-sec"

/* Asked to detach: fires no markers, and ends when all hooks are gone. */
#define SHIM_THREAD_NAME_END SHIM_THREAD_NAME "-end"

#endif
