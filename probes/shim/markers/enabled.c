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

/* ---------------------------------------------------------------- what ended tracers have left */

enum { LOOKS = 3 };

/* By marker: whether it was probed at the fork, and its semaphore has been raised since; what the
 * semaphore was at the last look; and at how many looks in a row no site was probed.  Written at
 * the fork, and then by the watcher. */
static struct {
    bool is_inherited;
    unsigned short raised;
    unsigned char looks;
} seen[MARKERS];

/* A semaphore that is as an ended tracer has left it; 0: it is not.  Written by the watcher. */
static _Atomic(unsigned short) left[MARKERS];

/* The semaphore; 0 if it was left raised. */
static unsigned short raised_now(int marker)
{
    unsigned short raised = *marker_info[marker].semaphore;
    return raised != left[marker] ? raised : 0;
}

void markers_forked(void)
{
    unsigned probed = markers_probed();
    for (int i = 0; i < MARKERS; i++)
        seen[i].is_inherited |= *marker_info[i].semaphore && probed >> i & 1;
}

static void look_at(int marker, bool is_probed)
{
    unsigned short raised = *marker_info[marker].semaphore;
    bool changed = raised != seen[marker].raised;
    seen[marker].raised = raised;
    seen[marker].is_inherited &= raised != 0;
    if (changed || is_probed || !seen[marker].is_inherited)
        seen[marker].looks = 0;
    else if (seen[marker].looks < LOOKS && ++seen[marker].looks == LOOKS)
        debug_log("%s: a tracer that has ended has left its semaphore at %u",
                  marker_info[marker].name, raised);
    left[marker] = seen[marker].looks == LOOKS ? raised : 0;
}

void markers_look_at_sites(void)
{
    unsigned inherited = 0, probed;
    for (int i = 0; i < MARKERS; i++)
        inherited |= seen[i].is_inherited ? 1u << i : 0;
    probed = inherited ? markers_probed() : 0;
    for (int i = 0; i < MARKERS; i++)
        if (inherited >> i & 1)
            look_at(i, probed >> i & 1);
}

/* ---------------------------------------------------------------- what is enabled */

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
        if (raised_now(i))
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
        sum += raised_now(i);
    return sum;
}
