/*
 * A word that is true or false, and that one of several threads may take: not an atomic_bool, whose
 * exchange is a function of libatomic's on riscv64 up to gcc 13, and no program has that for the
 * shim.
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

/* ---------------------------------------------------------------- taken */

typedef atomic_int claim_flag;

/* ---------------------------------------------------------------- futex */

/*
 * Waits and wakes by futex() itself, the one system call that all threads of the C library need, so
 * that a program which leaves its threads few (seccomp) leaves them that; but the C library ends
 * the program if it is refused.
 */

/* If Linux only has another futex(), for 64 bits of time on 32-bit machines, it is not called. */
#ifndef SYS_futex
#define SYS_futex (-1)
#endif

/* Waits so long, or until the word is another one.  False: the system call is refused. */
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

/* ---------------------------------------------------------------- thread */

/*
 * The start and the end of the watcher's thread.
 */

/* Starts a thread with no signals, which are for the program's threads, and waits until it has
 * called thread_begun(): a thread's start takes system calls that the C library does not do
 * without, and a filter for all threads may come at any time.  False: it can't be started.  Any
 * thread, no lock. */
bool thread_start(pthread_t *thread, void *(*run)(void *), void *data);

/* The calling thread has its start behind it, and has its name. */
void thread_begun(void);

/* A thread that has been joined is counted among the process's until the kernel has taken it out, a
 * moment later: waits for that, at most a tenth of a second.  3.12 and later read that count, to
 * warn of threads at a fork (Modules/posixmodule.c, warn_about_fork_with_threads). */
void thread_wait_until_gone(pid_t id);

/* ---------------------------------------------------------------- descriptors */

/*
 * The watcher's file descriptors.
 */

/* Called by the watcher before it opens a file: gives its thread an empty table of descriptors,
 * unless *left, which becomes true.  A program may close all that it doesn't know, and be given the
 * number of one that this thread is about to close; and its pipes are to end when it closes them.
 * Not under a filter, which may kill at a system call that is newer than itself.  No GIL. */
void descriptors_leave(bool *left);

/* ---------------------------------------------------------------- thread block */

/*
 * Memory that a thread keeps until it ends: tally.c has the open calls of each there.  All of it is
 * listed, so that the child of a fork can use again what was of the threads that are not there.
 */

/* The calling thread's memory, made twice as large, or its first one (NULL), of at least *size
 * bytes; *size becomes what it has.  NULL: memory ran out, and its own stays as it is.  With or
 * without the GIL; nothing waits under its lock but for malloc(). */
void *thread_block_grow(void *own, size_t *size);

/* At the thread's end, without the GIL. */
void thread_block_free(void *own);

/* In the child of a fork, in which no other thread is; own may be NULL. */
void thread_blocks_after_fork(void *own);

#endif
