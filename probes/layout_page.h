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
#define LAYOUT_MAGIC 0x32707473 /* "stp2" */

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
};

enum { LAYOUT_OWNED_BY_C = 3 }; /* FRAME_OWNED_BY_CSTACK, 3.12 and 3.13 */

enum layout_lines {
    LINES_UNKNOWN,   /* nothing but magic and version is filled in */
    LINES_LNOTAB,    /* to 3.9: int, in bytes; Objects/lnotab_notes.txt of 3.9 */
    LINES_LINETABLE, /* 3.10: int, in units of two bytes; Objects/lnotab_notes.txt of 3.10 */
    LINES_LOCATIONS, /* 3.11+: the instruction's address; Objects/locations.md, InternalDocs */
};
