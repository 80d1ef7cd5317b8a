/*
 * Fires the markers of functions, lines, C functions and exceptions, with their filtered markers,
 * for all hooks.  Replays running frames: when a tracer attaches, or patterns change, each thread
 * first fires the entries of its open frames, so that every return has an entry.
 *
 * All functions: on the thread that runs the frame, GIL held, no exception in flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_FIRE_H
#define MARKERS_FIRE_H

#include "cpython/code.h"
#include "cpython/frame.h"
#include "markers/enabled.h"
#include "markers/filter.h"

/* ---------------------------------------------------------------- replay */

/* Which of an event's markers fire: its plain one, its filtered one. */
struct markers_due {
    bool plain, filtered;
};

/* The serial number of the latest replay: each thread must do it once.  Increases when a tracer of
 * function returns attaches, and when the patterns of filtered returns change. */
extern atomic_uint replay_generation
    __attribute__((visibility("hidden"))); /* read without the GOT */

/* Serial numbers: of the latest tracer of all functions, and of the latest tracer of filtered ones.
 * Each increases when such a tracer of function returns attaches, but not when patterns change. */
extern atomic_uint tracer_plain __attribute__((visibility("hidden"))); /* read without the GOT */
extern atomic_uint tracer_filtered __attribute__((visibility("hidden")));

/* Markers, as bits, for which the hooks are set.  The semaphores may already differ. */
extern atomic_uint markers_armed __attribute__((visibility("hidden"))); /* read without the GOT */

enum {
    FUNCTION_MARKERS = MARKER_BIT(function__entry) | MARKER_BIT(function__return),
    FILTERED_FUNCTION_MARKERS =
        MARKER_BIT(filtered__function__entry) | MARKER_BIT(filtered__function__return),
};

/* Whether the hooks are set for any of these markers. */
static inline bool marker_is_armed(unsigned markers)
{
    return atomic_load_explicit(&markers_armed, memory_order_relaxed) & markers;
}

/* Whether to fire the marker: MARKER_ON(), and the hooks are set for it.  Before the hooks are set,
 * a filtered marker has no patterns, and a return has no entry. */
#define MARKER_ARMED(name) (MARKER_ON(name) && marker_is_armed(MARKER_BIT(name)))

/* Records that the hooks are set for these markers, the enabled ones of the process.  Called by the
 * hooks that feed function markers, when they are set.  From 3.12 on several interpreters, each
 * with a GIL of its own, may call this at once. */
void replay_set_markers(unsigned enabled);

/* The values of these variables at a thread's latest replay. */
struct replay_state {
    unsigned number, /* replay_generation then */
        plain,       /* tracer_plain */
        filter;      /* filter_armed_revision() */
};

/* Whether the thread must replay. */
static inline bool replay_is_due(const struct replay_state *seen)
{
    return seen->number != atomic_load_explicit(&replay_generation, memory_order_relaxed);
}

/* Which entries a replay fires.  Filtered ones fire for functions that match now, but not if they
 * matched the patterns of revision filter_replayed: those have had their entries.  filter_replayed
 * 0: no function has. */
struct replay_request {
    bool plain, filtered;
    unsigned filter_replayed;
};

/* Begins the thread's replay: updates *seen, and returns the entries to fire. */
struct replay_request replay_begin(struct replay_state *seen);

/* Records, until the frame returns, that its entry is fired for the present tracers of these
 * markers.  3.12 and later; up to 3.11 the frame hook keeps this on the C stack. */
void tracer_keep_entry(const void *frame, struct markers_due fires);

/* Called when the frame returns: drops what tracer_keep_entry() recorded.  Returns the markers to
 * fire.  A return is left out if its tracer probes entries, but did not get the entry of this
 * frame.  Such a frame began before the tracer attached, on a stack that no thread ran at the
 * replay: a greenlet's or another interpreter's. */
struct markers_due tracer_with_entry(const void *frame, struct markers_due fires);

/* ---------------------------------------------------------------- exceptions */

/*
 * exception__raise fires once for each raise, not in each frame that the exception passes.  CPython
 * reports an exception in each frame that it reaches: a frame that raises, or a frame whose callee
 * it has left.  In the second case the callee is the next frame in the exception's traceback.
 */

