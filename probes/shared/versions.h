/*
 * Which versions of CPython are supported, and how the number of a version is read.  The tapset
 * includes it, too.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_VERSIONS_H
#define SHARED_VERSIONS_H

#ifndef __KERNEL__
#include <stdbool.h>
#include <string.h>
#endif

/* ---------------------------------------------------------------- number */

/* Decimal numbers in text, without strtol() and sscanf() (os/glibc.c says why). */

/* The number of up to nine digits at the start of text, behind blanks and tabs; -1: there is none.
 * end: if not NULL, gets what is behind it. */
static inline int number_at(const char *text, const char **end)
{
    int number = -1;
    while (*text == ' ' || *text == '\t')
        text++;
    for (int i = 0; i < 9 && *text >= '0' && *text <= '9'; i++, text++)
        number = (number < 0 ? 0 : number) * 10 + (*text - '0');
    if (end)
        *end = text;
    return number;
}

/* The two numbers of a version, "6.18"; false: it has not two. */
static inline bool number_pair(const char *text, int *first, int *second, const char **end)
{
    *first = number_at(text, &text);
    *second = *first >= 0 && *text == '.' ? number_at(text + 1, &text) : -1;
    if (end)
        *end = text;
    return *second >= 0;
}

/* ---------------------------------------------------------------- versions */

/* The shim is off in an older CPython.  In a newer one it gives all markers for which CPython's
 * public functions suffice, or whose structs prove right; but no page for stack traces. */
enum {
    CPYTHON_OLDEST_MINOR = 6,
    CPYTHON_NEWEST_MINOR = 15,
    /* The newer one that stap-python and the tapset look for, too. */
    CPYTHON_NEXT_MINOR = CPYTHON_NEWEST_MINOR + 1
};

/* ---------------------------------------------------------------- free threaded */

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
