/*
 * Which markers the shim is to fire: those that a tracer has attached to, but for those that
 * CPython's own source serves.  Everything that fires or arms asks here; this asks nothing of them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_ENABLED_H
#define MARKERS_ENABLED_H

#include <stdatomic.h>

#include "markers/markers.h"

/* ---------------------------------------------------------------- wanted */

#define MARKER_BIT(name) (1u << MARKER_##name)
#define MARKER_BITS(name) (MARKER_BIT(name) | MARKER_BIT(filtered__##name)) /* both of an event */
_Static_assert(MARKERS <= 32, "a bit for each marker");

/* Those that heed filter.h. */
enum {
    FILTERED_MARKERS =
        MARKER_BIT(filtered__function__entry) | MARKER_BIT(filtered__function__return) |
        MARKER_BIT(filtered__line) | MARKER_BIT(filtered__cfunction__entry) |
        MARKER_BIT(filtered__cfunction__return) | MARKER_BIT(filtered__exception__raise),
};

/* Fire also what CPython's own markers report (PYTHON_STAP=all).  Set by the loader before anything
 * is armed. */
extern bool fire_native_too;

/* The markers, as bits, for which the shim is silent: because a tracer is attached to CPython's
 * own, or all while the shim is detached.  As of the latest markers_enabled(): the watcher calls it
 * every 50 ms. */
extern atomic_uint markers_left_to_cpython;

/* Whether the marker is to be fired: a tracer is attached to it right now, and the shim is its
 * source.  A hook may see an event of a marker that is not, as it is in place for others. */
#define MARKER_ON(name) \
    (__builtin_expect(*(const volatile unsigned short *)&python_##name##_semaphore, 0) && \
     !(atomic_load_explicit(&markers_left_to_cpython, memory_order_relaxed) & MARKER_BIT(name)))

/* The same of an event's marker, or its filtered one. */
#define EVENT_ON(name) (MARKER_ON(name) || MARKER_ON(filtered__##name))

/* The markers that the shim is to fire now, as bits.  It reads the semaphores, CPython's own too,
 * whose memory is unmapped with CPython: so with the GIL, or on the watcher's thread, which is
 * joined before CPython ends.  No lock. */
unsigned markers_enabled(void);

/* What the shim's semaphores add up to: changes while a tracer attaches.  Any thread, no GIL. */
unsigned semaphores_sum(void);

/* ---------------------------------------------------------------- native */

/*
 * CPython's own markers, in the interpreter that the process runs.
 */

/* The markers, as bits, that the interpreter itself fires and that a tracer probes in its file
 * right now: one event has one source, so the shim is silent for them.  The first call reads the
 * file. Called by wanted.c on any thread, without a lock, with the GIL or without it, but only
 * while the interpreter's code is sure to stay: its memory is read. */
unsigned native_enabled(void);

#endif
