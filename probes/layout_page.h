/*
 * The page that the shim publishes in each process, at an address that is the same everywhere:
 * which CPython this is, and where its frames have what a stack trace needs.  layout.c fills it in;
 * tapset/generate/include.awk puts this file into the tapset, whose functions run in the kernel and
 * read the page in whatever probe they are called.  So it includes nothing, and a change of what is
 * in it is a new LAYOUT_MAGIC.
 *
 * It holds no addresses, which would tell where ASLR has put things.
 *
 * SPDX-License-Identifier: MIT
 */

/* Below all that Linux on x86-64 and aarch64 (48 bits) places itself, and where ASan, TSan and MSan
 * leave programs their memory. */
#define LAYOUT_ADDRESS 0x550070790000UL
#define LAYOUT_MAGIC 0x33707473 /* "stp3" */

struct layout_page {
    uint32_t magic;
    char version[20]; /* "3.11.2"; ends with a NUL */

    /* How the line of an instruction is found, and with it what FRAME_INSTRUCTION is. */
    uint16_t lines;

    /* Offsets in bytes.  In a PyFrameObject: where it points to the frame that the rest is about; 0
     * if it is that itself. */
    uint16_t object_frame;
    /* In a frame.  The code may have its lowest bits set (3.14).  Frames between C and Python are
     * to be passed over: None or the like in place of code (3.14+), or a byte that says so. */
    uint16_t frame_back, frame_code, frame_instruction;
    uint16_t frame_owner; /* of that byte; 0 where there is none */
    /* In a code object: two str, an int, a bytes, the first instruction. */
    uint16_t code_filename, code_name, code_first_line, code_lines, code_instructions;
    uint16_t code_size; /* its type's __basicsize__ */

    /* From the thread pointer to the thread's PyThreadState, which is NULL in a thread that has
     * none; 0: not known, nor are the rest. */
    int32_t thread_slot;
    /* In a PyThreadState: the innermost frame; if thread_cframe is not 0, it is at thread_frame in
     * what that points to. */
    uint16_t thread_cframe, thread_frame;

    /* In a frame: its globals, a dict; 0: not known, nor are dicts. */
    uint16_t frame_globals;
    /* In a dict: its keys, and values that are apart from them.  In these keys: how many entries
     * there are, and the indices, behind which the entries are. */
    uint16_t dict_keys, dict_values, keys_count, keys_indices;
    uint16_t keys_size; /* of the indices: see keys_form */
    uint16_t keys_form;
};

enum { LAYOUT_OWNED_BY_C = 3 }; /* FRAME_OWNED_BY_CSTACK, 3.12 and 3.13 */

/* An entry is a hash, the key and the value, of eight bytes each; without the hash where the third
 * byte of KEYS_LOG2 is not 0. */
enum layout_keys {
    KEYS_UNKNOWN,
    KEYS_COUNT, /* to 3.10: eight bytes: how many indices, of 1, 2, 4 or 8 bytes as they need */
    KEYS_LOG2,  /* 3.11+: three bytes; the second one is log2 of the size of all in bytes */
};

enum layout_lines {
    LINES_UNKNOWN,   /* nothing but magic and version is filled in */
    LINES_LNOTAB,    /* to 3.9: int, in bytes; Objects/lnotab_notes.txt of 3.9 */
    LINES_LINETABLE, /* 3.10: int, in units of two bytes; Objects/lnotab_notes.txt of 3.10 */
    LINES_LOCATIONS, /* 3.11+: the instruction's address; Objects/locations.md, InternalDocs */
};
