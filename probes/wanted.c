/*
 * Which markers the shim is to fire, by the semaphores that tracers raise.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wanted.h"

#include "debug.h"
#include "detach.h"
#include "native.h"

bool wanted_all;
atomic_uint wanted_silent;

static void log_silent(unsigned silent)
{
    char names[MARKERS_TEXT];
    debug_log("left to CPython's own markers, which a tracer probes: %s",
              markers_named(silent, names));
}

unsigned wanted_markers(void)
{
    unsigned probed = 0, silent = 0;
    for (int i = 0; i < MARKERS; i++)
        if (*marker_info[i].semaphore)
            probed |= 1u << i;
    bool detached = detach_is_asked();
    if (detached)
        silent = ~0u;
    else if (probed && !wanted_all)
        silent = native_probed();
    if (atomic_exchange(&wanted_silent, silent) != silent && !detached)
        log_silent(silent);
    return probed & ~silent;
}

unsigned wanted_raised(void)
{
    unsigned sum = 0;
    for (int i = 0; i < MARKERS; i++)
        sum += *marker_info[i].semaphore;
    return sum;
}
