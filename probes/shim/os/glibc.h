/*
 * Functions that older versions of glibc have in libraries other than libc.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OS_GLIBC_H
#define OS_GLIBC_H

#include <stdbool.h>

/* Weak: with glibc up to 2.33 a program without libdl lacks dlsym(). */
#pragma weak dlsym

/* Finds these functions in the process, once.  False: the process has no functions of threads, so
 * it does not run CPython.  Then only dlsym(), dlopen(), dladdr() and dladdr1() may be called.
 * Called under ld.so's lock, or with the GIL. */
bool glibc_find(void);

#endif
