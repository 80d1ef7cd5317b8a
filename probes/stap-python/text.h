/*
 * Strings: formatting, what is safe to print, and lines "Name: value".
 *
 * stap-python runs once and ends: here and in its other files, what is allocated is never freed,
 * and a function whose text does not fit into memory aborts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

/* The text of a printf() format and its values. */
char *format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A copy of text in which control characters, and bytes that are not UTF-8, are \xNN: text from
 * others must not reach a terminal as commands. */
char *printable(const char *text);

/* text as a string of JSON, in its quotes; bytes that are not UTF-8 become U+FFFD. */
char *json_string(const char *text);

/* How many characters text has, which is UTF-8. */
size_t utf8_length(const char *text);

/* A copy of the first characters of text, which is UTF-8: at most that many. */
char *utf8_prefix(const char *text, size_t most);

/* The value of the line "name: value" in text (/proc/PID/status and the like), without the blanks
 * before it; NULL if text is NULL or has no such line. */
char *status_field(const char *text, const char *name);

/* The word in single quotes, for a shell. */
char *shell_quoted(const char *word);

/* The same, in quotes only if it needs them. */
char *shell_word(const char *word);

#endif
