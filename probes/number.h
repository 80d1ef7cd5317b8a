/*
 * Decimal numbers in text, without strtol() and sscanf() (glibc.c says why).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>

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

#endif
