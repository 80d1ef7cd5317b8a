/*
 * Filters of system calls (seccomp).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SECCOMP_H
#define SECCOMP_H

#include <stdbool.h>

/* Whether a thread of the program has a filter that the calling thread does not have.  Called by
 * the watcher, on its own thread, without the GIL; it makes system calls. */
bool any_thread_has_seccomp(void);

/* A number that is greater for more filters, of the calling thread; never 0.  It makes system
 * calls.
 */
long seccomp_own(void);

#endif
