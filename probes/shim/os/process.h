/*
 * The process: debug messages, pages at fixed addresses, detection of forks, the main thread's end,
 * seccomp filters, the clock.  All functions: any thread, with or without the GIL, no lock,
 * unless a declaration says otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* ---------------------------------------------------------------- debug */

/* Whether PYTHON_STAP_DEBUG is set.  Written by core/loader.c. */
extern bool debug_on;

/* If debug_on, prints one line on stderr: what the shim does, or why it does not.  format has no
 * newline at its end.  errno stays. */
__attribute__((format(printf, 1, 2))) void debug_log(const char *format, ...);

/* ---------------------------------------------------------------- pages at fixed addresses */

/* Maps zeroed memory at the first of these addresses that is free.  The tapset and stap-python look
 * for the page there.  NULL: the program uses all of them, or the kernel does not give them to
 * programs. */
void *map_fixed_page(const uint64_t *addresses, size_t count, size_t size, int protection);

/* ---------------------------------------------------------------- detection of forks */

/* Returns a word that is 1 in this process, and 0 in each child with memory of its own.  The word
 * is also 0 in a child of _Fork() or clone(), for which the C library calls no handlers.  Each call
 * maps a page, which is never freed.  NULL: the kernel does not support it, or memory ran out. */
int *zero_in_child_word(void);

/* ---------------------------------------------------------------- the main thread's end */

/* Records the calling thread for is_last_thread(), if it is the main thread. */
void main_thread_remember(void);

/* The number of this process's threads; 0: unknown.  Makes system calls. */
int thread_count(void);

/* Whether the main thread has ended and the calling thread is the last one.  If the main thread
 * ends by pthread_exit(), the process lives on until its last thread ends.  The watcher must not be
 * that thread.  False if the main thread was not recorded.  Called on the watcher's thread; makes
 * system calls only once the main thread has ended. */
bool is_last_thread(void);

/* ---------------------------------------------------------------- seccomp filters */

/* Whether any thread has more seccomp filters than the calling thread, which must be the watcher's.
 * Makes system calls. */
bool any_thread_has_seccomp(void);

/* A number that grows with the number of seccomp filters of the calling thread; never 0.  Makes
 * system calls. */
long seccomp_own(void);

/* ---------------------------------------------------------------- ticks */

/* A tick is a step of the processor's counter, which is read in half the time of clock_gettime().
 * If the counter is not reliable, a tick is a nanosecond of clock_gettime(). */
extern bool ticks_use_counter __attribute__((visibility("hidden"))); /* read without the GOT */

static inline uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(ticks_use_counter, 1))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (__builtin_expect(ticks_use_counter, 1)) {
        uint64_t now;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
        return now;
    }
#endif
    return clock_ns();
}

/* Sets ticks_use_counter at its first call, which must precede the first ticks_now(). */
void ticks_choose_source(void);

/* Compares the counter with the clock, for ticks_to_ns().  One thread at a time. */
void ticks_calibrate(void);

/* By the latest ticks_calibrate(). */
uint64_t ticks_to_ns(uint64_t ticks);

#endif
