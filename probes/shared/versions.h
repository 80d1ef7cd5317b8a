/*
 * The supported versions of CPython, and how version numbers are read from text.  The tapset
 * includes this file, too.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_VERSIONS_H
#define SHARED_VERSIONS_H

#ifndef __KERNEL__
#include <stdbool.h>
#include <string.h>
#endif

/* ---------------------------------------------------------------- numbers in text */

/* These two replace strtol() and sscanf(), for the reason in shim/os/glibc.c. */

/* The decimal number of up to nine digits at the start of text, after blanks and tabs; -1: none.
 * *end, if end is not NULL, is the text after it. */
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

/* The two numbers of a version such as "6.18"; false: text does not begin with two.  end: as in
 * number_at(). */
static inline bool number_pair(const char *text, int *first, int *second, const char **end)
{
    *first = number_at(text, &text);
    *second = *first >= 0 && *text == '.' ? number_at(text + 1, &text) : -1;
    if (end)
        *end = text;
    return *second >= 0;
}

/* ---------------------------------------------------------------- supported versions */

/* In an older CPython the shim does nothing.  In a newer one it has no stack traces.  It fires
 * markers there that need only CPython's public functions, or structs that compare as expected. */
enum {
    CPYTHON_OLDEST_MINOR = 6,
    CPYTHON_NEWEST_MINOR = 15,
    /* stap-python and the tapset also search for files of this version. */
    CPYTHON_NEXT_MINOR = CPYTHON_NEWEST_MINOR + 1
};

/* ---------------------------------------------------------------- free-threaded builds */

/* In older free-threaded builds, threads that set co_extra data at once may lose or free the data
 * of another one (gh-144981, Objects/codeobject.c: PyUnstable_Code_SetExtra()). */
#define FREE_THREADING_UNSUPPORTED \
    "free-threaded builds before CPython 3.14.4 and 3.15.0b1 are not supported"

/* The same for stap-python's messages about an interpreter. */
#define FREE_THREADING_TOO_OLD "it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1"

/* version: as in "3.14.7" or "3.15.0rc1+", or the result of Py_GetVersion(). */
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
