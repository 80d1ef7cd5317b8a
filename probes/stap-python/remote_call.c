/*
 * See remote_call.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "remote_call.h"

#ifdef __x86_64__

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "clock.h"
#include "text.h"

enum { RED_ZONE = 128 };

/* After so long the user is told that the function has not returned; a test takes less. */
#ifndef CALL_MS
#define CALL_MS 60000
#endif

enum waited wait_for_stop(pid_t tid, long ms, int *status)
{
    long end = now_ms() + ms;
    for (;;) {
        pid_t got = waitpid(tid, status, __WALL | WNOHANG);
        if (got)
            return got == tid && WIFSTOPPED(*status) ? STOPPED : GONE;
        if (now_ms() > end)
            return LATE;
        sleep_ms(1);
    }
}

bool thread_save(struct thread *thread)
{
    struct iovec xstate = {thread->xstate, sizeof thread->xstate};
    bool done = ptrace(PTRACE_GETREGS, thread->tid, NULL, &thread->registers) == 0 &&
                ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_X86_XSTATE, &xstate) == 0;
    thread->xstate_size = xstate.iov_len;
    return done && ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof thread->blocked,
                          &thread->blocked) == 0;
}

bool thread_restore(struct thread *thread)
{
    struct iovec xstate = {thread->xstate, thread->xstate_size};
    return ptrace(PTRACE_SETREGSET, thread->tid, (void *)NT_X86_XSTATE, &xstate) == 0 &&
           ptrace(PTRACE_SETREGS, thread->tid, NULL, &thread->registers) == 0 &&
           ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof thread->blocked,
                  &thread->blocked) == 0;
}

/* No handler of the program's may run within the call, nor leave it by longjmp(). */
static bool block_signals(const struct thread *thread)
{
    uint64_t all = ~(1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1) | 1ULL << (SIGILL - 1) |
                     1ULL << (SIGFPE - 1));
    return ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof all, &all) == 0;
}

static bool write_to(pid_t pid, unsigned long address, const void *bytes, size_t size)
{
    struct iovec ours = {(void *)(uintptr_t)bytes, size}, its = {(void *)address, size};
    return process_vm_writev(pid, &ours, 1, &its, 1, 0) == (ssize_t)size;
}

/* Puts the thread at the function's first instruction, as if it had been called from address 0. */
static bool enter(struct thread *thread, unsigned long function, const char *text)
{
    static const unsigned long nowhere;
    struct user_regs_struct now = thread->registers;
    now.rsp = (now.rsp - RED_ZONE - strlen(text) - 1) & ~63UL;
    now.rdi = now.rsp;
    now.rsi = 2; /* RTLD_NOW */
    now.rax = 0;
    now.rsp -= sizeof nowhere; /* the return address */
    now.rip = function;
    now.eflags &= ~0x400UL; /* the direction flag */
    now.orig_rax = -1UL;    /* no system call to restart */
    return block_signals(thread) && write_to(thread->pid, now.rdi, text, strlen(text) + 1) &&
           write_to(thread->pid, now.rsp, &nowhere, sizeof nowhere) &&
           ptrace(PTRACE_SETREGS, thread->tid, NULL, &now) == 0;
}

/* Waits for the thread's next stop, however long that takes. */
static enum waited wait_patiently(const struct thread *thread, int *status)
{
    enum waited waited = wait_for_stop(thread->tid, CALL_MS, status);
    if (waited == LATE)
        fprintf(stderr,
                "stap-python: attach: %d: dlopen() is slow in it: waiting, as to end now would "
                "kill the program\n",
                thread->pid);
    while (waited == LATE)
        waited = wait_for_stop(thread->tid, CALL_MS, status);
    return waited;
}

const char *thread_call(struct thread *thread, unsigned long function, const char *text,
                        unsigned long *result)
{
    struct user_regs_struct now;
    int status;
    if (!enter(thread, function, text))
        return format("cannot change its thread: %s", strerror(errno));
    long signal = 0;
    while (ptrace(PTRACE_CONT, thread->tid, NULL, (void *)signal) == 0) {
        if (wait_patiently(thread, &status) == GONE)
            break;
        signal = status >> 16 ? 0 : WSTOPSIG(status);
        if (signal != SIGSEGV && signal != SIGBUS)
            continue;
        if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &now) == 0 && now.rip == 0) {
            *result = now.rax;
            return NULL;
        }
        return "dlopen() caused a fault in it";
    }
    return "it ended during dlopen()";
}

#endif
