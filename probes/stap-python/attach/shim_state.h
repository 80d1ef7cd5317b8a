/*
 * Whether the shim in a process does what users expect of it: whether an event that is fired there
 * now reaches a tracer that is attached now, by one of this program's commands or scripts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_ATTACH_SHIM_STATE_H
#define STAP_PYTHON_ATTACH_SHIM_STATE_H

#include "lib/processes.h"

enum shim_state {
    SHIM_ABSENT,   /* it is not loaded */
    SHIM_ACTIVE,   /* its events reach tracers; why: of a copy elsewhere not all */
    SHIM_DETACHED, /* by stap-python detach; attach makes it active again */
    SHIM_DETACHES, /* it will be when Python code next runs there */
    SHIM_WAITS,    /* loaded: it becomes active when Python code next runs there */
    SHIM_SILENT,   /* tracers see nothing of it, or not all: why has the cause and the cure */
    SHIM_UNKNOWN,  /* it can't be told: why says that */
};

struct shim_status {
    enum shim_state state;
    const char *why; /* one line; NULL: there is nothing to say */
};

/* The state now.  A shim that does not watch for tracers yet has so many milliseconds to begin. */
struct shim_status shim_status(const struct process *process, long ms);

/* The sentence that says why a shim is silent, or that it can't be told. */
char *shim_complaint(const struct shim_status *status);

/* By what tracers find a copy of the shim that is at this path in a root or mount namespace of the
 * process's own. */
char *shim_place(const struct process *process, const char *path);

/* A shim of the process that tracers don't find at its path: the path by which bpftrace, as root,
 * finds it.  NULL: there is none, or it is where tracers look. */
const char *shim_elsewhere(const struct process *process);

#endif
