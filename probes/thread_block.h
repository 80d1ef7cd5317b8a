/*
 * Memory that a thread keeps until it ends: tally.c has the open calls of each there.  All of it is
 * listed, so that the child of a fork can use again what was of the threads that are not there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef THREAD_BLOCK_H
#define THREAD_BLOCK_H

#include <stddef.h>

/* The calling thread's memory, made twice as large, or its first one (NULL), of at least *size
 * bytes; *size becomes what it has.  NULL: memory ran out, and its own stays as it is.  With or
 * without the GIL; nothing waits under its lock but for malloc(). */
void *thread_block_grow(void *own, size_t *size);

/* At the thread's end, without the GIL. */
void thread_block_free(void *own);

/* In the child of a fork, in which no other thread is; own may be NULL. */
void thread_blocks_after_fork(void *own);

#endif
