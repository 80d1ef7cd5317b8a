/*
 * Finding and running programs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

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
