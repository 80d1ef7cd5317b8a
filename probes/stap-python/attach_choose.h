/*
 * Which processes `stap-python attach` is to attach to.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_CHOOSE_H
#define ATTACH_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the command line asks for. */
struct attach_request {
    pid_t *pids; /* as many as pid_count */
    size_t pid_count;
    char **names; /* patterns, as many as name_count */
    size_t name_count;
    bool all, children;
};

struct attach_target {
    pid_t pid;
    unsigned long long start; /* its start time */
    bool is_named;            /* by its PID: it must be there, and be a CPython */
    bool has_shim;
    bool is_detached; /* the shim in it */
};

struct attach_targets {
    struct attach_target *all; /* by a PID that stands twice in the wish: twice */
    size_t count;
    size_t hidden; /* processes that may be meant: /proc does not let us see whether */
};

/* Finds the processes: those of the PIDs, and the CPythons that match a name, descend from all
 * these (children) or run at all (all).  With children a PID may be that of another program. */
struct attach_targets attach_find_targets(const struct attach_request *wish);

#endif
