/*
 * stap-python's commands.  Each COMMAND_main() takes the arguments after the command, which end
 * with NULL, and returns the exit status or exits, with an error line if something is wrong.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_COMMANDS_H
#define STAP_PYTHON_COMMANDS_H

#include <stdbool.h>

/* ---------------------------------------------------------------- run */

/* `stap-python run`: starts a command with the shim preloaded.  Does not return. */
int run_main(char **arguments);

/* ---------------------------------------------------------------- diff */

/* `stap-python diff`: compares two profiles.  Exits with an error line if a file can't be read or
 * written. */
int diff_main(char **arguments);

/* ---------------------------------------------------------------- enable */

/* `stap-python enable` and `disable`: make every start of an interpreter or a service load the
 * shim, and undo that.  Exit if the shim does not support the interpreter, root must not run it, or
 * the files can't be written or recorded, or are not stap-python's. */
int enable_main(char **arguments);
int disable_main(char **arguments);

/* enable and disable for an interpreter, a name in PATH or a path: by a .pth file and a link in its
 * site-packages. */
int enable_python(const char *word);
int disable_python(const char *word);

/* enable and disable for a service, its name with ".service" or without: by a drop-in with which
 * systemd preloads the shim. */
int enable_service(const char *unit);
int disable_service(const char *unit);

/* Makes systemd, if it runs, reload its units.  Exits with an error line if that fails. */
void reload_services(void);

/* ---------------------------------------------------------------- filter */

/* `stap-python filter`: shows or sets the patterns of functions for which the filtered markers of a
 * process fire. */
int filter_main(char **arguments);

/* ---------------------------------------------------------------- list */

/* `stap-python list`: prints the markers of an interpreter, process or file, and who provides them;
 * without an argument, a line for each interpreter found.  FAILED: the shim does not support the
 * process, is silent in it, or its state is unknown. */
int list_main(char **arguments);

/* ---------------------------------------------------------------- ps */

/* `stap-python ps`: prints the Pythons that run, and whether the shim is active in them. */
int ps_main(char **arguments);

/* ---------------------------------------------------------------- record, top, dump */

/* `stap-python record`, `top` and `dump`: run the scripts pyprof, pywall and pydump, with the
 * options that py-spy's commands of these names have.  They return only if the samples were
 * converted to another format than the folded one, or top has a screen: else script_main() replaces
 * this program. */
int record_main(char **arguments);
int top_main(char **arguments);
int dump_main(char **arguments);

/* ---------------------------------------------------------------- top's screen */

/* Whether stdin and stdout are a terminal on which a screen can be drawn. */
bool top_has_screen(void);

/* The command for stap's -c.  What it prints goes to a file, which top_run() prints at the end: the
 * screen is top's.  Exits with an error line if the file can't be made. */
char *top_quiet_command(const char *command);

/* target: what is sampled, as a printable text; rate: how often a second.  Runs stap's command line
 * (ends with NULL), which prints pyprof's tables of live=2, and draws them on the terminal, whose
 * keys stap does not read.  Returns stap's exit status. */
int top_run(const char *target, const char *rate, char **stap);

#endif
