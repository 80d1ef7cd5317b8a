/*
 * `stap-python run`: starts a command with the shim.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_COMMANDS_H
#define STAP_PYTHON_COMMANDS_H

/* ---------------------------------------------------------------- run */

/* Runs the command in arguments, which end with NULL, perhaps after "--".  Does not return: exits
 * with an error line if the command can't be started. */
int run_main(char **arguments);

/* ---------------------------------------------------------------- enable */

/*
 * `stap-python enable` and `disable`: whether every start of an interpreter, or of a service, loads
 * the shim.
 */

/* arguments end with NULL: an interpreter, or none for python3; "--service" and a unit; "--list" or
 * "--all".  Both return the exit status, or exit with an error line: if there is no such
 * interpreter or service, the shim does not support it, root must not run it, the files can't be
 * written or recorded, or are not stap-python's. */
int enable_main(char **arguments);
int disable_main(char **arguments);

/* ---------------------------------------------------------------- enable python */

/*
 * `stap-python enable` and `disable` for an interpreter: a .pth file and a link in its
 * site-packages.
 */

/* Makes the interpreter, a name in PATH or a path, load the shim at each start; returns the exit
 * status.  Exits with an error line if it can't. */
int enable_python(const char *word);

/* Undoes that, in the same way. */
int disable_python(const char *word);

/* ---------------------------------------------------------------- enable service */

/*
 * `stap-python enable --service` and `disable --service`: a drop-in by which systemd starts a
 * service with the shim preloaded.
 */

/* Makes each start of the service load the shim; returns the exit status.  unit: its name, with
 * ".service" or without.  Exits with an error line if it can't. */
int enable_service(const char *unit);

/* Undoes that, in the same way. */
int disable_service(const char *unit);

/* Makes systemd, if it runs, read its units again.  Exits with an error line if that fails. */
void reload_services(void);

/* ---------------------------------------------------------------- filter process */

/*
 * stap-python filter: which functions the filtered markers of a process are for.
 */

/* The arguments after the command, which end with NULL; returns the exit status. */
int filter_main(char **arguments);

/* ---------------------------------------------------------------- flamegraph */

/*
 * The flame graph of `stap-python record`: flamegraph.pl draws it from folded stacks.
 */

/* The path of flamegraph.pl.  Exits with an error line, which names the packages that have it, if
 * it is not installed, or if root must not run it. */
char *flamegraph_program(void);

/* A path for the folded stacks, in a new folder, which is removed with it when this process exits.
 * Exits with an error line if it can't be made. */
char *flamegraph_folded(void);

/* Runs stap's command (its name or path, its arguments, NULL), which writes the folded stacks, to
 * its end: signals that end this process end stap.  Then the program draws them to the descriptor
 * output.  Returns stap's exit status; exits with an error line if nothing was sampled or drawn. */
int flamegraph_draw(const char *program, char **stap, const char *folded, int output);

/* ---------------------------------------------------------------- list */

/*
 * `stap-python list`: the markers of interpreters and processes, and who provides them.
 */

/* arguments end with NULL: an interpreter, PID or file, or none for every interpreter found.  Exits
 * with an error line if it is not there, or not a CPython. */
int list_main(char **arguments);

/* ---------------------------------------------------------------- ps */

/*
 * `stap-python ps`: the Pythons that run, and whether the shim is active in them.
 */

/* arguments end with NULL: --json or none. */
int ps_main(char **arguments);

/* ---------------------------------------------------------------- sampler */

/*
 * `stap-python record`, `top` and `dump`: pyprof and pydump with the options that py-spy's commands
 * of these names have.
 */

/* Run the script with the options in arguments, which end with NULL.  Exit with an error line if
 * one of them is wrong; else they don't return, as script_main() doesn't. */
int record_main(char **arguments);
int top_main(char **arguments);
int dump_main(char **arguments);

#endif
