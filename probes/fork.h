/*
 * Forks: the watcher ends before them, and starts again in the parent and in the child.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORK_H
#define FORK_H

#include <stdbool.h>

/* Whether this process has the C library that the shim is made for, which is glibc.  Called by the
 * loader, as soon as it has found CPython; no GIL. */
bool fork_supported(void);

/* Has the C library call us at each fork of the process.  Called by setup.c before any watcher
 * starts, with the GIL or without; called again it does nothing. */
bool fork_register_libc(void);

/* The same for CPython, 3.7 and later, in the calling interpreter.  Called by setup.c; GIL held. */
bool fork_register_python(void);

#endif
