/*
 * Messages on stderr about what the shim does, and why it does not, if PYTHON_STAP_DEBUG is set.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DEBUG_H
#define DEBUG_H

#include <stdbool.h>

/* PYTHON_STAP_DEBUG is set.  Written by the loader. */
extern bool debug_on;

/* One line, without its newline.  Called from everywhere, on any thread, with the GIL or without;
 * errno stays. */
__attribute__((format(printf, 1, 2))) void debug_log(const char *format, ...);

#endif
