/*
 * Attaching the shim to running processes, and detaching it: the commands, one process, and the
 * refusals.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_ATTACH_ATTACH_H
#define STAP_PYTHON_ATTACH_ATTACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "attach/inject.h"
#include "attach/shim_state.h"
#include "lib/processes.h"

/* ---------------------------------------------------------------- refusals */

/* Functions that return a reason return NULL if there is none. */

/* The reason why this user may not attach to the process without CAP_SYS_PTRACE: its real,
 * effective or saved user is another one. */
const char *user_refusal(pid_t pid);

/* Fills in *process, as process_open() does.  The reason why this user may not attach to it, or why
 * there is no CPython to attach to. */
const char *open_for_attach(pid_t pid, struct process *process);

/* The reason why a shim in the process is off: PYTHON_STAP in the environment at its start. */
const char *environment_refusal(const struct process *process);

/* The refusal if the process has called exec() meanwhile. */
extern const char another_program[];

/* The refusal of a program with a shadow stack. */
extern const char shadow_stack_refusal[];

/* The first reason why attaching must fail, found without touching the process.  The process's root
 * is checked separately (root_refusal()). */
const char *attach_refusal(const struct process *process);

/* The reason why no detach can be requested of the process, seccomp filters apart. */
const char *refusal_to_detach(const struct process *process);

/* ---------------------------------------------------------------- seccomp */

/*
 * Whether the process's seccomp filters allow the system calls of loading the shim, and the later
 * ones of its thread and hooks.
 *
 * The kernel shows a thread's filters to a tracer with CAP_SYS_ADMIN.  This program evaluates each
 * of them as the kernel does.
 */

/* Whether seccomp restricts the system calls of the process's main thread. */
bool has_seccomp_filter(pid_t pid);

/* The reason, by /proc, why the process's threads can't have the shim: seccomp leaves them only
 * read() and write(), or their filters differ.  Without HAS_REMOTE_CALLS also any filter. */
const char *seccomp_refusal(pid_t pid);

/* The reason why an active shim no longer installs and removes hooks: a thread of the process has
 * more filters than the watcher. */
const char *silenced_by_seccomp(pid_t pid);

/* The reason why the filters of a stopped thread that we trace forbid the shim, or can't be read.
 * Only with HAS_REMOTE_CALLS. */
const char *seccomp_filter_refusal(pid_t tid);

/* ---------------------------------------------------------------- one process */

/* How long a loaded shim may take to become active, which needs a thread that runs Python code. */
enum { ACTIVATION_TIMEOUT_MS = 1000 };

/* Whether the shim in the process is detached or detaching, which attach_process() undoes. */
bool process_lacks_watcher(const struct process *process);

/* Loads the shim into the process, or makes a detached shim active again.  NULL, or the reason why
 * not.  Exits with an error line if a thread of the process does not stop. */
const char *attach_process(struct process *process);

/* Fills in *status for a process that had an attached shim a moment ago.  NULL, or the reason why
 * tracers don't see it, or no longer.  Waits up to ACTIVATION_TIMEOUT_MS, as shim_status() does. */
const char *status_after_attach(const struct process *process, struct shim_status *status);

/* As attach_process(), but leaves a shim that is not detached as it is, and prints a line with the
 * shim's state. */
const char *attach_to(pid_t pid);

/* ---------------------------------------------------------------- several processes */

/* What differs between `stap-python attach` and `detach`, which act on one process after another.
 */
struct action {
    const char *name; /* of the command */
    const char *did;  /* the participle: "detached" */
    /* Acts on the process with this PID, and prints a line about it.  NULL, or the reason why it
     * failed; may exit with an error line. */
    const char *(*act)(pid_t pid);
    /* Whether to act on the process; again: it was started while others had their turn. */
    bool (*is_for)(const struct attach_target *chosen, bool again);
    const char *none;   /* the line if there is no such process */
    bool none_is_fine;  /* with --all, no such process is no failure */
    bool one_is_enough; /* with --all, one success is a success */
};

/* Acts on the processes of the request, and returns those on which that succeeded.  An error line
 * says why it failed on another one.  Exits with an error line if it succeeded on none. */
struct attach_targets attach_request_to(const struct action *action,
                                        const struct attach_request *request);

/* Acts on the processes that the arguments name (NULL-terminated): PIDs, --children, --name
 * PATTERN, or --all.  Returns the exit status, or exits with an error line. */
int attach_many(const struct action *action, char **arguments);

/* ---------------------------------------------------------------- commands */

/* `stap-python attach`: loads the shim into running Pythons.  arguments and result: as
 * attach_many()'s. */
int attach_main(char **arguments);

/* `stap-python detach`: takes the shim's hooks and its thread out of running Pythons.  arguments
 * and result: as attach_many()'s. */
int detach_main(char **arguments);

#endif
