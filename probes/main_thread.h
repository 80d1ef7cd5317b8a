/*
 * The main thread's end.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MAIN_THREAD_H
#define MAIN_THREAD_H

#include <stdbool.h>

/* Keeps the calling thread, if it is the main one.  Called by setup.c and the watcher's start; no
 * lock, no GIL. */
void main_thread_remember(void);

/* The main thread may end alone, by pthread_exit(); then the process ends with the last of the
 * others, which must not be ours.  True: it has ended, and the calling thread is the last.  False
 * while the main thread is not known.  Called by the watcher, on its own thread, no GIL; it makes
 * system calls only once the main thread has ended. */
bool is_last_thread(void);

#endif
