/*
 * Which markers the shim fires: the enabled ones, except those that a tracer probes as native
 * markers of the interpreter.  None while the shim is detached.  Any thread, no lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_ENABLED_H
#define MARKERS_ENABLED_H

#include <stdatomic.h>

#include "markers/markers.h"

/* ---------------------------------------------------------------- enabled markers */

#define MARKER_BIT(name) (1u << MARKER_##name)
#define MARKER_BITS(name) (MARKER_BIT(name) | MARKER_BIT(filtered__##name)) /* both of an event */
_Static_assert(MARKERS <= 32, "a bit for each marker");

/* Markers that fire only for functions that match the patterns of markers/filter.h. */
enum {
    FILTERED_MARKERS =
        MARKER_BIT(filtered__function__entry) | MARKER_BIT(filtered__function__return) |
        MARKER_BIT(filtered__line) | MARKER_BIT(filtered__cfunction__entry) |
        MARKER_BIT(filtered__cfunction__return) | MARKER_BIT(filtered__exception__raise),
};

/* PYTHON_STAP=all: the shim fires a marker even while a tracer probes the native one.  Written by
 * core/loader.c before any interpreter is armed. */
extern bool fire_native_too;

/* Markers, as bits, that the shim must not fire: those that a tracer probes as native ones, or all
 * once detach is requested.  As of the latest markers_enabled(), which the watcher calls every 50
 * ms, unless it is idle. */
extern atomic_uint markers_left_to_cpython;

/* Whether to fire the marker: it is enabled now, and the shim is its source.  A hook must test this
 * for each event, as the hook may be set for other markers only. */
#define MARKER_ON(name) \
    (__builtin_expect(*(const volatile unsigned short *)&python_##name##_semaphore, 0) && \
     !(atomic_load_explicit(&markers_left_to_cpython, memory_order_relaxed) & MARKER_BIT(name)))

/* Whether to fire an event's marker or its filtered marker. */
#define EVENT_ON(name) (MARKER_ON(name) || MARKER_ON(filtered__##name))

/* The markers that the shim fires now, as bits.  GIL held, or on the watcher's thread, which stops
 * reading before CPython ends: the semaphores of native markers are unmapped with CPython. */
unsigned markers_enabled(void);

/* In the child of a fork, finds the markers whose semaphores a tracer has left raised; they are not
 * enabled from then on.  The child has inherited such a semaphore, its site was probed at the fork,
 * and in the last three calls was not, while the semaphore stayed as it was.  SystemTap leaves them
 * so in a child that is forked while a script runs (uprobes-inode.c:
 * stapiu_change_semaphore_plus()).  For the watcher, once a second. */
void markers_look_at_sites(void);

/* For the child of a fork, before its watcher starts.  Async-signal-safe. */
void markers_forked(void);

/* The sum of the shim's semaphores but those that were left raised: it changes while a tracer
 * attaches or detaches. */
unsigned semaphores_sum(void);

/* ---------------------------------------------------------------- native markers */

/* The markers, as bits, that the interpreter fires itself and that a tracer probes there now,
 * except those that are only partly live.  The shim must not fire these: an event has one source.
 * The first call reads the interpreter's ELF file.  With or without the GIL, but only while the
 * interpreter stays mapped: the call reads its memory. */
unsigned native_enabled(void);

#endif
