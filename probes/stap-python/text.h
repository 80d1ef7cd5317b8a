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

/* The text of a printf() format and its values. */
char *format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A copy of text in which control characters, and bytes that are not UTF-8, are \xNN: text from
 * others must not reach a terminal as commands. */
char *printable(const char *text);

/* The value of the line "name: value" in text (/proc/PID/status and the like), without the blanks
 * before it; NULL if text is NULL or has no such line. */
char *field_of(const char *text, const char *name);

#endif
