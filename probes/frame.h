/*
 * What the hooks ask of a PyFrameObject, the same for every CPython.
 *
 * All functions: any thread, GIL held, no exception in flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_H
#define FRAME_H

#include "cpython.h"
#include "cpython_layout.h"

#include <stdatomic.h>

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

#endif
