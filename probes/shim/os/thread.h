/*
 * Threads: claim flags, waits by futex, the watcher's thread and its file descriptors, memory of a
 * thread.  All functions: any thread, with or without the GIL, unless a declaration says
 * otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---------------------------------------------------------------- claim flag */

/* 0 or 1.  Not atomic_bool: on riscv64, gcc up to 13 needs libatomic for its exchange, and a
 * program need not have loaded that library. */
typedef atomic_int claim_flag;

/* ---------------------------------------------------------------- futex */

/* The C library's threads need the system call futex(), so seccomp filters normally allow it.
 * These functions call it directly: the C library ends the program if futex() is refused. */

/* On a 32-bit architecture that has only futex_time64() these functions return false. */
#ifndef SYS_futex
#define SYS_futex (-1)
#endif

/* Waits for us microseconds, or until the word differs from value.  May return early.  False: the
 * system call is refused. */
static inline bool futex_wait_us(atomic_uint *word, unsigned value, long us)
{
    struct {
        long seconds, nanoseconds; /* the kernel's struct timespec */
    } time = {us / 1000000, us % 1000000 * 1000};
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0) == 0 ||
           errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR;
}

/* False: the system call is refused. */
static inline bool futex_wake(atomic_uint *word)
{
    return syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0) >= 0;
}

/* ---------------------------------------------------------------- start and end of a thread */

/* Starts a thread with all signals blocked: signals are for the program's threads.  Waits until
 * that thread has called thread_begun(), at most two seconds: a seccomp filter that the program
 * sets for all threads may refuse system calls that the C library makes at the start of a thread.
 * False: the thread can't be started. */
bool thread_start(pthread_t *thread, void *(*run)(void *), void *data);

/* Called by the new thread after its start, when it has its name. */
void thread_begun(void);

/* Waits, at most a tenth of a second, until the kernel no longer counts a thread that was joined.
 * CPython 3.12 and later warn of a fork by that count (Modules/posixmodule.c:
 * warn_about_fork_with_threads()). */
void thread_wait_until_gone(pid_t id);

/* ---------------------------------------------------------------- the watcher's descriptors */

/* Gives the calling thread a table of descriptors of its own (Linux 5.9), empty but for stderr if
 * debug_on.  Does nothing if *left; sets *left.  Called by the watcher before it opens a file.  In
 * a shared table, the program may close the watcher's descriptor and reuse its number, and the
 * watcher would then close the program's file.  Also, a pipe of the program's must end when the
 * program closes it.  Does nothing under a seccomp filter, which may kill a thread for a system
 * call that it does not know. */
void descriptors_leave(bool *left);

/* ---------------------------------------------------------------- memory of a thread */

/* A block is memory that a thread keeps until it ends.  All blocks are on lists, so the child of a
 * fork can reuse those of threads that it does not have. */

/* Doubles own, the calling thread's block.  own NULL: returns a first block, of at least *size
 * bytes.  Sets *size to the block's size.  NULL: memory ran out, and own stays valid.  Under this
 * function's lock nothing waits but realloc(). */
void *thread_block_grow(void *own, size_t *size);

/* Called at the thread's end, without the GIL. */
void thread_block_free(void *own);

/* Called in the child of a fork, which has no other thread; own: the calling thread's block, or
 * NULL. */
void thread_blocks_after_fork(void *own);

#endif
