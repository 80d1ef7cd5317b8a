/*
 * Strings: formatting, what is safe to print, and lines "Name: value".
 *
 * stap-python runs once and ends: here and in its other files, what is allocated is never freed,
 * and a function whose text does not fit into memory aborts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIB_UTIL_H
#define LIB_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---------------------------------------------------------------- text */

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

/* ---------------------------------------------------------------- command */

/*
 * What every subcommand needs: its exit statuses, the error line, and --help.
 */

/* Exit statuses: it can't be done; usage error. */
enum { FAILED = 1, USAGE = 2 };

/* Prints one line on stderr: "stap-python: " and the printf() text, made printable.  Nothing if
 * stdout could not be written. */
void warn(const char *text, ...) __attribute__((format(printf, 1, 2)));

/* Prints such a line in any case, and exits with this status. */
void die(int status, const char *text, ...) __attribute__((format(printf, 2, 3), noreturn));

/* Exits with this status, or with FAILED and an error line if stdout could not be written. */
void finish(int status) __attribute__((noreturn));

/* Prints usage and exits with 0 if the first of the arguments, which end with NULL, is --help or
 * -h. */
void help_if_asked(char **arguments, const char *usage);

/* ---------------------------------------------------------------- clock */

/*
 * Time in milliseconds.
 */

/* The time on a clock that is never set back. */
long long monotonic_ms(void);

/* Sleeps so long; a signal may end that early. */
void sleep_ms(long ms);

/* ---------------------------------------------------------------- program */

/*
 * Finding and running programs.
 */

/* The file that a shell would run for word, a path or a name in PATH; NULL if there is none. */
char *program_in_path(const char *word);

/* Whether this process's child has ended; it still is to be waited for. */
bool child_has_ended(pid_t pid);

/* Runs a program and returns the first 64 KB of its stdout and stderr as a string.  arguments: its
 * name or path, its arguments, NULL.  After so many seconds it is ended, with its process group.
 * *status is that of waitpid(); -1 if the program took too long or could not be started. */
char *run_and_capture(const char *const *arguments, int seconds, int *status);

/* Replaces this process by a program (command: its name or path, its arguments, NULL); exits with
 * an error line and, as env does, 127 if there is no such program, 126 if it can't be started. */
void exec_program(char **command) __attribute__((noreturn));

#endif
