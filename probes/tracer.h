/*
 * Which tracer of function returns is attached.  Frames that began before it attached are reported
 * to it as each thread is next seen: their entries at once, so that every return has its entry and
 * what a tracer indents comes out even.  The same where patterns begin to name a function.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TRACER_H
#define TRACER_H

#include "wanted.h"

/* Which markers of an event fire: its own, and the filtered one. */
struct markers_due {
    bool plain, filtered;
};

/* Counted: another number is another tracer, or other patterns. */
extern atomic_uint replay_generation
    __attribute__((visibility("hidden"))); /* read without the GOT */

/* Counted: another number is another tracer of all functions, or of filtered ones, whatever the
 * patterns. */
extern atomic_uint tracer_plain __attribute__((visibility("hidden"))); /* read without the GOT */
extern atomic_uint tracer_filtered __attribute__((visibility("hidden")));

/* What the hooks are set for; the semaphores may already say more, or less. */
extern atomic_uint markers_armed __attribute__((visibility("hidden"))); /* read without the GOT */

/* Function entries and returns: of all functions, and the filtered ones. */
enum {
    FUNCTION_MARKERS = MARKER_BIT(function__entry) | MARKER_BIT(function__return),
    FILTERED_FUNCTION_MARKERS =
        MARKER_BIT(filtered__function__entry) | MARKER_BIT(filtered__function__return),
};

/* Whether the hooks are set for one of these markers. */
static inline bool marker_is_armed(unsigned markers)
{
    return atomic_load_explicit(&markers_armed, memory_order_relaxed) & markers;
}

/* Whether this marker is wanted, and the hooks are set for it: a filtered one has no patterns
 * before, and a return no entry. */
#define MARKER_ARMED(name) (MARKER_ON(name) && marker_is_armed(MARKER_BIT(name)))

/* Called by the hooks that feed function markers, when they are set: these markers are wanted in
 * the process now.  GIL held; from 3.12 on several interpreters, each with a GIL of its own, may
 * call it at once. */
void replay_set_markers(unsigned wanted);

/* What a thread has caught up with. */
struct replay_state {
    unsigned number, /* replay_generation then */
        plain,       /* tracer_plain */
        filter;      /* filter_revision() */
};

/* Whether the thread has not caught up. */
static inline bool replay_is_due(const struct replay_state *seen)
{
    return seen->number != atomic_load_explicit(&replay_generation, memory_order_relaxed);
}

/* Which frames that run already are to be entered: those of tracers with patterns only if they were
 * not by the earlier ones. */
struct replay_request {
    bool plain, filtered;
    unsigned filter_replayed;
};

/* The thread catches up.  On a thread that runs Python, GIL held. */
struct replay_request replay_begin(struct replay_state *seen);

/* Keeps, until the frame returns, to which tracers its entry is reported: the present ones of these
 * markers.  From 3.12 on; up to 3.11 the frame hook keeps it, on the C stack.  On a thread that
 * runs Python, GIL held; in a free-threaded build others may be in these functions, too. */
void tracer_keep_entry(const void *frame, struct markers_due fires);

/* The frame returns.  These markers without those of a tracer to which its entry was not reported,
 * though that asks for entries: as the frame began before that came, on a stack that no thread had
 * then, a greenlet's or another interpreter's. */
struct markers_due tracer_with_entry(const void *frame, struct markers_due fires);

#endif
