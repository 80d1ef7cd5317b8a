/*
 * Tries python_str_state() of the tapset on the bit fields of a str of a free-threaded CPython, as
 * this architecture's compiler lays them out: for those of which there is no such CPython to try it
 * on.  Prints "the same".
 *
 * SPDX-License-Identifier: MIT
 */
#include "library.c"

/* Include/cpython/unicodeobject.h of 3.14, with Py_GIL_DISABLED and without. */
struct free_threaded {
    unsigned char interned;
    unsigned kind : 3, compact : 1, ascii : 1, statically_allocated : 1;
};
struct with_gil {
    unsigned interned : 2, kind : 3, compact : 1, ascii : 1, statically_allocated : 1, : 24;
};

int main(void)
{
    for (unsigned i = 0; i < 3 * 4; i++) {
        struct free_threaded one = {3, 1u << i / 4, i & 1, i >> 1 & 1, 1};
        struct with_gil other = {3, 1u << i / 4, i & 1, i >> 1 & 1, 1};
        u32 state, expected,
            mask = UNICODE_KIND_MASK << UNICODE_KIND_SHIFT | UNICODE_COMPACT | UNICODE_ASCII;
        memcpy(&state, &one, sizeof state);
        memcpy(&expected, &other, sizeof expected);
        if ((python_str_state(state) & mask) != (expected & mask)) {
            printf("%08x of %08x, not %08x\n", python_str_state(state) & mask, state,
                   expected & mask);
            return 1;
        }
    }
    puts("the same");
    return 0;
}
