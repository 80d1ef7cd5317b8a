/*
 * What every subcommand needs: its exit statuses, the error line, and --help.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef COMMAND_H
#define COMMAND_H

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

#endif
