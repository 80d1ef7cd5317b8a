/*
 * What the hooks ask of a PyFrameObject, the same for every CPython.
 *
 * All functions: any thread, GIL held, no exception in flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_FRAME_H
#define CPYTHON_FRAME_H

#include <stdatomic.h>

#include "cpython/symbols.h"
#include "shared/cpython_structs.h"

/* ---------------------------------------------------------------- frame */

/* Up to 3.10: struct PyFrameObject_36 is right. */
extern bool frame_layout_known;

/* By public functions, the first time to find that out. */
PyObject *frame_code_by_api(PyFrameObject *frame);
PyObject *frame_globals_by_api(PyFrameObject *frame);

/* What is borrowed is kept by the frame.  In the header, as each event of a frame takes them. */
static inline PyObject *frame_code(PyFrameObject *frame) /* borrowed */
{
    return __builtin_expect(frame_layout_known, 1) ? ((struct PyFrameObject_36 *)frame)->f_code
                                                   : frame_code_by_api(frame);
}

/* NULL if CPython has none for it. */
static inline PyObject *frame_globals(PyFrameObject *frame) /* borrowed */
{
    return __builtin_expect(frame_layout_known, 1) ? ((struct PyFrameObject_36 *)frame)->f_globals
                                                   : frame_globals_by_api(frame);
}

PyFrameObject *frame_back(PyFrameObject *frame); /* a new reference, or NULL */

/* 3.11 and later: the _PyInterpreterFrame of an object, or NULL if that is not where it is in
 * this release. */
void *frame_interpreter_frame(PyFrameObject *object);

/* The calling thread's innermost frame: a new reference, or NULL if it runs no Python. */
PyFrameObject *frame_current(void);

/* The frames from innermost outwards, in *frames (malloc()ed): the innermost first, each a new
 * reference.  Takes over the reference to innermost, which may be NULL.  Returns how many there
 * are; if memory runs out, the outermost are missing. */
size_t frame_stack(PyFrameObject *innermost, PyFrameObject ***frames);
void frame_stack_release(PyFrameObject **frames, size_t depth);

/* ---------------------------------------------------------------- shown */

/*
 * What a marker passes for a frame: up to 3.10 its PyFrameObject, from 3.11 on its
 * _PyInterpreterFrame, which is at one address from the frame's entry to its return: a
 * PyFrameObject CPython then makes only on demand, at more than the cost of the rest of a marker.
 *
 * All functions: any thread that runs Python, GIL held, no exception in flight.
 */

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
