/*
 * Counts the tracers of function returns.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tracer.h"

#include "wanted.h"

enum { BOTH = MARKER_BIT(function__entry) | MARKER_BIT(function__return) };

atomic_uint tracer_number;

/* What the hooks are set for; the semaphores may already say more. */
static atomic_uint known;

void tracer_wants(unsigned wanted)
{
    wanted &= BOTH;
    unsigned before = atomic_exchange(&known, wanted);
    if ((wanted & MARKER_BIT(function__return)) && (wanted & ~before))
        atomic_fetch_add(&tracer_number, 1);
}

bool tracer_enters_stack(void)
{
    return known == BOTH && MARKER_ON(function__entry) && MARKER_ON(function__return);
}
