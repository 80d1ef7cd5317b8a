/*
 * Which free-threaded builds the shim supports: for the shim, and for stap-python.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FREE_THREADED_H
#define FREE_THREADED_H

#include "number.h"

#include <stdbool.h>
#include <string.h>

/* What is missing in the others: before 3.14.4, and before 3.15's beta releases, two threads may
 * lose or free what a third keeps with a code object (gh-144981, Objects/codeobject.c,
 * PyUnstable_Code_SetExtra). */
#define FREE_THREADING_UNSUPPORTED \
    "free-threaded builds before CPython 3.14.4 and 3.15.0b1 are not supported"

/* The same, as stap-python says it of an interpreter. */
#define FREE_THREADING_TOO_OLD "it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1"

/* Whether the shim supports the free-threaded build of this version: "3.14.7", "3.15.0rc1+", or
 * what Py_GetVersion() returns. */
static inline bool free_threading_supported(const char *version)
{
    int minor, micro;
    const char *end;
    if (strncmp(version, "3.", 2) != 0 || !number_pair(version + 2, &minor, &micro, &end))
        return false;
    if (minor == 14)
        return micro >= 4;
    bool is_alpha = minor == 15 && micro == 0 && *end == 'a';
    return minor > 14 && !is_alpha;
}

#endif
