/*
 * Time by the processor's own counter, which is read in half the time that clock_gettime() takes;
 * by clock_gettime() where that can't be relied on.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TICKS_H
#define TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

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
