/*
 * Functions that older versions of glibc have in libraries other than libc.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OS_GLIBC_H
#define OS_GLIBC_H

#include <stdbool.h>

/* With glibc up to 2.33 a program may lack it. */
#pragma weak dlsym

/* Finds these functions in the process, once.  False: the process lacks the functions of threads,
 * which a CPython needs, so it is none; only dlsym(), dlopen(), dladdr() and dladdr1() may be
 * called then.  Called under ld.so's lock, or with the GIL. */
bool glibc_find(void);

#endif
