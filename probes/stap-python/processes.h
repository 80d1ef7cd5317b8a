/*
 * The processes of this machine, and which descend from which.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct processes {
    struct process_entry {
        pid_t pid, parent;
        bool chosen; /* false at first: for the caller */
    } * all;         /* by PID */
    size_t count;
};

/* All processes that /proc shows but ourselves. */
struct processes processes_find(void);

/* Chooses the process of that PID; false if it is not there. */
bool processes_choose(struct processes *processes, pid_t pid);

/* The parent of the process of that PID; 0: there is none, or it is not there. */
pid_t processes_parent(const struct processes *processes, pid_t pid);

/* Whether this program runs in a PID namespace of its own: the PIDs in it are not those by which
 * the kernel, and so a tracer's script, knows the processes. */
bool in_pid_namespace(void);

/* Chooses the descendants of all that are chosen. */
void processes_choose_descendants(struct processes *processes);

/* Says on stderr that this many processes could not be looked at, if any. */
void processes_warn_of_hidden(size_t count);

#endif
