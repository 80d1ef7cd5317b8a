/*
 * Reads the semaphores of the shim's markers.  No lock.
 *
 * SPDX-License-Identifier: MIT
 */

#include "markers/enabled.h"

#include "markers/detach.h"
#include "os/process.h"

bool fire_native_too;
atomic_uint markers_left_to_cpython;

static void log_silent(unsigned silent)
{
    char names[MARKERS_TEXT];
    debug_log("left to CPython's own markers, which a tracer probes: %s",
              markers_to_text(silent, names));
}

unsigned markers_enabled(void)
{
    unsigned probed = 0, silent = 0;
    for (int i = 0; i < MARKERS; i++)
        if (*marker_info[i].semaphore)
            probed |= 1u << i;
    bool detached = detach_is_requested();
    if (detached)
        silent = ~0u;
    else if (probed && !fire_native_too)
        silent = native_enabled();
    if (atomic_exchange(&markers_left_to_cpython, silent) != silent && !detached)
        log_silent(silent);
    return probed & ~silent;
}

unsigned semaphores_sum(void)
{
    unsigned sum = 0;
    for (int i = 0; i < MARKERS; i++)
        sum += *marker_info[i].semaphore;
    return sum;
}
