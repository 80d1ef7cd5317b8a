/*
 * Daemon threads that outlive their interpreter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DAEMONS_H
#define DAEMONS_H

#include "cpython.h"

/* Called among the functions of atexit, GIL held: later CPython knows its other threads no more. */
void daemons_at_exit(void);

/* Called while the main interpreter is cleared, GIL held: where CPython would free its memory
 * though daemon threads may still use it, it stays. */
void daemons_keep_memory(PyInterpreterState *state);

#endif
