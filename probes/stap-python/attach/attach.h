/*
 * What `stap-python attach` refuses, and why.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_ATTACH_ATTACH_H
#define STAP_PYTHON_ATTACH_ATTACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "attach/inject.h"
#include "lib/processes.h"

/* ---------------------------------------------------------------- attach refusal */

/* Whether this program has CAP_SYS_PTRACE. */
bool have_cap_sys_ptrace(void);

/* Why this user may not attach to the process of that PID without CAP_SYS_PTRACE: its real,
 * effective or saved user is another.  NULL: all three are ours. */
const char *user_refusal(pid_t pid);

/* Why the shim does nothing there although it is loaded: the process started with PYTHON_STAP=off.
 * NULL: it did not. */
const char *environment_refusal(const struct process *process);

/* Why a program with a shadow stack is refused. */
extern const char shadow_stack_refusal[];

/* All that forbids attaching to the process, whatever its root, as far as can be known without
 * trying; NULL: nothing. */
const char *attach_refusal(const struct process *process);

/* What forbids to ask the process to detach, but for its seccomp filters; NULL: nothing. */
const char *refusal_to_detach(const struct process *process);

/* ---------------------------------------------------------------- attach seccomp */

/*
 * Which system calls a seccomp filter leaves to a process: those that loading the shim makes in one
 * of its threads, and those that the shim's thread and its hooks make later.
 *
 * The kernel gives a thread's filters to a tracer with CAP_SYS_ADMIN; each is evaluated here as the
 * kernel would do it.
 */

/* Whether seccomp filters the system calls of the process's main thread. */
bool has_seccomp_filter(pid_t pid);

/* Why the process's threads can't have the shim, by /proc: system calls are confined to read() and
 * write(), or some threads have filters that others have not.  NULL: no reason is known. */
const char *seccomp_refusal(pid_t pid);

/* Why the shim, which is active in the process, installs and removes no hooks any more: a thread
 * has more filters than the shim's own.  NULL: none has. */
const char *silenced_by_seccomp(pid_t pid);

/* Why the filters of a thread, which we trace and which is stopped, forbid to load the shim there.
 * NULL: they don't, or it has none. */
const char *seccomp_filter_refusal(pid_t tid);

/* ---------------------------------------------------------------- attach load */

/*
 * Attaching to one process.
 */

/* After it was loaded: for any thread to run Python code, which makes it active. */
enum { ACTIVATION_TIMEOUT_MS = 1000 };

/* Whether the shim in the process is detached, or about to be: attach_process() undoes that. */
bool process_lacks_watcher(const struct process *process);

/* Loads the shim into a process that lacks it, or attaches a detached one again, if nothing forbids
 * that; NULL, or why it is not done. */
const char *attach_process(struct process *process);

/* The same for the process of that PID, unless the shim is there and not detached; prints a line
 * with its state. NULL, or why that fails; exits with an error line if a thread of it does not
 * stop. */
const char *attach_to(pid_t pid);

/* ---------------------------------------------------------------- attach many */

/*
 * What `stap-python attach` and `detach` have in common: the processes that their arguments name,
 * one after another.
 */

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

/* ---------------------------------------------------------------- attach */

/*
 * `stap-python attach`: loads the shim into running Pythons.
 */

/* arguments end with NULL: PIDs, --children, --name PATTERN, or --all.  Returns the exit status, or
 * exits with an error line: the shim can't be loaded into one of them, or there is none. */
int attach_main(char **arguments);

/* ---------------------------------------------------------------- detach process */

/*
 * `stap-python detach`: takes the shim's hooks and its thread out of running Pythons.
 */

/* arguments end with NULL: as attach_main()'s.  Returns the exit status, or exits with an error
 * line. */
int detach_main(char **arguments);

#endif
