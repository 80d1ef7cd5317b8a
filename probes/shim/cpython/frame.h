/*
 * Frames, the same for every CPython: code, globals and callers of frame objects, and the frame
 * that a marker passes.  All functions: any thread that runs Python, GIL held, no exception in
 * flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_FRAME_H
#define CPYTHON_FRAME_H

#include <stdatomic.h>

#include "cpython/symbols.h"
#include "shared/cpython_structs.h"

/* ---------------------------------------------------------------- frame objects */

/* Up to 3.10: struct PyFrameObject_36 has been compared, and is right. */
extern bool frame_layout_known;

/* By CPython's public functions.  Up to 3.10 the first call compares struct PyFrameObject_36. */
PyObject *frame_code_by_api(PyFrameObject *frame);
PyObject *frame_globals_by_api(PyFrameObject *frame);

/* Borrowed: the frame keeps the code object.  Inline, as each event of a frame calls it. */
static inline PyObject *frame_code(PyFrameObject *frame)
{
    return __builtin_expect(frame_layout_known, 1) ? ((struct PyFrameObject_36 *)frame)->f_code
                                                   : frame_code_by_api(frame);
}

/* Borrowed, too.  NULL: CPython has none for this frame. */
static inline PyObject *frame_globals(PyFrameObject *frame)
{
    return __builtin_expect(frame_layout_known, 1) ? ((struct PyFrameObject_36 *)frame)->f_globals
                                                   : frame_globals_by_api(frame);
}

PyFrameObject *frame_back(PyFrameObject *frame); /* a new reference, or NULL */

/* The _PyInterpreterFrame of a frame object, 3.11 and later.  NULL: it is not where the release of
 * this version has it. */
void *frame_interpreter_frame(PyFrameObject *object);

/* The calling thread's innermost frame: a new reference, or NULL if the thread runs no Python. */
PyFrameObject *frame_current(void);

/* The offset in a thread state of current_executor, which is not NULL while the thread runs code
 * that the JIT has compiled; 0: unknown.  3.15 and later. */
unsigned frame_executor_offset(void);

/* Whether this frame, the calling thread's innermost one, will run its RESUME again after a pending
 * call.  The interpreter makes pending calls in RESUME, and continues behind it.  The JIT's code
 * leaves for the interpreter before RESUME (CPython 3.15 Python/bytecodes.c:
 * _HANDLE_PENDING_AND_DEOPT). */
bool frame_repeats_resume(PyFrameObject *frame);

/* Sets *frames to the frames from innermost outwards, malloc()ed, each a new reference.  Takes over
 * the reference to innermost, which may be NULL.  Returns the number of frames; if memory runs out,
 * the outermost are missing. */
size_t frame_stack(PyFrameObject *innermost, PyFrameObject ***frames);
void frame_stack_release(PyFrameObject **frames, size_t depth);

/* ---------------------------------------------------------------- event frames */

/* The frame that a marker passes: up to 3.10 its PyFrameObject, from 3.11 on its
 * _PyInterpreterFrame, whose address stays from the frame's entry to its return.  From 3.11 on
 * CPython makes a PyFrameObject only on demand, which costs more than the rest of a marker. */
struct event_frame {
    void *frame;       /* the PyFrameObject, if its _PyInterpreterFrame is not found */
    PyObject *globals; /* borrowed; may be NULL */
    bool is_current;   /* it runs the event's code; else a C library fired the event (3.13+) */
};

static inline struct event_frame event_frame_of(PyFrameObject *object)
{
    void *frame = py.minor >= 11 ? frame_interpreter_frame(object) : NULL;
    return (struct event_frame){frame ? frame : object, frame_globals(object), true};
}

/* The calling thread's innermost frame, for an event of this code object.  3.12 and later. */
struct event_frame event_frame_now(PyObject *code);

#endif
