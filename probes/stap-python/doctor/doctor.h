/*
 * `stap-python doctor`: checks whether this machine can probe Python, and prints a line for each
 * part, with the command that fixes it.  It reads /proc, /sys, /etc, /lib/modules and so on below
 * STAP_PYTHON_ROOT, so that tests can give it other machines.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_DOCTOR_DOCTOR_H
#define STAP_PYTHON_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

/* ---------------------------------------------------------------- report */

enum verdict { OK, NOTE, WRONG };

/* How a problem is fixed.  A fix without a command is advice, such as "reboot", which only the user
 * can follow. */
struct fix {
    char *text;     /* what doctor prints: the command as a user types it, or the advice */
    char *command;  /* what doctor --fix runs, unattended; NULL: text is advice */
    char *packages; /* the packages that the command installs, and all that it does; else NULL */
    char *by_hand;  /* advice in more words, for the list of what is left to do; or NULL: text */
    char *if_fails; /* what to do if the command fails; or NULL */
    bool downloads; /* the command reads the lists of packages that apt-get update downloads */
};

/* Turns colours on if stdout is a terminal, unless NO_COLOR is set, or TERM is unset or "dumb". */
void report_start(void);

/* Prints a line: the verdict, the topic, and the printf() text.  advice: what the user can do about
 * the problem, printed below; NULL: nothing.  doctor --fix does not run it. */
void report(enum verdict verdict, const char *topic, const char *advice, const char *text, ...)
    __attribute__((format(printf, 4, 5)));

/* As report(), with a fix that doctor --fix runs if it has a command. */
void report_fix(enum verdict verdict, const char *topic, struct fix fix, const char *text, ...)
    __attribute__((format(printf, 4, 5)));

/* Prints the summary, and returns the number of WRONG lines. */
unsigned report_end(void);

/* A fix that was reported since report_start(), advice included. */
struct reported {
    const char *topic;
    struct fix fix;
};

/* All of them, in the order of the lines; returns their number. */
size_t reported_fixes(const struct reported **all);

/* ---------------------------------------------------------------- commands that fix */

/* They are for this machine's distribution and user. */

/* The fix that is this command, for a shell.  Advice, if the command can't be shown as it is. */
struct fix command_fix(char *command);

/* The prefix of a command that needs root: "sudo ", or "" for root. */
const char *sudo_prefix(void);

/* Installs packages, by their names for apt, dnf and zypper. */
struct fix install_fix(const char *apt, const char *dnf, const char *zypper);

/* The command that installs packages, by their names for this distribution, without a question.
 * NULL: this distribution is unknown. */
char *unattended_install(const char *packages);

/* The command that downloads the lists of packages; NULL: the package manager does so unasked. */
char *update_command(void);

/* Reinstalls the shim and the tapset, or makes them in a checkout. */
struct fix reinstall_fix(void);

/* The command that installs and boots the distribution's own kernel, with its headers.  In a
 * checkout, the one that runs a script with a guest's stap, which needs nothing of this kernel. */
char *stock_kernel_command(void);

/* ---------------------------------------------------------------- kernel */

/* Reports the kernel's headers, whether it loads modules, and whether it has uprobes. */
void check_kernel(void);

/* ---------------------------------------------------------------- stap and its tapset */

/* Reports which stap there is.  Must be called before all other functions of this section. */
void check_stap(void);

/* Reports the known faults of SystemTap's runtime with this kernel, and whether stap-python can
 * correct them.  False: stap can't compile probes of programs. */
bool check_runtime(void);

/* Reports who else could write to stap's cache before check_stap() ran stap. */
void check_cache(void);

/* Reports whether this user may load stap's modules. */
void check_rights(void);

/* Reports whether python.stp is ours and finds the shim, and each other file that defines our
 * python.function.* probe points. */
void check_tapset(void);

/* Reports whether stap compiles a probe of the shim for the running kernel.  Reports nothing if
 * stap, the kernel's headers or the shim are missing: other lines report that. */
void check_compile(void);

/* ---------------------------------------------------------------- interpreters and the shim */

/* Reports each interpreter found and its native markers. */
void check_interpreters(void);

/* Reports whether the shim exists and loads. */
void check_shim(void);

/* Reports what attach can't do on this architecture, if anything. */
void check_attach(void);

/* Reports each interpreter and service that `stap-python enable` has made load the shim, and
 * whether it still loads it. */
void check_enabled(void);

/* ---------------------------------------------------------------- the command */

/* Makes all checks, in the order in which a user needs the parts, and prints their summary. Returns
 * the number of WRONG lines. */
unsigned check_all(void);

/* doctor --fix: makes the checks and runs the commands that fix what they report, until none is
 * left that it has not run.  Asks on the terminal before it runs commands, unless unasked.  Returns
 * 0 if nothing is wrong in the end, else FAILED. */
int fix_all(bool unasked);

/* Returns 0 if nothing is wrong, else FAILED; exits with an error line if an argument is unknown.
 */
int doctor_main(char **arguments);

#endif
