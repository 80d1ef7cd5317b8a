/*
 * Which system calls a seccomp filter leaves to a process: those that loading the shim makes in one
 * of its threads, and those that the shim's thread and its hooks make later.
 *
 * The kernel gives a thread's filters to a tracer with CAP_SYS_ADMIN; each is evaluated here as the
 * kernel would do it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_SECCOMP_H
#define ATTACH_SECCOMP_H

#include <stdbool.h>
#include <sys/types.h>

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

#endif
