/*
 * Daemon threads that outlive their interpreter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_DAEMONS_H
#define CPYTHON_DAEMONS_H

#include "cpython/symbols.h"

/* Called by setup.c, as a function of atexit, GIL held: later CPython no longer knows its other
 * threads. */
void daemons_at_exit(void);

/* Called by arm.c while the main interpreter is cleared, GIL held.  If CPython would free the
 * interpreter's memory while daemon threads may still use it, the memory is kept. */
void daemons_keep_memory(PyInterpreterState *state);

#endif
