/*
 * The markers: for each one in probes/python.d a number, a semaphore and a function that fires it.
 * Any thread, with or without the GIL; no lock.
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
 * marker_NAME(): fires the marker. */
#define DECLARE(name, parameters, ...) \
    extern unsigned short python_##name##_semaphore __attribute__((visibility("hidden"))); \
    void marker_##name parameters;
MARKERS_LIST(DECLARE)
#undef DECLARE

/* The events of memory__sample and memory__free once more, for eBPF profilers that know no Python:
 * the contract of OpenTelemetry's (opentelemetry-ebpf-profiler,
 * design-docs/00003-memory-profiling), which reads the arguments from the registers of a call.  A
 * marker and its double have one semaphore, so both fire while a tracer probes either. */
void marker_otel_memory_alloc(void *address, long size, long weight);
void marker_otel_memory_free(void *address);

enum { MARKERS_TEXT = 640 };

/* Writes the names of the markers whose bits are set, separated by ", ", or "none", to text, which
 * must have MARKERS_TEXT bytes: enough for all names.  Returns text. */
const char *markers_to_text(unsigned markers, char *text);

/* The markers, as bits, of which a tracer has put a breakpoint, or a call, into a site. */
unsigned markers_probed(void);

/* Chooses the sites that cost less on this kernel.  Must be called before any marker fires. */
void markers_choose_sites(void);

#endif
