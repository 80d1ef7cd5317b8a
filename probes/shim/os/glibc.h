/*
 * The functions that older versions of glibc have in other libraries.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OS_GLIBC_H
#define OS_GLIBC_H

#include <stdbool.h>

/* Up to 2.33 a program may lack it. */
#pragma weak dlsym

/* Looks for them in this process, unless they are found; false: it has none of the threads that a
 * CPython needs, so it is none, and only dlsym(), dlopen() and dladdr() may be called.  Under
 * ld.so's lock, or with the GIL. */
bool glibc_find(void);

#endif
