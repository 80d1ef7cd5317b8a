/*
 * Which processes `stap-python attach` is to attach to.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_ATTACH_INJECT_H
#define STAP_PYTHON_ATTACH_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/processes.h"

/* ---------------------------------------------------------------- attach choose */

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

/* ---------------------------------------------------------------- attach remote exec */

/*
 * Attaching by CPython 3.14's sys.remote_exec(): the program's main thread loads the shim when it
 * next runs Python code.
 */

/* Whether we can start the process's own Python, whose sys.remote_exec() is to be called, and the
 * process can read our script: not if it has a /tmp of its own, as by systemd's PrivateTmp.  Root
 * starts no Python that another user can change. */
bool can_run_its_python(const struct process *process);

/* Asks the process to load the shim, or to attach again one that is detached.  NULL, and *script is
 * the path of the script that the process is to run and remove; else why that fails. */
const char *attach_by_remote_exec(const struct process *process, char **script);

/* ---------------------------------------------------------------- remote registers */

/*
 * The registers of a stopped thread of another process, and how they call a function: what differs
 * from architecture to architecture.
 */

/* Whether this is written for the architecture: else stap-python makes no calls in other processes.
 */
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
    int vectors_set; /* which of ptrace()'s sets that is */
};

/* Read and write the registers of a stopped thread that we trace; false and errno if ptrace()
 * fails, or if the thread runs 32-bit code. */
bool registers_read(pid_t tid, struct registers *registers);
bool registers_write(pid_t tid, const struct registers *registers);

/* The same for the general ones alone. */
bool general_read(pid_t tid, struct user_regs_struct *general);
bool general_write(pid_t tid, const struct user_regs_struct *general);

/* The stack pointer, the address of the next instruction, and what a function has returned. */
unsigned long sp_of(const struct user_regs_struct *general);
unsigned long pc_of(const struct user_regs_struct *general);
unsigned long return_value_of(const struct user_regs_struct *general);

/* False: they are those of a thread that is in a system call.  Not known on aarch64: true. */
bool maybe_outside_syscall(const struct user_regs_struct *general);

/* Whether they are those of a thread that slept in this system call until it was stopped; stack and
 * next are its stack pointer and next instruction then, by /proc/PID/syscall. */
bool was_sleeping_in_syscall(const struct user_regs_struct *general, unsigned long number,
                             unsigned long stack, unsigned long next);

/* Whether the kernel has set that thread back to the start of the system call, which it then makes
 * again: *general is changed so that it sleeps only for what was left. */
bool restarts_syscall(struct user_regs_struct *general, unsigned long next);

/* Changes them so that the thread calls the function with two arguments.  The first is an address
 * below which all is free, aligned to 64 bytes.  The call returns to 0 if the word at the stack
 * pointer is 0. */
void set_up_call(struct user_regs_struct *general, unsigned long function, unsigned long first,
                 unsigned long second);

/* Whether the thread has a shadow stack that only ptrace() tells of: then a call can't return to 0.
 */
bool has_shadow_stack(pid_t tid);

#endif

/* ---------------------------------------------------------------- remote call */

/*
 * Calls a function in a stopped thread of another process, with ptrace().
 *
 * The call returns to address 0, and that fault is reported to us.  Until then the process must not
 * lose its tracer: without one the fault would end it.
 */

#if HAS_REMOTE_CALLS

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stopped_thread {
    pid_t pid, tid;
    struct registers registers; /* with which it resumes */
    bool restarts_syscall;      /* by restarts_syscall(): the caller sets it after thread_save() */
    uint64_t blocked;           /* its signal mask, as the kernel has it */
    const char *called;         /* "dlopen()", for messages; the caller sets it */
};

enum stop_result { STOP_SEEN, STOP_TIMEOUT, STOP_EXITED };

/* Waits so many milliseconds for the next stop of a thread that we trace, of which *status becomes
 * waitpid()'s; STOP_EXITED: it has ended instead. */
enum stop_result wait_for_stop(pid_t tid, long ms, int *status);

/* Reads the registers and the signal mask of the stopped thread, whose pid and tid are set; false
 * and errno if ptrace() fails. */
bool thread_save(struct stopped_thread *thread);

/* Gives the stopped thread back what thread_save() has read; false and errno if ptrace() fails. */
bool thread_restore(struct stopped_thread *thread);

/* Calls the function at that address in the saved thread, with text and RTLD_NOW as its arguments;
 * *result becomes what it returns.  The thread is stopped again afterwards, with any registers, and
 * ran no handler of the program's meanwhile.  NULL, or why the call failed. */
const char *thread_call(struct stopped_thread *thread, unsigned long function, const char *text,
                        unsigned long *result);

#endif

/* ---------------------------------------------------------------- attach ptrace */

/*
 * Attaching with ptrace(): a call of dlopen() in one of the program's threads.
 *
 * The thread is stopped for the milliseconds of that call only; the others run.  It must be at a
 * safe point, where dlopen() can't meet a lock that the thread itself holds (malloc's, the dynamic
 * linker's): in CPython's own code and in no signal handler, or asleep in a system call for a
 * while. Afterwards it resumes as if nothing had happened; the shim's own thread does the rest.  If
 * stap-python is killed while no call is made, the kernel releases the thread (PTRACE_SEIZE).
 */

/* Loads the shim into the process, or has one that is detached there attach again.  NULL, or why
 * that fails: no thread reached a safe point, the process is another by now, the kernel or dlopen()
 * refuses, or this is an architecture without remote_registers.h's calls. */
const char *attach_by_ptrace(const struct process *process);

/* Why the filters of a thread of it forbid what the shim calls, or what can't be known of them:
 * seccomp_filter_refusal().  NULL: they don't, or this is an architecture without these calls. */
const char *refused_to_thread(pid_t pid, pid_t tid);

/* ---------------------------------------------------------------- attach root */

/*
 * The shim in the root and the mount namespace of a process to attach to.
 *
 * If the process's root lacks the shim, our file is mounted there, read-only: then tracers, which
 * find the shim by its file or (SystemTap) by its path within the process's root, see the process
 * like any other.  That needs Linux 5.12 and CAP_SYS_ADMIN.
 */

/* Sets process->load_path to where the process can load the shim from, and mounts it there if it
 * must (process->is_mounted: at the shim's own path).  NULL, or why there is no such place. */
const char *mount_shim(struct process *process);

/* Whether process->load_path, in another root or mount namespace, leads to our own shim. */
bool load_path_is_our_shim(const struct process *process);

/* Why the file to which process->load_path leads in the process must not be loaded: it does not
 * exist, or, in another root, a user can change it who has no right to change the process.  NULL:
 * it may be loaded. */
const char *root_refusal(const struct process *process);

#endif