/* An exception has reached frame, the calling thread's innermost one, at this line.  traceback: the
 * exception's, including the entry of frame; None or NULL: there is none. */
void raise_reached_frame(struct code_record *record, int line, PyFrameObject *frame,
                         PyObject *exception, PyObject *traceback);

/* An exception leaves the frame. */
void raise_left_frame(PyFrameObject *frame);

/* ---------------------------------------------------------------- functions and lines */

static inline struct markers_due markers_due_at_entry(struct code_record *record, PyObject *globals)
{
    return (struct markers_due){MARKER_ARMED(function__entry),
                                MARKER_ARMED(filtered__function__entry) &&
                                    filter_matches_code(record, globals)};
}

static inline struct markers_due markers_due_at_return(struct code_record *record,
                                                       PyObject *globals)
{
    return (struct markers_due){MARKER_ARMED(function__return),
                                MARKER_ARMED(filtered__function__return) &&
                                    filter_matches_code(record, globals)};
}

/* In the header, as it runs at each call of a Python function. */
static inline void fire_entry(struct code_record *record, int line, struct event_frame event,
                              struct markers_due fires)
{
    const char *filename = probe_text(&record->filename), *funcname = probe_text(&record->funcname);
    struct module_name module = module_name_of(record, event.globals);
    if (fires.plain)
        marker_function__entry(filename, funcname, line, event.frame, module.name);
    if (__builtin_expect(fires.filtered, 0))
        marker_filtered__function__entry(filename, funcname, line, event.frame, module.name);
    module_name_release(&module);
}

/* How a frame ended: the value that it returned or yielded, or the exception that leaves it.  Both
 * are NULL where this is not known. */
struct outcome {
    PyObject *result, *exception;
};

static inline void fire_return(struct code_record *record, int line, struct event_frame event,
                               struct outcome outcome, struct markers_due fires)
{
    const char *filename = probe_text(&record->filename), *funcname = probe_text(&record->funcname);
    struct module_name module = module_name_of(record, event.globals);
    if (fires.plain)
        marker_function__return(filename, funcname, line, event.frame, module.name, outcome.result,
                                outcome.exception);
    if (__builtin_expect(fires.filtered, 0))
        marker_filtered__function__return(filename, funcname, line, event.frame, module.name,
                                          outcome.result, outcome.exception);
    module_name_release(&module);
}

/* globals: as in filter_matches_code(). */
static inline void fire_line(struct code_record *record, PyObject *globals, int line)
{
    if (MARKER_ON(line))
        marker_line(probe_text(&record->filename), probe_text(&record->funcname), line);
    if (MARKER_ARMED(filtered__line) && filter_matches_code(record, globals))
        marker_filtered__line(probe_text(&record->filename), probe_text(&record->funcname), line,
                              code_first_module(record));
}

/* For a call of a C function from a frame of the record caller, at this line of it. */
void fire_cfunction_entry(struct code_record *caller, PyObject *globals, int line,
                          PyObject *callable);
void fire_cfunction_return(struct code_record *caller, PyObject *globals, int line,
                           PyObject *callable);

/* By a PyFrameObject: up to 3.10 of any frame, in 3.11 of frames that ran before the tracer
 * attached. */
void fire_entry_by_object(PyFrameObject *frame, int line);
void fire_return_by_object(PyFrameObject *frame, int line, struct outcome outcome);

/* For the calling thread's innermost frame, at an event of this code.  3.12 and later. */
void fire_entry_now(PyObject *code, struct code_record *record, int line, struct markers_due fires);
void fire_return_now(PyObject *code, struct code_record *record, int line, struct outcome outcome,
                     struct markers_due fires);

/* The exception of an outcome, made of the results of PyErr_Fetch(); NULL: there is none.  C code
 * may set an exception as a class and its argument, which become an object only when Python code
 * catches it.  Then the result is *room, filled in as a tuple of both, which only tracers may
 * read. */
struct exception_pair {
    struct PyVarObject_head head;
    PyObject *parts[2];
};
PyObject *exception_argument(PyObject *type, PyObject *value, struct exception_pair *room);

/* Fires the entries of a replay for the frames of frame_stack(), the outermost first, each with its
 * current line. */
void fire_running_frames(PyFrameObject *const *frames, size_t depth, struct replay_request enters);

#endif
