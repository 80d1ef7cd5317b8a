/*
 * Counts the tracers of function returns.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tracer.h"

#include "filter.h"

enum {
    FILTERED = MARKER_BIT(filtered__function__entry) | MARKER_BIT(filtered__function__return),
    RETURNS = MARKER_BITS(function__return),
};

atomic_uint tracer_number, tracer_attached, tracer_known;

/* Of TRACER_PLAIN alone; and filter_version() as the hooks were last set. */
static atomic_uint plain_number, known_filter;

void tracer_wants(unsigned wanted)
{
    wanted &= TRACER_PLAIN | FILTERED;
    unsigned fresh = wanted & ~atomic_exchange(&tracer_known, wanted);
    unsigned filter = wanted & FILTERED ? filter_version() : 0;
    bool other = atomic_exchange(&known_filter, filter) != filter && filter;
    if ((fresh & TRACER_PLAIN) && (wanted & MARKER_BIT(function__return)))
        atomic_fetch_add(&plain_number, 1);
    if (fresh && (wanted & RETURNS))
        atomic_fetch_add(&tracer_attached, 1);
    if ((fresh || other) && (wanted & RETURNS))
        atomic_fetch_add(&tracer_number, 1);
}

struct tracer_enters tracer_catch_up(struct tracer_seen *seen)
{
    struct tracer_seen before = *seen;
    *seen = (struct tracer_seen){tracer_number, plain_number, known_filter};
    return (struct tracer_enters){
        .plain = before.plain != seen->plain && TRACER_ON(function__entry) &&
                 TRACER_ON(function__return),
        .filtered = before.filter != seen->filter && TRACER_ON(filtered__function__entry) &&
                    TRACER_ON(filtered__function__return),
        .filter_before = before.filter,
    };
}
