/*
 * bpftrace with the command of -c (bpftrace_command.c), for bpftrace.c, which has all other ways to
 * run it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_SCRIPT_BPFTRACE_H
#define STAP_PYTHON_SCRIPT_BPFTRACE_H

/* bpftrace's command line for a script's text.  pid: of the process to trace, or "0" for all
 * Pythons; rest: the script's own arguments; end with NULL. */
char **bpftrace_command(const char *text, const char *pid, char **rest);

/* Runs bpftrace on the script's text while the command runs, which has the shim and, unless it is
 * NULL, the pattern.  rest: the script's own arguments; end with NULL.  Returns bpftrace's exit
 * status. */
int trace_command(const char *text, const char *command, const char *pattern, char **rest);

#endif
