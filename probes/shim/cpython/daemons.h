/*
 * Daemon threads that outlive their interpreter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_DAEMONS_H
#define CPYTHON_DAEMONS_H

#include "cpython/symbols.h"

/* Called by core/loader.c, as a function of atexit, GIL held: later CPython no longer has the
 * states of its other threads. */
void daemons_at_exit(void);

/* Called by hooks/arm.c while the main interpreter is cleared, GIL held.  Keeps CPython from
 * freeing the interpreter's memory if daemon threads may still use it. */
void daemons_keep_memory(PyInterpreterState *state);

#endif
