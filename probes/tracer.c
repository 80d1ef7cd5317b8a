/*
 * Counts the tracers of function returns, and keeps for which frames they had entries.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tracer.h"

#include "filter.h"

#include <stdint.h>

enum { RETURNS = MARKER_BITS(function__return) };

atomic_uint replay_generation, tracer_plain, tracer_filtered, markers_armed;

void replay_set_markers(unsigned wanted)
{
    bool other = filter_set_armed(wanted) && (wanted & FILTERED_FUNCTION_MARKERS);
    unsigned fresh = wanted & ~atomic_exchange(&markers_armed, wanted);
    fresh &= FUNCTION_MARKERS | FILTERED_FUNCTION_MARKERS;
    if ((fresh & FUNCTION_MARKERS) && (wanted & MARKER_BIT(function__return)))
        atomic_fetch_add(&tracer_plain, 1);
    if ((fresh & FILTERED_FUNCTION_MARKERS) && (wanted & MARKER_BIT(filtered__function__return)))
        atomic_fetch_add(&tracer_filtered, 1);
    if ((fresh || other) && (wanted & RETURNS))
        atomic_fetch_add(&replay_generation, 1);
}

struct replay_request replay_begin(struct replay_state *seen)
{
    struct replay_state before = *seen;
    *seen = (struct replay_state){replay_generation, tracer_plain, filter_armed_word};
    return (struct replay_request){
        .plain = before.plain != seen->plain && MARKER_ARMED(function__entry) &&
                 MARKER_ARMED(function__return),
        .filtered = before.filter != seen->filter && MARKER_ARMED(filtered__function__entry) &&
                    MARKER_ARMED(filtered__function__return),
        .filter_replayed = before.filter,
    };
}

/* ---------------------------------------------------------------- entries */

/* The frames whose entry was reported, and whose return was not yet: each in one of the places of
 * the bucket that its address leads to, where no other frame is at that address meanwhile.  A place
 * is free if it is 0, or has a frame of which an earlier tracer heard.  There is no lock: a frame's
 * own thread takes a place by an atomic exchange, and frees it.  If a bucket has had no room for a
 * frame, all returns of its frames are reported, until another tracer comes. */
enum { BUCKET_BITS = 12, PLACES = 7 };
struct bucket {
    _Alignas(64) _Atomic uint64_t places[PLACES];
    atomic_uint overflowed; /* the tracer's number */
};
static struct bucket plain_entries[1 << BUCKET_BITS], filtered_entries[1 << BUCKET_BITS];

/* Fibonacci hashing: the stacks of threads and greenlets are at like distances from each other. */
static inline struct bucket *bucket_of(struct bucket *buckets, const void *frame)
{
    return &buckets[(uintptr_t)frame * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BUCKET_BITS)];
}

/* What the place of a frame has: its address, of which Linux uses 48 bits unless it is asked for
 * more, and the tracer's number. */
static inline uint64_t entry_of(const void *frame, unsigned tracer)
{
    return ((uintptr_t)frame & UINT64_C(0xffffffffffff)) | (uint64_t)tracer << 48;
}

static inline void keep(struct bucket *buckets, const void *frame, unsigned tracer)
{
    struct bucket *bucket = bucket_of(buckets, frame);
    uint64_t entry = entry_of(frame, tracer);
    for (int i = 0; i < PLACES; i++) {
        uint64_t there = atomic_load_explicit(&bucket->places[i], memory_order_relaxed);
        if (there == entry)
            return;
        if ((!there || there >> 48 != entry >> 48) &&
            atomic_compare_exchange_strong_explicit(&bucket->places[i], &there, entry,
                                                    memory_order_relaxed, memory_order_relaxed))
            return;
    }
    atomic_store_explicit(&bucket->overflowed, tracer, memory_order_relaxed);
}

/* Whether the entry of the frame was reported, or may have been. */
static inline bool take_out(struct bucket *buckets, const void *frame, unsigned tracer)
{
    struct bucket *bucket = bucket_of(buckets, frame);
    uint64_t entry = entry_of(frame, tracer);
    for (int i = 0; i < PLACES; i++) {
        uint64_t there = atomic_load_explicit(&bucket->places[i], memory_order_relaxed);
        if (there == entry) {
            atomic_compare_exchange_strong_explicit(&bucket->places[i], &there, 0,
                                                    memory_order_relaxed, memory_order_relaxed);
            return true;
        }
    }
    return atomic_load_explicit(&bucket->overflowed, memory_order_relaxed) == tracer;
}

static inline unsigned number_of(atomic_uint *tracer)
{
    return atomic_load_explicit(tracer, memory_order_relaxed);
}

void tracer_keep_entry(const void *frame, struct markers_due fires)
{
    if (fires.plain && marker_is_armed(MARKER_BIT(function__return)))
        keep(plain_entries, frame, number_of(&tracer_plain));
    if (fires.filtered && marker_is_armed(MARKER_BIT(filtered__function__return)))
        keep(filtered_entries, frame, number_of(&tracer_filtered));
}

/* What the hooks are set for decides, not the semaphores, which a tracer that detaches lowers one
 * after the other. */
struct markers_due tracer_with_entry(const void *frame, struct markers_due fires)
{
    if (fires.plain && marker_is_armed(MARKER_BIT(function__entry)))
        fires.plain = take_out(plain_entries, frame, number_of(&tracer_plain));
    if (fires.filtered && marker_is_armed(MARKER_BIT(filtered__function__entry)))
        fires.filtered = take_out(filtered_entries, frame, number_of(&tracer_filtered));
    return fires;
}
