/*
 * Fires the markers of functions and lines, and of calls of C functions, with the filtered ones:
 * the one place of each, for all hooks.
 *
 * All functions: on the thread that runs the frame, GIL held, no exception in flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FIRE_H
#define FIRE_H

#include "callable.h"
#include "filter.h"
#include "shown.h"
#include "tracer.h"

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
