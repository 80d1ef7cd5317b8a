/*
 * What trace.c borrows from hook_frame.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_H
#define FRAME_H

#include "cpython.h"

/* The code object of a frame, borrowed from it.  GIL held, no exception in flight. */
PyObject *frame_code(PyFrameObject *frame);

#endif
