/*
 * Text, error lines, and time.
 *
 * stap-python has one thread.  It runs once and ends, so its files need not free memory.  A
 * function whose text does not fit into memory aborts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIB_UTIL_H
#define LIB_UTIL_H

#include <stdbool.h>
#include <stddef.h>

/* ---------------------------------------------------------------- text */

/* printf() into a new string. */
char *format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A copy in which control characters, those that change the direction of text, and bytes that are
 * not UTF-8, are \xNN.  Text of another program must not reach a terminal unchanged: it may contain
 * the terminal's commands. */
char *printable(const char *text);

/* text as a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD. */
char *json_string(const char *text);

/* text for XML and HTML, between tags or in quotes: what XML does not allow becomes U+FFFD. */
char *xml_text(const char *text);

bool ends_with(const char *text, const char *end);

/* The text with every old replaced by new. */
char *replaced(const char *text, const char *old, const char *new);

/* The number of characters in a UTF-8 text. */
size_t utf8_length(const char *text);

/* A copy of the first characters of a UTF-8 text, at most this many. */
char *utf8_prefix(const char *text, size_t most);

/* The value in the line "name: value" of text (of /proc/PID/status, for example), without the
 * blanks before it; NULL if text is NULL or has no such line. */
char *status_field(const char *text, const char *name);

/* The word in single quotes, for a shell. */
char *shell_quoted(const char *word);

/* The word for a shell, in quotes only if it needs them. */
char *shell_word(const char *word);

/* A list of texts, {0} at first; with an entry or more, all ends with NULL. */
struct texts {
    char **all;
    size_t count;
};

/* Appends text itself, not a copy: the text must stay, and must not be written to. */
void texts_add(struct texts *texts, const char *text);

void texts_add_two(struct texts *texts, const char *first, const char *second);

/* ---------------------------------------------------------------- command */

/* Exit statuses: failure; usage error. */
enum { FAILED = 1, USAGE = 2 };

/* Prints "stap-python: " and the printf() text, made printable, as one line on stderr.  Prints
 * nothing if stdout could not be written: finish() reports that error. */
void warn(const char *text, ...) __attribute__((format(printf, 1, 2)));

/* Prints the line in any case, and exits with this status. */
void die(int status, const char *text, ...) __attribute__((format(printf, 2, 3), noreturn));

/* Exits with this status, or with FAILED and an error line if stdout could not be written. */
void finish(int status) __attribute__((noreturn));

/* If the first of the arguments (NULL-terminated) is --help or -h, prints usage and exits with 0.
 */
void help_if_asked(char **arguments, const char *usage);

/* ---------------------------------------------------------------- clock */

/* CLOCK_MONOTONIC, in milliseconds. */
long long monotonic_ms(void);

/* Sleeps for ms milliseconds; a signal may end the sleep early. */
void sleep_ms(long ms);

#endif
