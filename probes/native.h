/*
 * CPython's own markers, in the interpreter that the process runs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NATIVE_H
#define NATIVE_H

/* The markers, as bits, that the interpreter itself fires and that the tapset probes in its file:
 * the shim stays silent for them.  Any thread, no GIL; it reads the interpreter's ELF file, and
 * gives 0 where it can't. */
unsigned native_markers(void);

#endif
