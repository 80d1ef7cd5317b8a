/*
 * Fires exception__raise: once for each raise, not again in each frame that the exception passes.
 *
 * CPython reports an exception in each frame that it comes to, by the frame's own raise or out of a
 * call.  In the second case the frame that was called has just been left, and is the next one in
 * the exception's traceback.
 *
 * All functions: on the thread that runs the frame, GIL held, no exception in flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RAISE_H
#define RAISE_H

#include "code.h"

/* An exception has come to the calling thread's innermost frame, which stands at this line.
 * traceback: the exception's, the frame's entry included; None or NULL for none. */
void raise_reached_frame(struct code_record *record, int line, PyFrameObject *frame,
                         PyObject *exception, PyObject *traceback);

/* An exception leaves that frame. */
void raise_left_frame(PyFrameObject *frame);

#endif
