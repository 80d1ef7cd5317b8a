/*
 * Counts the tracers of function returns.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tracer.h"

#include "filter.h"

enum { RETURNS = MARKER_BITS(function__return) };

atomic_uint tracer_number, tracer_plain, tracer_filtered, tracer_known;

void tracer_wants(unsigned wanted)
{
    bool other = filter_arm(wanted) && (wanted & TRACER_FILTERED);
    unsigned fresh = wanted & ~atomic_exchange(&tracer_known, wanted);
    fresh &= TRACER_PLAIN | TRACER_FILTERED;
    if ((fresh & TRACER_PLAIN) && (wanted & MARKER_BIT(function__return)))
        atomic_fetch_add(&tracer_plain, 1);
    if ((fresh & TRACER_FILTERED) && (wanted & MARKER_BIT(filtered__function__return)))
        atomic_fetch_add(&tracer_filtered, 1);
    if ((fresh || other) && (wanted & RETURNS))
        atomic_fetch_add(&tracer_number, 1);
}

struct tracer_enters tracer_catch_up(struct tracer_seen *seen)
{
    struct tracer_seen before = *seen;
    *seen = (struct tracer_seen){tracer_number, tracer_plain, filter_armed};
    return (struct tracer_enters){
        .plain = before.plain != seen->plain && TRACER_ON(function__entry) &&
                 TRACER_ON(function__return),
        .filtered = before.filter != seen->filter && TRACER_ON(filtered__function__entry) &&
                    TRACER_ON(filtered__function__return),
        .filter_before = before.filter,
    };
}
