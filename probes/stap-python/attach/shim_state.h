/*
 * The state of the shim in a process: whether an event reaches the tracer of a command or script of
 * this program.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_ATTACH_SHIM_STATE_H
#define STAP_PYTHON_ATTACH_SHIM_STATE_H

#include "lib/processes.h"

enum shim_state {
    SHIM_ABSENT,   /* not loaded */
    SHIM_ACTIVE,   /* events reach tracers; why, if not NULL: not all tracers, as it is a copy */
    SHIM_DETACHED, /* by stap-python detach; attach makes it active again */
    SHIM_DETACHES, /* becomes detached when Python code next runs there */
    SHIM_WAITS,    /* loaded; becomes active when Python code next runs there */
    SHIM_SILENT,   /* no or not all events reach tracers; why: the cause and the remedy */
    SHIM_UNKNOWN,  /* why: the reason */
};

struct shim_status {
    enum shim_state state;
    const char *why; /* one line, or NULL */
};

/* Waits up to ms milliseconds for a loaded shim to become active. */
struct shim_status shim_status(const struct process *process, long ms);

/* The message for SHIM_SILENT and SHIM_UNKNOWN. */
char *shim_complaint(const struct shim_status *status);

/* How tracers find a copy of the shim, at this path in a root or mount namespace of the process's
 * own. */
char *shim_place(const struct process *process, const char *path);

/* The path by which bpftrace, as root, finds a shim that is not where tracers search for it; NULL
 * if there is none. */
const char *shim_elsewhere(const struct process *process);

#endif
