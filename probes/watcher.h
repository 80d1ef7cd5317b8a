/*
 * The watcher: a thread that looks at the semaphores twenty times a second, and arms or disarms
 * when a tracer has come or gone.  It is there while Python runs, and away while Python forks: from
 * 3.12 on CPython warns of a fork with threads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WATCHER_H
#define WATCHER_H

#include <stdbool.h>

/* The thread's name, by which stap-python knows that the shim is active. */
#define WATCHER_NAME "python-stap"

/* Whether this process has the C library that the watcher is made for, which is glibc. */
bool watcher_fits(void);

/* Starts watching in the main interpreter, and sees to it that atexit ends it.  GIL held; an
 * exception in flight stays.  Called again it does nothing. */
void watcher_setup(void);

/* The same where CPython runs already: has attach() called soon, with the GIL of the main
 * interpreter, which is to call watcher_setup().  Any thread, no GIL. */
void watcher_attach(void (*attach)(void));

#endif
