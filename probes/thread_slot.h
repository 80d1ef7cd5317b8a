/*
 * Where a thread has its PyThreadState: at the same distance from the thread pointer in each.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef THREAD_SLOT_H
#define THREAD_SLOT_H

#include "cpython.h"

/* Finds CPython's thread-local variables.  Once, under the dynamic linker's lock, which no thread
 * may wait for that has the GIL. */
void tls_slot_init(void);

/* The distance in bytes from the thread pointer to the word that PyGILState_GetThisThreadState()
 * returns: the calling thread's state, NULL in a thread that has none.  It stays while the thread
 * is without the GIL.  0: not found; *why says why.  GIL held, in a thread that has
 * one. */
int32_t tls_slot_find(const char **why);

#endif
