/*
 * What the shim does and why it doesn't, said on stderr where PYTHON_STAP_DEBUG is set.  A program
 * that merely has the shim loaded never sees it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DEBUG_H
#define DEBUG_H

#include <stdbool.h>

extern bool debug_on;

/* Any thread, no GIL.  One line, without its newline. */
__attribute__((format(printf, 1, 2))) void debug_log(const char *format, ...);

#endif
