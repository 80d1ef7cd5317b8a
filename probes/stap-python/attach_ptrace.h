/*
 * Attaching with ptrace(): a call of dlopen() in one of the program's threads.
 *
 * The thread is stopped for the milliseconds of that call only; the others run.  It must be at a
 * safe point, where dlopen() can't meet a lock that the thread itself holds (malloc's, the dynamic
 * linker's): in CPython's own code and in no signal handler, or asleep in a system call for a
 * while. Afterwards it resumes as if nothing had happened; the shim's own thread does the rest.  If
 * stap-python is killed while no call is made, the kernel releases the thread (PTRACE_SEIZE).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_PTRACE_H
#define ATTACH_PTRACE_H

#include "process.h"

/* Loads the shim into the process, or has one that is detached there attach again.  NULL, or why
 * that fails: no thread reached a safe point, the process is another by now, the kernel or dlopen()
 * refuses, or this is an architecture without remote_registers.h's calls. */
const char *attach_by_ptrace(const struct process *process);

/* Why the filters of a thread of it forbid what the shim calls, or what can't be known of them:
 * seccomp_filter_refusal().  NULL: they don't, or this is an architecture without these calls. */
const char *refused_to_thread(pid_t pid, pid_t tid);

#endif
