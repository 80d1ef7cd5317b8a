/*
 * Fires function__entry and function__return: the one place of each, for all hooks.
 *
 * All functions: on the thread that runs the frame, GIL held, no exception in flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FIRE_H
#define FIRE_H

#include "code.h"
#include "markers.h"
#include "shown.h"

/* In the header, as it is a step of each call of a Python function: as a function of its own it
 * would be one more call, and stand between two levels of Python recursion on the C stack. */
static inline void fire_entry(struct code *record, int line, struct shown shown)
{
    marker_function__entry(code_text(&record->filename), code_text(&record->funcname), line,
                           shown.frame, code_module(record, shown.globals));
}

/* How a frame ended: with what it returned or yielded, or with the exception that leaves it.  Both
 * are NULL where that can't be told. */
struct outcome {
    PyObject *result, *exception;
};

static inline void fire_return(struct code *record, int line, struct shown shown,
                               struct outcome outcome)
{
    marker_function__return(code_text(&record->filename), code_text(&record->funcname), line,
                            shown.frame, code_module(record, shown.globals), outcome.result,
                            outcome.exception);
    if (shown.runs)
        shown_returned(shown.frame);
}

/* The same by a PyFrameObject. */
void fire_entry_of(PyFrameObject *frame, int line);
void fire_return_of(PyFrameObject *frame, int line, struct outcome outcome);

/* The exception in flight, which PyErr_Fetch() has put aside, for an outcome.  One that C code has
 * set, and no Python code has caught, is a class and what it will be made with: room then becomes a
 * tuple of both, for tracers alone.  NULL for none. */
struct exception_parts {
    struct var_object_head head;
    PyObject *parts[2];
};
PyObject *fire_exception(PyObject *type, PyObject *value, struct exception_parts *room);

/* The entries of the frames of frame_stack(), the outermost first, each with the line at which it
 * stands. */
void fire_entries(PyFrameObject *const *frames, size_t depth);

#endif
