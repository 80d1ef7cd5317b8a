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

/* The length of the UTF-8 character at text, 0 if it is not one: too long a form, half a surrogate
 * pair, or beyond the last. */
static size_t character_at(const unsigned char *text)
{
    size_t length = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if (text[i] >> 6 != 2)
            return 0;
    bool wrong = (*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] >= 0xa0) ||
                 (*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] >= 0x90);
    return *text < 0xf5 && !wrong ? length : 0;
}

/* Whether the character at text would be a command to a terminal: C0, DEL, and C1 in UTF-8. */
static bool is_control(const unsigned char *text)
{
    return *text < ' ' || *text == 0x7f || (*text == 0xc2 && text[1] < 0xa0);
}

char *printable(const char *text)
{
    char *result = malloc(4 * strlen(text) + 1), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    while (*at) {
        size_t length = character_at(at);
        bool escaped = !length || is_control(at);
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

char *json_string(const char *text)
{
    char *result = malloc(6 * strlen(text) + 3), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    *end++ = '"';
    while (*at) {
        size_t length = character_at(at);
        if (!length)
            end = stpcpy(end, "\\ufffd");
        else if (is_control(at))
            end += sprintf(end, "\\u%04x", length == 2 ? at[1] : at[0]);
        else {
            if (strchr("\"\\", *at))
                *end++ = '\\';
            end = mempcpy(end, at, length);
        }
        at += length ? length : 1;
    }
    strcpy(end, "\"");
    return result;
}

size_t utf8_length(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += (unsigned char)*text >> 6 != 2;
    return count;
}

char *utf8_prefix(const char *text, size_t most)
{
    size_t length = 0;
    while (text[length] && (most || (unsigned char)text[length] >> 6 == 2)) {
        most -= (unsigned char)text[length] >> 6 != 2;
        length++;
    }
    return format("%.*s", (int)length, text);
}

char *status_field(const char *text, const char *name)
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

char *shell_quoted(const char *word)
{
    char *result = malloc(4 * strlen(word) + 3), *end = result;
    if (!result)
        abort();
    *end++ = '\'';
    for (; *word; word++)
        end = *word == '\'' ? stpcpy(end, "'\\''") : (*end = *word, end + 1);
    strcpy(end, "'");
    return result;
}

char *shell_word(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=@%.,:/";
    return *word && !word[strspn(word, plain)] ? format("%s", word) : shell_quoted(word);
}
