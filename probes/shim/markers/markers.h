/*
 * The markers: for each one of python.d a number, a semaphore and a function that fires it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_MARKERS_H
#define MARKERS_MARKERS_H

#include "cpython/symbols.h"
#include "generated/markers_list.h"

#define NUMBER(name, ...) MARKER_##name,
enum marker { MARKERS_LIST(NUMBER) MARKERS };
#undef NUMBER

struct marker_info {
    const char *name;
    const volatile unsigned short *semaphore;
};
extern const struct marker_info marker_info[MARKERS];

/* python_NAME_semaphore: one for all sites of the marker; not 0 while a tracer probes it.
 * marker_NAME(): fires the marker.  Called by the hooks, GIL held, and by test/driver.c. */
#define DECLARE(name, parameters, ...) \
    extern unsigned short python_##name##_semaphore __attribute__((visibility("hidden"))); \
    void marker_##name parameters;
MARKERS_LIST(DECLARE)
#undef DECLARE

enum { MARKERS_TEXT = 640 };

/* The names of the markers with these bits, with ", " between them; "none".  text has room for
 * MARKERS_TEXT bytes, which all names fit into; returns it.  No lock. */
const char *markers_to_text(unsigned markers, char *text);

/* Picks the sites for this kernel.  Called before any marker fires, by the loader and by
 * test/driver.c; no GIL. */
void markers_choose_sites(void);

#endif
