/*
 * Waits and wakes by futex() itself, the one system call that all threads of the C library need, so
 * that a program which leaves its threads few (seccomp) leaves them that; but the C library ends
 * the program if it is refused.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FUTEX_H
#define FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

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

#endif
