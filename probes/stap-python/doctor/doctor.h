/*
 * The lines that doctor prints.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_DOCTOR_DOCTOR_H
#define STAP_PYTHON_DOCTOR_DOCTOR_H

#include <stdbool.h>

/* ---------------------------------------------------------------- doctor report */

enum verdict { OK, NOTE, WRONG };

/* Decides whether the lines have colours: on a terminal, unless NO_COLOR or TERM=dumb is set. */
void report_start(void);

/* Prints a line: the verdict, the topic and the printf() text; and below it fix, the command that
 * fixes it, unless that is NULL. */
void report(enum verdict verdict, const char *topic, const char *fix, const char *text, ...)
    __attribute__((format(printf, 4, 5)));

/* Prints the summary, and returns how many lines were WRONG. */
unsigned report_end(void);

/* ---------------------------------------------------------------- doctor fix */

/*
 * The commands that fix what doctor finds, for this machine's distribution and user.
 */

/* What precedes a command that needs root: "sudo ", or "" for root. */
const char *sudo_prefix(void);

/* Installs packages, by their names for apt, dnf and zypper. */
char *install_command(const char *apt, const char *dnf, const char *zypper);

/* Reinstalls the shim and the tapset, or makes them in a checkout. */
char *reinstall_command(void);

/* Boots the distribution's own kernel, with its headers; in a checkout instead a stap that runs in
 * a guest, which needs nothing of this kernel. */
char *stock_kernel_command(void);

/* ---------------------------------------------------------------- doctor kernel */

/*
 * The kernel, as far as doctor checks it: headers, loading of modules, uprobes.
 */

/* Reports all three. */
void check_kernel(void);

/* Where the running kernel's headers are, or should be. */
char *kernel_headers(void);

/* Whether they are there. */
bool has_headers(void);

/* ---------------------------------------------------------------- doctor stap */

/*
 * SystemTap, as far as doctor checks it: which stap, the faults of its runtime, the user's rights.
 */

/* Reports which stap there is.  To be called before the others. */
void check_stap(void);

/* The stap that check_stap() found; NULL: none. */
const char *stap_found(void);

/* Reports the known faults of stap's runtime, with this kernel.  False: with one of them it cannot
 * compile probes of programs. */
bool check_runtime(void);

/* Reports who could write to stap's cache before check_stap(). */
void check_cache(void);

/* Reports whether this user may load stap's modules. */
void check_rights(void);

/* The directory of that name, such as "tapset", among stap's data. */
char *stap_data_dir(const char *folder);

/* ---------------------------------------------------------------- doctor tapset */

/*
 * The tapset that stap reads, as doctor checks it.
 */

/* Reports whether python.stp is ours and finds the shim, and each other file with probe points of
 * ours.  After check_stap(). */
void check_tapset(void);

/* ---------------------------------------------------------------- doctor compile */

/*
 * Whether stap compiles a probe of a program for the running kernel, as doctor checks it.
 */

/* Has stap compile a probe of the shim, and reports whether it does.  Nothing is reported if stap,
 * the kernel's headers or the shim are missing, which other lines say.  After check_stap(). */
void check_compile(void);

/* ---------------------------------------------------------------- doctor python */

/*
 * The interpreters and the shim, as doctor checks them.
 */

/* Reports each interpreter found and its own markers. */
void check_interpreters(void);

/* Reports whether the shim exists and loads. */
void check_shim(void);

/* Reports what attach can't do on this architecture, if it can't do all. */
void check_attach(void);

/* ---------------------------------------------------------------- doctor enabled */

/*
 * What is enabled, as doctor checks it.
 */

/* Reports each interpreter and service that `stap-python enable` has made load the shim, and
 * whether it still does. */
void check_enabled(void);

/* ---------------------------------------------------------------- doctor */

/*
 * `stap-python doctor`: whether this machine can probe Python, in the order in which a user meets
 * the parts, with the command that fixes each problem.
 *
 * It reads /proc, /sys, /etc, /lib/modules and so on below STAP_PYTHON_ROOT, so that tests can give
 * it other machines.
 */

/* arguments: none, and NULL.  Returns 0 if nothing is wrong, else FAILED. */
int doctor_main(char **arguments);

#endif
