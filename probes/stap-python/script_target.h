/*
 * The Pythons that a script is to trace: whether they have the markers that it probes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SCRIPT_TARGET_H
#define SCRIPT_TARGET_H

#include <sys/types.h>

/* What is probed: by the code of a script, with this many arguments of its own. */
struct script_probes {
    const char *code;
    size_t arguments;
};

/* Loads the shim into the process of -x, unless it is loaded there or CPython's own markers are all
 * that the script probes; says on stderr that it did, or what can't be known, and
 * how many Pythons it has started already, which stap does not trace.  Exits with an error line if
 * there is no such process, or the shim can't be loaded. */
void script_prepare_target(const struct script_probes *script, pid_t pid);

/* Says on stderr how many Pythons run that this user may look into, and how many of them have what
 * the script needs. */
void script_list_running(const struct script_probes *script);

#endif
