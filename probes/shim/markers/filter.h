/*
 * Which functions the filtered markers are for: those that a pattern of any tracer names.
 *
 * The patterns are asked for when a tracer attaches to a filtered marker, or leaves: the marker
 * `filter` has room for each tracer to write its own.  Others are given by stap-python filter, and
 * by PYTHON_STAP_FILTER.  Without any pattern it is all functions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_FILTER_H
#define MARKERS_FILTER_H

#include "cpython/code.h"
#include "markers/enabled.h"

/* Changes with the patterns, and when filtered markers are wanted anew.  0: they never were. */
extern atomic_uint filter_revision_word
    __attribute__((visibility("hidden"))); /* read without the GOT */

static inline unsigned filter_revision(void)
{
    return atomic_load_explicit(&filter_revision_word, memory_order_acquire);
}

/* By which patterns the filtered markers fire: those for which the hooks were last set; 0: none. */
extern atomic_uint filter_armed_word
    __attribute__((visibility("hidden"))); /* read without the GOT */

static inline unsigned filter_armed_revision(void)
{
    return atomic_load_explicit(&filter_armed_word, memory_order_acquire);
}

/* The hooks are set for these markers.  True: by other patterns than before.  GIL held; from 3.12
 * on several interpreters may call it at once. */
bool filter_set_armed(unsigned wanted);

/* What an interpreter is to be armed for: these markers, and by which patterns they fire. */
static inline uint64_t filter_arm_key(unsigned wanted)
{
    return wanted | (wanted & FILTERED_MARKERS ? (uint64_t)filter_revision() << 32 : 0);
}

/* Maps the page of filter_page.h, with the patterns of the environment.  By the loader. */
void filter_map_page(void);

/* Asks for patterns if these markers are wanted by other tracers than before.  Where an interpreter
 * is armed; any thread, with or without the GIL. */
void filter_refresh(unsigned wanted);

/* The same, and once a second in any case.  Called twenty times a second by the watcher; no GIL. */
void filter_refresh_tick(unsigned wanted);

/* In the child of a fork, in which no other thread is. */
void filter_after_fork(void);

/* Whether filter_matches_code() has found it out before. */
static inline bool filter_is_cached(const struct code_record *record)
{
    return atomic_load_explicit(&record->filter, memory_order_relaxed) >> 1 ==
           filter_armed_revision();
}

/* As filter_matches_code(), if that was found out before; else true. */
static inline bool filter_may_match(const struct code_record *record)
{
    return (atomic_load_explicit(&record->filter, memory_order_relaxed) & 1) ||
           !filter_is_cached(record);
}

/* Whether that is in the place of a code object, which need not have a record: no pattern names its
 * function.  filter_rejects() of one that may be so puts it there.  Up to 3.11; GIL held. */
static inline bool filter_rejects_cached(PyObject *code)
{
    struct filter_cache_slot *place = filter_cache_slot(code);
    return place->tag == filter_cache_tag(code) && place->filter == filter_armed_revision();
}

static inline bool filter_rejects(const struct code_record *record)
{
    if (filter_may_match(record))
        return false;
    *filter_cache_slot(record->code) =
        (struct filter_cache_slot){filter_cache_tag(record->code), filter_armed_revision()};
    return true;
}

/* Whether a pattern names the function of a record; globals: with which its code runs, or NULL.
 * GIL held, no exception in flight. */
bool filter_matches_code(struct code_record *record, PyObject *globals);

/* Whether one did when filter_armed_revision() was that, and filtered markers have been wanted
 * since. */
bool filter_matched_at(struct code_record *record, PyObject *globals, unsigned version);

#endif
