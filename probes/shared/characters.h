/*
 * Characters of UTF-8, and which of them are escaped in what is printed: for the launcher, and for
 * the tapset.  The tapset's code runs in the kernel, so this file includes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_CHARACTERS_H
#define SHARED_CHARACTERS_H

/* The length of the UTF-8 character with which a text begins, and its number in *c.  0, and the
 * first byte in *c: the bytes are invalid, overlong, a surrogate, or above U+10FFFF.  The text ends
 * with a NUL. */
static inline int utf8_character(const char *text, unsigned *c)
{
    unsigned first = (unsigned char)*text, number;
    int length = first < 0x80   ? 1
                 : first < 0xc2 ? 0
                 : first < 0xe0 ? 2
                 : first < 0xf0 ? 3
                 : first < 0xf5 ? 4
                                : 0,
        i;
    *c = first;
    if (length < 2)
        return length;
    number = first & 0x7f >> length;
    for (i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        number = number << 6 | (text[i] & 0x3f);
    }
    if ((length == 3 && (number < 0x800 || (number >= 0xd800 && number < 0xe000))) ||
        (length == 4 && (number < 0x10000 || number > 0x10ffff)))
        return 0;
    *c = number;
    return length;
}

/* Whether a terminal could take the character for a command (C0, DEL, C1), or it ends a line or
 * changes the direction of the text beside it (Unicode's Bidi_Control). */
static inline int is_control_character(unsigned c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

#endif
