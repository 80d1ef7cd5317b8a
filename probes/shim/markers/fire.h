/*
 * Which tracer of function returns is attached.  Frames that began before it attached are reported
 * to it as each thread is next seen: their entries at once, so that every return has its entry and
 * what a tracer indents comes out even.  The same where patterns begin to name a function.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_FIRE_H
#define MARKERS_FIRE_H

#include "cpython/code.h"
#include "cpython/frame.h"
#include "markers/enabled.h"
#include "markers/filter.h"

/* ---------------------------------------------------------------- tracer */

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

/* ---------------------------------------------------------------- raise */

/*
 * Fires exception__raise: once for each raise, not again in each frame that the exception passes.
 *
 * CPython reports an exception in each frame that it comes to, by the frame's own raise or out of a
 * call.  In the second case the frame that was called has just been left, and is the next one in
 * the exception's traceback.
 *
 * All functions: on the thread that runs the frame, GIL held, no exception in flight.
 */

/* An exception has come to the calling thread's innermost frame, which stands at this line.
 * traceback: the exception's, the frame's entry included; None or NULL for none. */
void raise_reached_frame(struct code_record *record, int line, PyFrameObject *frame,
                         PyObject *exception, PyObject *traceback);

/* An exception leaves that frame. */
void raise_left_frame(PyFrameObject *frame);

/* ---------------------------------------------------------------- fire */

/*
 * Fires the markers of functions and lines, and of calls of C functions, with the filtered ones:
 * the one place of each, for all hooks.
 *
 * All functions: on the thread that runs the frame, GIL held, no exception in flight.
 */

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

/* In the header, as it is a step of each call of a Python function: as a function of its own it
 * would be one more call, and stand between two levels of Python recursion on the C stack. */
static inline void fire_entry(struct code_record *record, int line, struct event_frame shown,
                              struct markers_due fires)
{
    const char *filename = probe_text(&record->filename), *funcname = probe_text(&record->funcname);
    struct module_name module = module_name_of(record, shown.globals);
    if (fires.plain)
        marker_function__entry(filename, funcname, line, shown.frame, module.name);
    if (__builtin_expect(fires.filtered, 0))
        marker_filtered__function__entry(filename, funcname, line, shown.frame, module.name);
    module_name_release(&module);
}

/* How a frame ended: with what it returned or yielded, or with the exception that leaves it.  Both
 * are NULL where that can't be told. */
struct outcome {
    PyObject *result, *exception;
};

static inline void fire_return(struct code_record *record, int line, struct event_frame shown,
                               struct outcome outcome, struct markers_due fires)
{
    const char *filename = probe_text(&record->filename), *funcname = probe_text(&record->funcname);
    struct module_name module = module_name_of(record, shown.globals);
    if (fires.plain)
        marker_function__return(filename, funcname, line, shown.frame, module.name, outcome.result,
                                outcome.exception);
    if (__builtin_expect(fires.filtered, 0))
        marker_filtered__function__return(filename, funcname, line, shown.frame, module.name,
                                          outcome.result, outcome.exception);
    module_name_release(&module);
}

/* Fires line, and its filtered one; globals as filter_matches_code() takes them. */
static inline void fire_line(struct code_record *record, PyObject *globals, int line)
{
    if (MARKER_ON(line))
        marker_line(probe_text(&record->filename), probe_text(&record->funcname), line);
    if (MARKER_ARMED(filtered__line) && filter_matches_code(record, globals))
        marker_filtered__line(probe_text(&record->filename), probe_text(&record->funcname), line,
                              code_first_module(record));
}

/* The same of a call of a function in C from a frame of this record, that stands at this line. */
void fire_cfunction_entry(struct code_record *caller, PyObject *globals, int line,
                          PyObject *callable);
void fire_cfunction_return(struct code_record *caller, PyObject *globals, int line,
                           PyObject *callable);

/* function__entry and function__return by a PyFrameObject. */
void fire_entry_by_object(PyFrameObject *frame, int line);
void fire_return_by_object(PyFrameObject *frame, int line, struct outcome outcome);

/* The same of the calling thread's innermost frame, for an event of this code.  3.12 and later. */
void fire_entry_now(PyObject *code, struct code_record *record, int line, struct markers_due fires);
void fire_return_now(PyObject *code, struct code_record *record, int line, struct outcome outcome,
                     struct markers_due fires);

/* The exception in flight, which PyErr_Fetch() has put aside, for an outcome.  One that C code has
 * set, and no Python code has caught, is a class and what it will be made with: room then becomes a
 * tuple of both, for tracers alone.  NULL for none. */
struct exception_pair {
    struct PyVarObject_head head;
    PyObject *parts[2];
};
PyObject *exception_argument(PyObject *type, PyObject *value, struct exception_pair *room);

/* The entries of the frames of frame_stack() that are to be entered, the outermost first, each with
 * the line at which it stands. */
void fire_running_frames(PyFrameObject *const *frames, size_t depth, struct replay_request enters);

#endif
