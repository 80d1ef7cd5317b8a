/*
 * See remote_registers.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "remote_registers.h"

#if HAS_REMOTE_CALLS

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

/* Reads one of ptrace()'s sets; how much there is of it, or -1 and errno. */
static ssize_t set_read(pid_t tid, int set, void *bytes, size_t size)
{
    struct iovec place = {bytes, size};
    return ptrace(PTRACE_GETREGSET, tid, (void *)(intptr_t)set, &place) ? -1
                                                                        : (ssize_t)place.iov_len;
}

static bool set_write(pid_t tid, int set, const void *bytes, size_t size)
{
    struct iovec place = {(void *)(uintptr_t)bytes, size};
    return ptrace(PTRACE_SETREGSET, tid, (void *)(intptr_t)set, &place) == 0;
}

/* Reads the set, if the kernel and the processor have it. */
static bool read_vectors(pid_t tid, int set, struct registers *registers)
{
    ssize_t size = set_read(tid, set, registers->vectors, sizeof registers->vectors);
    if (size <= 0)
        return false;
    registers->vectors_set = set;
    registers->vectors_size = (size_t)size;
    return true;
}

bool general_write(pid_t tid, const struct user_regs_struct *general)
{
    return set_write(tid, NT_PRSTATUS, general, sizeof *general);
}

bool registers_write(pid_t tid, const struct registers *registers)
{
    return set_write(tid, registers->vectors_set, registers->vectors, registers->vectors_size) &&
           general_write(tid, &registers->general);
}

#ifdef __x86_64__

enum { CS_64 = 0x33 }; /* the code segment of 64-bit code */

bool general_read(pid_t tid, struct user_regs_struct *general)
{
    if (set_read(tid, NT_PRSTATUS, general, sizeof *general) != sizeof *general)
        return false;
    errno = ENOTSUP;
    return general->cs == CS_64;
}

bool registers_read(pid_t tid, struct registers *registers)
{
    return general_read(tid, &registers->general) && read_vectors(tid, NT_X86_XSTATE, registers);
}

unsigned long sp_of(const struct user_regs_struct *general)
{
    return general->rsp;
}

unsigned long pc_of(const struct user_regs_struct *general)
{
    return general->rip;
}

unsigned long return_value_of(const struct user_regs_struct *general)
{
    return general->rax;
}

bool maybe_outside_syscall(const struct user_regs_struct *general)
{
    return (long)general->orig_rax < 0;
}

bool was_sleeping_in_syscall(const struct user_regs_struct *general, unsigned long number,
                             unsigned long stack, unsigned long next)
{
    return general->orig_rax == number && general->rsp == stack && general->rip == next;
}

/* The kernel does that when the thread resumes. */
bool restarts_syscall(struct user_regs_struct *general, unsigned long next)
{
    (void)general;
    (void)next;
    return false;
}

void set_up_call(struct user_regs_struct *general, unsigned long function, unsigned long first,
                 unsigned long second)
{
    general->rdi = first;
    general->rsi = second;
    general->rax = 0;
    general->rsp = first - sizeof(unsigned long); /* the return address */
    general->rip = function;
    general->eflags &= ~0x400UL; /* the direction flag */
    general->orig_rax = -1UL;    /* no system call to restart */
}

/* /proc/PID/status tells of it. */
bool has_shadow_stack(pid_t tid)
{
    (void)tid;
    return false;
}

#else /* aarch64 */

enum {
    SVC = 4,           /* the size of the instruction that makes a system call */
    BTYPE = 0xc00,     /* in pstate: how the next instruction was branched to, for BTI */
    SVE_SET = 0x405,   /* NT_ARM_SVE, which has the 128-bit registers, too */
    GCS_SET = 0x410,   /* NT_ARM_GCS, from Linux 6.13 on */
    GCS_ENABLED = 0x1, /* in its first word */
};

bool general_read(pid_t tid, struct user_regs_struct *general)
{
    errno = ENOTSUP; /* the set of 32-bit code is smaller */
    return set_read(tid, NT_PRSTATUS, general, sizeof *general) == sizeof *general;
}

bool registers_read(pid_t tid, struct registers *registers)
{
    return general_read(tid, &registers->general) &&
           (read_vectors(tid, SVE_SET, registers) || read_vectors(tid, NT_PRFPREG, registers));
}

unsigned long sp_of(const struct user_regs_struct *general)
{
    return general->sp;
}

unsigned long pc_of(const struct user_regs_struct *general)
{
    return general->pc;
}

unsigned long return_value_of(const struct user_regs_struct *general)
{
    return general->regs[0];
}

/* When the thread stops, the kernel has already forgotten that it was in a system call. */
bool maybe_outside_syscall(const struct user_regs_struct *general)
{
    (void)general;
    return true;
}

/* The thread has an error in x0, or is set back to the instruction before. */
bool was_sleeping_in_syscall(const struct user_regs_struct *general, unsigned long number,
                             unsigned long stack, unsigned long next)
{
    return general->regs[8] == number && general->sp == stack &&
           (general->pc == next || general->pc == next - SVC);
}

/* Whether the system call sleeps for a while that its arguments give, not until some time: the
 * kernel then resumes it as restart_syscall(), which knows what is left, but does not show us that
 * it would. */
static bool sleeps_for_a_while(const struct user_regs_struct *general)
{
    const unsigned long long *regs = general->regs;
    switch (regs[8]) {
    case SYS_nanosleep:
        return true;
    case SYS_clock_nanosleep:
        return !(regs[1] & TIMER_ABSTIME);
    case SYS_futex:
        return (regs[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && regs[3];
    default: /* these write what is left where their arguments are, or fail with EINTR */
        return false;
    }
}

bool restarts_syscall(struct user_regs_struct *general, unsigned long next)
{
    if (general->pc == next)
        return false;
    if (sleeps_for_a_while(general))
        general->regs[8] = SYS_restart_syscall;
    return true;
}

void set_up_call(struct user_regs_struct *general, unsigned long function, unsigned long first,
                 unsigned long second)
{
    general->regs[0] = first;
    general->regs[1] = second;
    general->regs[29] = 0; /* the frame pointer */
    general->regs[30] = 0; /* the return address */
    general->sp = first - 64;
    general->pc = function;
    general->pstate &= ~(unsigned long long)BTYPE;
}

bool has_shadow_stack(pid_t tid)
{
    uint64_t state[3];
    return set_read(tid, GCS_SET, state, sizeof state) > 0 && (state[0] & GCS_ENABLED);
}

#endif
#endif
