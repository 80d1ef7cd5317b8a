/*
 * `stap-python SCRIPT`: runs stap on one of the project's scripts; and the list of these.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SCRIPT_H
#define SCRIPT_H

/* Prints each script's name and title.  Exits with an error line if there are none. */
int list_scripts(void);

/* The path of the script of this name, with or without .stp; NULL if there is none. */
char *script_file(const char *name);

/* Runs stap on the script at this path with these arguments, which end with NULL; or, if --backend
 * is the first of them, another tracer (script_bpftrace.h).  The command of -c runs with the shim,
 * and the process of -x gets it if it needs it.  Returns only if --help is among them, which prints
 * the script's own help; exits with an error line if an argument is wrong, or stap, the process or
 * the shim that it needs does not exist. */
int script_main(const char *path, char **arguments);

/* The command that script_main() would run, as exec_program() takes it, without --help and
 * --backend. */
char **script_command(const char *path, char **arguments);

#endif
