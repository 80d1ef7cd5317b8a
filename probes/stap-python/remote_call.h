/*
 * Calls a function in a stopped thread of another process, with ptrace().
 *
 * The call returns to address 0, and that fault is reported to us.  Until then the process must not
 * lose its tracer: without one the fault would end it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef REMOTE_CALL_H
#define REMOTE_CALL_H

#include "remote_registers.h"

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
#endif
