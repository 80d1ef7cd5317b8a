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

/* ---------------------------------------------------------------- report */

enum verdict { OK, NOTE, WRONG };

/* Turns colours on if stdout is a terminal, unless NO_COLOR is set, or TERM is unset or "dumb". */
void report_start(void);

/* Prints a line: the verdict, the topic, and the printf() text.  fix: the command that fixes the
 * problem, printed below; NULL: none. */
void report(enum verdict verdict, const char *topic, const char *fix, const char *text, ...)
    __attribute__((format(printf, 4, 5)));

/* Prints the summary, and returns the number of WRONG lines. */
unsigned report_end(void);

/* ---------------------------------------------------------------- commands that fix */

/* They are for this machine's distribution and user. */

/* The prefix of a command that needs root: "sudo ", or "" for root. */
const char *sudo_prefix(void);

/* The command that installs packages, by their names for apt, dnf and zypper. */
char *install_command(const char *apt, const char *dnf, const char *zypper);

/* The command that reinstalls the shim and the tapset, or makes them in a checkout. */
char *reinstall_command(void);

/* The command that installs and boots the distribution's own kernel, with its headers.  In a
 * checkout, the one that runs a script with a guest's stap, which needs nothing of this kernel. */
char *stock_kernel_command(void);

/* ---------------------------------------------------------------- kernel */

/* Reports the kernel's headers, whether it loads modules, and whether it has uprobes. */
void check_kernel(void);

/* The directory of the running kernel's headers, which may not exist. */
char *kernel_headers(void);

bool has_headers(void);

/* ---------------------------------------------------------------- stap and its tapset */

/* Reports which stap there is.  Must be called before all other functions of this section. */
void check_stap(void);

/* The stap that check_stap() found; NULL: none. */
const char *stap_found(void);

/* Reports the known faults of stap's runtime with this kernel.  False: with one of these faults,
 * stap cannot compile probes of programs. */
bool check_runtime(void);

/* Reports who else could write to stap's cache before check_stap() ran stap. */
void check_cache(void);

/* Reports whether this user may load stap's modules. */
void check_rights(void);

/* The path of a directory of stap's data, such as "tapset". */
char *stap_data_dir(const char *folder);

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

/* Makes all checks, in the order in which a user needs the parts.  Returns 0 if nothing is wrong,
 * else FAILED; exits with an error line if there are arguments other than --help. */
int doctor_main(char **arguments);

#endif
