/*
 * How a process was started, by /proc: its words, its environment, and what follows from these.
 *
 * A program may overwrite both; what is not known then is NULL.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STARTED_H
#define STARTED_H

#include <stdbool.h>
#include <sys/types.h>

#include "process.h"

/* The strings of /proc/PID/name ("cmdline", "environ"), of its first MB, and NULL behind the last;
 * none if it can't be read. */
char **proc_strings(pid_t pid, const char *name);

/* The command line, its words with a blank between them; "" if there is none. */
char *proc_command_line(pid_t pid);

/* The value of that variable of its environment as it was at the start; NULL: it was not set, or
 * can't be read. */
char *proc_environ(pid_t pid, const char *name);

/* Whether its environment is as it was at the start; else the program has written a title over it
 * or a part of it, and a variable that is not there may have been set. */
bool started_environment_is_whole(pid_t pid);

/* The title that the program has written over its command line, as servers do (setproctitle); NULL:
 * that is as it was at the start, as far as can be told. */
char *started_title(const struct process *process);

/* The script that Python was to run, by its absolute path in the process's root, or the module of
 * -m; NULL: there is none, or the program is not a Python of any name. */
char *proc_script(const struct process *process);

/* The directory of the virtual environment, as the process sees it: by the pyvenv.cfg beside or
 * above the program's directory, as Python itself finds it; for a program that is not called
 * python, or no longer says how it was called, by uwsgi's options, then by VIRTUAL_ENV.  NULL:
 * none. */
char *proc_venv(const struct process *process);

#endif
