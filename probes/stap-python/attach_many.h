/*
 * What `stap-python attach` and `detach` have in common: the processes that their arguments name,
 * one after another.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_MANY_H
#define ATTACH_MANY_H

#include <stdbool.h>
#include <sys/types.h>

#include "attach_choose.h"

struct action {
    const char *name; /* of the command */
    const char *did;  /* to a process, in the past */
    /* Acts on the process of that PID, and prints a line of it.  NULL, or why that fails; may exit
     * with an error line. */
    const char *(*act)(pid_t pid);
    /* Whether that is to be done at all; again: the process was started meanwhile. */
    bool (*is_for)(const struct attach_target *chosen, bool again);
    const char *none;   /* the line where there is no such process */
    bool none_is_fine;  /* with --all */
    bool one_is_enough; /* with --all */
};

/* arguments end with NULL: PIDs, --children, --name PATTERN, or --all.  Returns the exit status, or
 * exits with an error line. */
int attach_many(const struct action *action, char **arguments);

#endif
