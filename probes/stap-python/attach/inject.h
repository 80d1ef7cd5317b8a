/*
 * The parts of attaching: the targets, sys.remote_exec(), a call in a stopped thread by ptrace(),
 * and mounting the shim in a process's root.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_ATTACH_INJECT_H
#define STAP_PYTHON_ATTACH_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/processes.h"

/* ---------------------------------------------------------------- targets */

/* The processes that the command line names. */
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
    bool is_named;            /* by its PID: must exist, and be a CPython */
    bool has_shim;
    bool is_detached; /* the shim in it */
};

struct attach_targets {
    struct attach_target *all; /* a PID that the request has twice is here twice */
    size_t count;
    size_t hidden; /* processes that may be targets: /proc does not show whether */
};

/* Finds the processes of the PIDs and the CPythons that match a name; with children, also the
 * CPythons among their descendants, and a PID may be that of another program; with all, every
 * CPython. */
struct attach_targets attach_find_targets(const struct attach_request *request);

/* ---------------------------------------------------------------- sys.remote_exec() */

/* From CPython 3.14 on, sys.remote_exec() has the program's main thread load the shim when it next
 * runs Python code. */

/* Whether we can run the process's own Python, to call its sys.remote_exec(), and the process can
 * read our script: it can't if it has a /tmp of its own, as with systemd's PrivateTmp.  root does
 * not run a Python that another user can change. */
bool can_run_its_python(const struct process *process);

/* Has the process load the shim, or attach a detached one again.  NULL, and *script is the path of
 * the script that the process will run and remove; or the reason why not. */
const char *attach_by_remote_exec(const struct process *process, char **script);

/* ---------------------------------------------------------------- registers */

/* The registers of a stopped thread of another process, and how they call a function: what depends
 * on the architecture. */

/* Whether the architecture is supported; if not, stap-python makes no calls in other processes. */
#ifndef HAS_REMOTE_CALLS
#if defined(__x86_64__) || defined(__aarch64__)
#define HAS_REMOTE_CALLS 1
#else
#define HAS_REMOTE_CALLS 0
#endif
#endif

#if HAS_REMOTE_CALLS

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/user.h>

enum { VECTORS_MAX = 65536 };

struct registers {
    struct user_regs_struct general;
    char vectors[VECTORS_MAX]; /* and floating point */
    size_t vectors_size;
    int vectors_set; /* the regset of ptrace() in vectors */
};

/* Read and write all registers of a stopped thread that we trace.  False and errno if ptrace()
 * fails, or if the thread runs 32-bit code. */
bool registers_read(pid_t tid, struct registers *registers);
bool registers_write(pid_t tid, const struct registers *registers);

/* As registers_read() and registers_write(), for the general registers alone. */
bool general_read(pid_t tid, struct user_regs_struct *general);
bool general_write(pid_t tid, const struct user_regs_struct *general);

/* The stack pointer, the address of the next instruction, and a function's return value. */
unsigned long sp_of(const struct user_regs_struct *general);
unsigned long pc_of(const struct user_regs_struct *general);
unsigned long return_value_of(const struct user_regs_struct *general);

/* False: the thread is in a system call.  On aarch64 always true, as it is unknown. */
bool maybe_outside_syscall(const struct user_regs_struct *general);

/* Whether the thread slept in the system call `number` until it was stopped.  stack and next: its
 * stack pointer and next instruction while it slept, by /proc/PID/syscall. */
bool was_sleeping_in_syscall(const struct user_regs_struct *general, unsigned long number,
                             unsigned long stack, unsigned long next);

/* Whether the kernel has set the thread back to repeat the interrupted system call.  If so, adjusts
 * *general so that the thread sleeps only for the remaining time. */
bool restarts_syscall(struct user_regs_struct *general, unsigned long next);

/* Makes the thread call function(first, second).  first: an address, aligned to 64 bytes, below
 * which the stack is free.  The call returns to address 0 if the word at the new stack pointer is
 * 0. */
