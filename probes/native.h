/*
 * CPython's own markers, in the interpreter that the process runs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NATIVE_H
#define NATIVE_H

/* The markers, as bits, that the interpreter itself fires and that somebody probes in its file
 * right now: one event has one source, so the shim is silent for them.  The first call reads the
 * file.  Any thread, no GIL, but no longer than the interpreter's code is sure to be there: its
 * memory is read. */
unsigned native_probed(void);

#endif
