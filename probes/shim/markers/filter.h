/*
 * The filter: which functions the filtered markers are for.  These are the functions that match a
 * pattern, or all functions if there is no pattern.
 *
 * The marker `filter` passes a buffer, to which each tracer writes its patterns.  The marker fires
 * when a tracer attaches to or detaches from a filtered marker, and once a second.  Further
 * patterns come from stap-python filter and PYTHON_STAP_FILTER.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_FILTER_H
#define MARKERS_FILTER_H

#include "cpython/code.h"
#include "markers/enabled.h"

/* The revision of the patterns.  Increases when they change, and when a filtered marker is enabled
 * after a time in which none was; 0: none ever was. */
extern atomic_uint filter_revision_word
    __attribute__((visibility("hidden"))); /* read without the GOT */

static inline unsigned filter_revision(void)
{
    return atomic_load_explicit(&filter_revision_word, memory_order_acquire);
}

/* The armed revision: the one for which the hooks were last set.  Filtered markers fire by its
 * patterns.  0: the hooks are set for no filtered marker. */
extern atomic_uint filter_armed_word
    __attribute__((visibility("hidden"))); /* read without the GOT */

static inline unsigned filter_armed_revision(void)
{
    return atomic_load_explicit(&filter_armed_word, memory_order_acquire);
}

/* Records that the hooks are set for these markers.  True: a filtered one is among them, and the
 * revision is not the one armed before.  GIL held; from 3.12 on several interpreters may call it at
 * once. */
bool filter_set_armed(unsigned enabled);

/* A number for what an interpreter is armed for: the markers and, if a filtered one is among them,
 * the revision. */
static inline uint64_t filter_arm_key(unsigned enabled)
{
    return enabled | (enabled & FILTERED_MARKERS ? (uint64_t)filter_revision() << 32 : 0);
}

/* Maps the page of shared/filter_page.h, and writes the patterns of PYTHON_STAP_FILTER to it.
 * Called by core/loader.c. */
void filter_map_page(void);

/* Collects the patterns again if a filtered one of these markers is enabled, and tracers or the
 * page have changed.  Returns at once if another thread does so.  Any thread, with or without the
 * GIL. */
void filter_refresh(unsigned enabled);

/* As filter_refresh(), and once a second even without a change.  Called by the watcher every 50
 * ms. */
void filter_refresh_tick(unsigned enabled);

/* In the child of a fork, where no other thread exists: a refresh of the parent does not go on. */
void filter_after_fork(void);

/* Whether the record has a verdict by the armed revision. */
static inline bool filter_is_cached(const struct code_record *record)
{
    return atomic_load_explicit(&record->filter, memory_order_relaxed) >> 1 ==
           filter_armed_revision();
}

/* The record's verdict; true if it has none. */
static inline bool filter_may_match(const struct code_record *record)
{
    return (atomic_load_explicit(&record->filter, memory_order_relaxed) & 1) ||
           !filter_is_cached(record);
}

/* Whether filter_cache has the verdict that no pattern matches the code object's function.  The
 * code object needs no record.  Up to 3.11; GIL held. */
static inline bool filter_rejects_cached(PyObject *code)
{
    struct filter_cache_slot *place = filter_cache_slot(code);
    return place->tag == filter_cache_tag(code) && place->filter == filter_armed_revision();
}

/* Whether the record's verdict is that no pattern matches.  If so, adds the code object to
 * filter_cache.  Up to 3.11; GIL held. */
static inline bool filter_rejects(const struct code_record *record)
{
    if (filter_may_match(record))
        return false;
    *filter_cache_slot(record->code) =
        (struct filter_cache_slot){filter_cache_tag(record->code), filter_armed_revision()};
    return true;
}

/* Whether a pattern matches the record's function, by the armed revision.  globals: those with
 * which the code runs, or NULL.  GIL held, no exception in flight. */
bool filter_matches_code(struct code_record *record, PyObject *globals);

/* Whether a pattern of this earlier revision matched the function, and filtered markers have been
 * enabled ever since.  False also if the revision's text is lost.  GIL held, no exception in
 * flight. */
bool filter_matched_at(struct code_record *record, PyObject *globals, unsigned version);

#endif
