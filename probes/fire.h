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

static inline struct fires fire_at_entry(struct code *record, PyObject *globals)
{
    return (struct fires){TRACER_ON(function__entry),
                          TRACER_ON(filtered__function__entry) && filter_passes(record, globals)};
}

static inline struct fires fire_at_return(struct code *record, PyObject *globals)
{
    return (struct fires){TRACER_ON(function__return),
                          TRACER_ON(filtered__function__return) && filter_passes(record, globals)};
}

/* In the header, as it is a step of each call of a Python function: as a function of its own it
 * would be one more call, and stand between two levels of Python recursion on the C stack. */
static inline void fire_entry(struct code *record, int line, struct shown shown, struct fires fires)
{
    const char *filename = code_text(&record->filename), *funcname = code_text(&record->funcname);
    struct module module = code_module(record, shown.globals);
    if (fires.plain)
        marker_function__entry(filename, funcname, line, shown.frame, module.name);
    if (__builtin_expect(fires.filtered, 0))
        marker_filtered__function__entry(filename, funcname, line, shown.frame, module.name);
    code_module_done(&module);
}

/* How a frame ended: with what it returned or yielded, or with the exception that leaves it.  Both
 * are NULL where that can't be told. */
struct outcome {
    PyObject *result, *exception;
};

static inline void fire_return(struct code *record, int line, struct shown shown,
                               struct outcome outcome, struct fires fires)
{
    const char *filename = code_text(&record->filename), *funcname = code_text(&record->funcname);
    struct module module = code_module(record, shown.globals);
    if (fires.plain)
        marker_function__return(filename, funcname, line, shown.frame, module.name, outcome.result,
                                outcome.exception);
    if (__builtin_expect(fires.filtered, 0))
        marker_filtered__function__return(filename, funcname, line, shown.frame, module.name,
                                          outcome.result, outcome.exception);
    code_module_done(&module);
}

/* Fires line, and its filtered one; globals as filter_passes() takes them. */
static inline void fire_line(struct code *record, PyObject *globals, int line)
{
    if (MARKER_ON(line))
        marker_line(code_text(&record->filename), code_text(&record->funcname), line);
    if (TRACER_ON(filtered__line) && filter_passes(record, globals))
        marker_filtered__line(code_text(&record->filename), code_text(&record->funcname), line,
                              code_first_module(record));
}

/* The same of a call of a function in C from a frame of this record, that stands at this line. */
void fire_cfunction_entry(struct code *caller, PyObject *globals, int line, PyObject *callable);
void fire_cfunction_return(struct code *caller, PyObject *globals, int line, PyObject *callable);

/* function__entry and function__return by a PyFrameObject. */
void fire_entry_of(PyFrameObject *frame, int line);
void fire_return_of(PyFrameObject *frame, int line, struct outcome outcome);

/* The same of the calling thread's innermost frame, for an event of this code.  3.12 and later. */
void fire_entry_now(PyObject *code, struct code *record, int line, struct fires fires);
void fire_return_now(PyObject *code, struct code *record, int line, struct outcome outcome,
                     struct fires fires);

/* The exception in flight, which PyErr_Fetch() has put aside, for an outcome.  One that C code has
 * set, and no Python code has caught, is a class and what it will be made with: room then becomes a
 * tuple of both, for tracers alone.  NULL for none. */
struct exception_parts {
    struct var_object_head head;
    PyObject *parts[2];
};
PyObject *fire_exception(PyObject *type, PyObject *value, struct exception_parts *room);

/* The entries of the frames of frame_stack() that are to be entered, the outermost first, each with
 * the line at which it stands. */
void fire_entries(PyFrameObject *const *frames, size_t depth, struct tracer_enters enters);

#endif
