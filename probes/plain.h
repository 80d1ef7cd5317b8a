/*
 * Text of others on a terminal: of a file, of a process, of a command line.  For the programs that
 * print it; the shim prints none.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PLAIN_H
#define PLAIN_H

#include <string.h>

/* Puts a ? in the place of each character that a terminal takes for a command (C0, DEL, and C1 as
 * UTF-8 has it), but for those that are kept. */
static inline char *plain(char *text, const char *kept)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            c[0] = c[1] = '?';
        else if ((c[0] < 0x20 || c[0] == 0x7f) && !strchr(kept, c[0]))
            c[0] = '?';
    return text;
}

#endif
