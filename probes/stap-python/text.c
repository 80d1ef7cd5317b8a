/*
 * See text.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *format(const char *text, ...)
{
    char *result;
    va_list values;
    va_start(values, text);
    if (vasprintf(&result, text, values) < 0)
        abort();
    va_end(values);
    return result;
}

/* The length of the UTF-8 character at text, 0 if it is not one. */
static size_t character_at(const unsigned char *text)
{
    size_t length = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if (text[i] >> 6 != 2)
            return 0;
    return *text < 0xf5 ? length : 0;
}

char *printable(const char *text)
{
    char *result = malloc(4 * strlen(text) + 1), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    while (*at) {
        size_t length = character_at(at);
        /* C0, DEL, and C1 in UTF-8 */
        bool escaped = !length || *at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0);
        length = length ? length : 1;
        if (escaped)
            for (size_t i = 0; i < length; i++)
                end += sprintf(end, "\\x%02x", at[i]);
        else
            end = mempcpy(end, at, length);
        at += length;
    }
    *end = '\0';
    return result;
}

char *field_of(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line && *line; line += strspn(line, "\n")) {
        if (strncmp(line, name, length) != 0 || line[length] != ':') {
            line += strcspn(line, "\n");
            continue;
        }
        line += length + 1;
        line += strspn(line, " \t");
        return strndup(line, strcspn(line, "\n"));
    }
    return NULL;
}
