/*
 * What a marker passes for a frame: up to 3.10 its PyFrameObject, from 3.11 on its
 * _PyInterpreterFrame, which is at one address from the frame's entry to its return: a
 * PyFrameObject CPython then makes only on demand, at more than the cost of the rest of a marker.
 *
 * All functions: any thread that runs Python, GIL held, no exception in flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHOWN_H
#define SHOWN_H

#include "frame.h"

struct event_frame {
    void *frame;       /* the object, if it is not known where that has its _PyInterpreterFrame */
    PyObject *globals; /* borrowed; may be NULL */
    bool is_current;   /* the code; else the event is a C library's own, without a frame (3.13+) */
};

/* By a PyFrameObject. */
static inline struct event_frame event_frame_of(PyFrameObject *object)
{
    void *frame = py.minor >= 11 ? frame_interpreter_frame(object) : NULL;
    return (struct event_frame){frame ? frame : object, frame_globals(object), true};
}

/* The calling thread's innermost frame, for an event of this code.  3.12 and later. */
struct event_frame event_frame_now(PyObject *code);

#endif
