/*
 * CPython's own markers, in the interpreter that the process runs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NATIVE_H
#define NATIVE_H

/* The markers, as bits, that the interpreter itself fires and that a tracer probes in its file
 * right now: one event has one source, so the shim is silent for them.  The first call reads the
 * file. Called by wanted.c on any thread, without a lock, with the GIL or without it, but only
 * while the interpreter's code is sure to stay: its memory is read. */
unsigned native_enabled(void);

#endif
