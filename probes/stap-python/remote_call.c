/*
 * See remote_call.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "remote_call.h"

#if HAS_REMOTE_CALLS

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "clock.h"
#include "file.h"
#include "text.h"

enum { RED_ZONE = 128 }; /* of x86-64, below the stack pointer; aarch64 has none */

/* After so long the user is told that the function has not returned; a test takes less. */
#ifndef CALL_MS
#define CALL_MS 60000
#endif

enum stop_result wait_for_stop(pid_t tid, long ms, int *status)
{
    long long end = monotonic_ms() + ms;
    for (;;) {
        pid_t got = waitpid(tid, status, __WALL | WNOHANG);
        if (got)
            return got == tid && WIFSTOPPED(*status) ? STOP_SEEN : STOP_EXITED;
        if (monotonic_ms() > end)
            return STOP_TIMEOUT;
        sleep_ms(1);
    }
}

bool thread_save(struct stopped_thread *thread)
{
    thread->restarts_syscall = false;
    return registers_read(thread->tid, &thread->registers) &&
           ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof thread->blocked,
                  &thread->blocked) == 0;
}

/* No handler of the program's may run within the call, nor leave it by longjmp(). */
static bool block_signals(const struct stopped_thread *thread)
{
    uint64_t all = ~(1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1) | 1ULL << (SIGILL - 1) |
                     1ULL << (SIGFPE - 1));
    return ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof all, &all) == 0;
}

/* Whether a signal is pending that the thread would take. */
static bool has_pending_signal(const struct stopped_thread *thread)
{
    const char *path = format("/proc/%d/task/%d/status", thread->pid, thread->tid);
    const char *status = read_file(path, 65536);
    const char *own = status_field(status, "SigPnd"), *shared = status_field(status, "ShdPnd");
    return own && shared &&
           ((strtoull(own, NULL, 16) | strtoull(shared, NULL, 16)) & ~thread->blocked);
}

static bool sleeps(const struct stopped_thread *thread)
{
    const char *path = format("/proc/%d/task/%d/syscall", thread->pid, thread->tid);
    const char *text = read_file(path, 256);
    return text && strncmp(text, "running", 7) != 0;
}

/* A signal ends a system call, or does not, by what the kernel finds the thread in: so it makes its
 * system call again before it takes signals. */
static bool make_system_call(const struct stopped_thread *thread)
{
    int status;
    if (ptrace(PTRACE_CONT, thread->tid, NULL, NULL) != 0)
        return false;
    for (int i = 0; i < 20 && !sleeps(thread); i++)
        sleep_ms(1);
    if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) != 0)
        return false;
    errno = ETIMEDOUT;
    return wait_for_stop(thread->tid, 2000, &status) == STOP_SEEN;
}

bool thread_restore(struct stopped_thread *thread)
{
    return registers_write(thread->tid, &thread->registers) &&
           (!thread->restarts_syscall || !has_pending_signal(thread) || make_system_call(thread)) &&
           ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof thread->blocked,
                  &thread->blocked) == 0;
}

static bool write_to(pid_t pid, unsigned long address, const void *bytes, size_t size)
{
    struct iovec ours = {(void *)(uintptr_t)bytes, size}, its = {(void *)address, size};
    return process_vm_writev(pid, &ours, 1, &its, 1, 0) == (ssize_t)size;
}

/* Puts the thread at the function's first instruction, as if it had been called from address 0. */
static bool enter(struct stopped_thread *thread, unsigned long function, const char *text)
{
    static const unsigned long nowhere;
    struct user_regs_struct now = thread->registers.general;
    unsigned long place = (sp_of(&now) - RED_ZONE - strlen(text) - 1) & ~63UL;
    set_up_call(&now, function, place, RTLD_NOW);
    return block_signals(thread) && write_to(thread->pid, place, text, strlen(text) + 1) &&
           write_to(thread->pid, sp_of(&now), &nowhere, sizeof nowhere) &&
           general_write(thread->tid, &now);
}

/* Waits for the thread's next stop, however long that takes. */
static enum stop_result wait_patiently(const struct stopped_thread *thread, int *status)
{
    enum stop_result waited = wait_for_stop(thread->tid, CALL_MS, status);
    if (waited == STOP_TIMEOUT)
        fprintf(stderr,
                "stap-python: attach: %d: %s is slow in it: waiting, as to end now would "
                "kill the program\n",
                thread->pid, thread->called);
    while (waited == STOP_TIMEOUT)
        waited = wait_for_stop(thread->tid, CALL_MS, status);
    return waited;
}

const char *thread_call(struct stopped_thread *thread, unsigned long function, const char *text,
                        unsigned long *result)
{
    struct user_regs_struct now;
    int status;
    if (!enter(thread, function, text))
        return format("cannot change its thread: %s", strerror(errno));
    long signal = 0;
    while (ptrace(PTRACE_CONT, thread->tid, NULL, (void *)signal) == 0) {
        if (wait_patiently(thread, &status) == STOP_EXITED)
            break;
        signal = status >> 16 ? 0 : WSTOPSIG(status);
        if (signal != SIGSEGV && signal != SIGBUS)
            continue;
        if (general_read(thread->tid, &now) && pc_of(&now) == 0) {
            *result = return_value_of(&now);
            return NULL;
        }
        return format("%s caused a fault in it", thread->called);
    }
    return format("it ended during %s", thread->called);
}

#endif
