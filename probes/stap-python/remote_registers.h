/*
 * The registers of a stopped thread of another process, and how they call a function: what differs
 * from architecture to architecture.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef REMOTE_REGISTERS_H
#define REMOTE_REGISTERS_H

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
#endif
