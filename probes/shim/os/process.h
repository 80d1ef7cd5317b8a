/*
 * Messages on stderr about what the shim does, and why it does not, if PYTHON_STAP_DEBUG is set.
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

/* PYTHON_STAP_DEBUG is set.  Written by the loader. */
extern bool debug_on;

/* One line, without its newline.  Called from everywhere, on any thread, with the GIL or without;
 * errno stays. */
__attribute__((format(printf, 1, 2))) void debug_log(const char *format, ...);

/* ---------------------------------------------------------------- fixed page */

/*
 * Pages at addresses that are the same in every process, so that others find them: the layout's and
 * the patterns'.
 */

/* The first of these addresses that this process can have, with zeroed memory there; NULL: it has
 * none of them, as they are the program's own or beyond what the kernel gives programs.  Called by
 * the loader; no GIL. */
void *map_fixed_page(const uint64_t *addresses, size_t count, size_t size, int protection);

/* ---------------------------------------------------------------- fork word */

/*
 * Tells a process from the children that it forks.
 */

/* A word that is 1, and 0 in each child with memory of its own, even one of a fork that the C
 * library does not know of (_Fork(), clone()).  Never freed.  NULL if the kernel or memory does not
 * allow it.  Called by fork.c and markers.c, once each, on any thread, without the GIL. */
int *zero_in_child_word(void);

/* ---------------------------------------------------------------- main thread */

/*
 * The main thread's end.
 */

/* Keeps the calling thread, if it is the main one.  Called by setup.c and the watcher's start; no
 * lock, no GIL. */
void main_thread_remember(void);

/* The main thread may end alone, by pthread_exit(); then the process ends with the last of the
 * others, which must not be ours.  True: it has ended, and the calling thread is the last.  False
 * while the main thread is not known.  Called by the watcher, on its own thread, no GIL; it makes
 * system calls only once the main thread has ended. */
bool is_last_thread(void);

/* ---------------------------------------------------------------- seccomp */

/*
 * Filters of system calls (seccomp).
 */

/* Whether a thread of the program has a filter that the calling thread does not have.  Called by
 * the watcher, on its own thread, without the GIL; it makes system calls. */
bool any_thread_has_seccomp(void);

/* A number that is greater for more filters, of the calling thread; never 0.  It makes system
 * calls.
 */
long seccomp_own(void);

/* ---------------------------------------------------------------- ticks */

/*
 * Time by the processor's own counter, which is read in half the time that clock_gettime() takes;
 * by clock_gettime() where that can't be relied on.
 */

/* Whether ticks are the counter's; else nanoseconds. */
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

/* Chooses, once, before the first ticks_now(), at which one is called.  Any thread, no GIL. */
void ticks_choose_source(void);

/* Compares the counter with the clock, for ticks_to_ns().  One thread at a time. */
void ticks_calibrate(void);

/* How long so many ticks are, by the latest look. */
uint64_t ticks_to_ns(uint64_t ticks);

#endif