void set_up_call(struct user_regs_struct *general, unsigned long function, unsigned long first,
                 unsigned long second);

/* Whether the thread has a shadow stack, with which a call can't return to 0.  On x86-64 always
 * false: attach_refusal() finds it in /proc/PID/status. */
bool has_shadow_stack(pid_t tid);

#endif

/* ---------------------------------------------------------------- a call in a thread */

/*
 * Calls a function in a stopped thread of another process, with ptrace().
 *
 * The call returns to address 0, and the kernel reports that fault to us.  Until then the process
 * must not lose its tracer: without a tracer the fault would kill the process.
 */

#if HAS_REMOTE_CALLS

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stopped_thread {
    pid_t pid, tid;
    struct registers registers; /* with which it resumes */
    bool restarts_syscall;      /* restarts_syscall(): set by the caller, after thread_save() */
    uint64_t blocked;           /* its signal mask, as the kernel has it */
    const char *called;         /* "dlopen()", for messages: set by the caller */
};

enum stop_result { STOP_SEEN, STOP_TIMEOUT, STOP_EXITED };

/* Waits up to ms milliseconds for the next stop of a thread that we trace.  *status becomes
 * waitpid()'s.  STOP_EXITED: the thread has ended. */
enum stop_result wait_for_stop(pid_t tid, long ms, int *status);

/* Reads the registers and the signal mask of the stopped thread, whose pid and tid are set.  False
 * and errno if ptrace() fails, or if the thread runs 32-bit code. */
bool thread_save(struct stopped_thread *thread);

/* Restores what thread_save() has read; false and errno if ptrace() fails. */
bool thread_restore(struct stopped_thread *thread);

/* Calls function(text, RTLD_NOW) in the saved thread; *result becomes its return value.  During the
 * call the thread runs no signal handler of the program.  Afterwards the thread is stopped, and the
 * caller must restore its registers.  NULL, or the reason why the call failed. */
const char *thread_call(struct stopped_thread *thread, unsigned long function, const char *text,
                        unsigned long *result);

#endif

/* ---------------------------------------------------------------- ptrace() */

/*
 * Attaching with ptrace(): a call of dlopen() in one of the program's threads.
 *
 * Only this thread is stopped, for the milliseconds of the call.  It must be at a safe point, where
 * dlopen() can't need a lock that the thread itself holds (malloc's, the dynamic linker's): in
 * CPython's own code and in no signal handler, or asleep in a system call for a while.  Afterwards
 * the thread resumes with its old registers, and the watcher does the rest.  If stap-python is
 * killed while no call is being made, the kernel releases the thread (PTRACE_SEIZE).
 */

/* Loads the shim into the process, or makes a detached shim attach again.  NULL, or the reason why
 * not: no thread reached a safe point, the process runs another program now, the kernel or dlopen()
 * refuses, or there is no HAS_REMOTE_CALLS. */
const char *attach_by_ptrace(const struct process *process);

/* seccomp_filter_refusal() for a thread of the process, which is stopped meanwhile; or the reason
 * why the thread can't be traced.  NULL without HAS_REMOTE_CALLS. */
const char *refused_to_thread(pid_t pid, pid_t tid);

/* ---------------------------------------------------------------- mounting the shim */

/*
 * If the root of a target lacks the shim, our file is mounted there, read-only.  Tracers find the
 * shim by its file or (SystemTap) by its path within the process's root, and so treat the process
 * like any other.  Mounting needs Linux 5.12 and CAP_SYS_ADMIN.
 */

/* Sets process->load_path to a path from which the process can load the shim, and mounts the shim
 * there if necessary (process->is_mounted: at the shim's own path).  NULL, or the reason why there
 * is no such path. */
const char *mount_shim(struct process *process);

/* Whether process->load_path, in another root or mount namespace, leads to our own shim. */
bool load_path_is_our_shim(const struct process *process);

/* The reason not to load process->load_path: missing there, or (in another root) a user can change
 * it who has no right to change the process.  NULL: it may be loaded. */
const char *root_refusal(const struct process *process);

#endif
