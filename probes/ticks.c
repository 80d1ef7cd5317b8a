/*
 * SPDX-License-Identifier: MIT
 */
#include "ticks.h"

#include <pthread.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

bool ticks_use_counter;

/* When counter and clock were first compared, and what a tick is by the latest comparison. */
static uint64_t first_ticks, first_nanoseconds;
static double nanoseconds_a_tick = 1;
static bool measured;

/* Shorter than this a comparison is too rough to tell that the counter was stopped or set. */
enum { LONG_ENOUGH_NS = 100000000 };

/* Whether the counter runs at one rate, on all processors alike. */
static bool is_steady(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8); /* invariant TSC */
#elif defined(__aarch64__)
    return true; /* the architecture has it so */
#else
    return false;
#endif
}

static void begin(void)
{
    ticks_use_counter = is_steady();
    first_ticks = ticks_now();
    first_nanoseconds = clock_ns();
}

void ticks_choose_source(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
}

/* The clock stands still while the machine is suspended: the counter may not, or begin anew. */
void ticks_calibrate(void)
{
    uint64_t ticks = ticks_now() - first_ticks, nanoseconds = clock_ns() - first_nanoseconds;
    if (!ticks_use_counter || !nanoseconds || !ticks)
        return;
    double now = (double)nanoseconds / (double)ticks;
    if (measured && (now > nanoseconds_a_tick * 1.01 || now < nanoseconds_a_tick * 0.99)) {
        first_ticks += ticks;
        first_nanoseconds += nanoseconds;
        measured = false; /* or it was the first comparison that was wrong */
        return;
    }
    nanoseconds_a_tick = now;
    measured = nanoseconds >= LONG_ENOUGH_NS;
}

uint64_t ticks_to_ns(uint64_t ticks)
{
    return (uint64_t)((double)ticks * nanoseconds_a_tick + 0.5);
}
