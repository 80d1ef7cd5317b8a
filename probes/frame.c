/*
 * Frame objects: their code, globals and callers, and the markers of a frame.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame.h"

#include "arm.h"
#include "code.h"
#include "debug.h"
#include "layout.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- one frame */

/* Include/frameobject.h (3.6-3.8), Include/cpython/frameobject.h (3.9, 3.10).  There is a public
 * function for the code from 3.9 on, for the caller too, and for the globals from 3.11 on. */
struct frame_310 {
    void *head[3]; /* PyObject_VAR_HEAD */
    PyFrameObject *back;
    PyObject *code, *builtins, *globals;
};

static PyObject *borrowed(PyObject *object)
{
    if (object)
        py.Py_DecRef(object);
    else
        py.PyErr_Clear();
    return object;
}

/* An attribute that the frame keeps.  f_code is an audited one from 3.8 on. */
static PyObject *attribute(PyFrameObject *frame, const char *name)
{
    return borrowed(py.PyObject_GetAttrString((PyObject *)frame, name));
}

static PyObject *public_code(PyFrameObject *frame)
{
    return py.PyFrame_GetCode ? borrowed(py.PyFrame_GetCode(frame)) : attribute(frame, "f_code");
}

/* Whether struct frame_310 is right, found out on the first frame that comes. */
static bool layout_is_known(PyFrameObject *object)
{
    static enum { UNTRIED, KNOWN, UNKNOWN } layout;
    struct frame_310 *frame = (struct frame_310 *)object;
    if (py.minor > 10)
        return false;
    if (layout == UNTRIED) {
        layout = frame->globals == attribute(object, "f_globals") &&
                         frame->builtins == attribute(object, "f_builtins") &&
                         (!py.PyFrame_GetCode || frame->code == public_code(object))
                     ? KNOWN
                     : UNKNOWN;
        if (layout == UNKNOWN)
            debug_log("the frames of this CPython are not those of the release: slower access");
    }
    return layout == KNOWN;
}

PyObject *frame_code(PyFrameObject *frame)
{
    return layout_is_known(frame) ? ((struct frame_310 *)frame)->code : public_code(frame);
}

PyObject *frame_globals(PyFrameObject *frame)
{
    if (py.PyFrame_GetGlobals)
        return borrowed(py.PyFrame_GetGlobals(frame));
    return layout_is_known(frame) ? ((struct frame_310 *)frame)->globals
                                  : attribute(frame, "f_globals");
}

PyFrameObject *frame_back(PyFrameObject *frame)
{
    if (py.PyFrame_GetBack)
        return py.PyFrame_GetBack(frame);
    PyObject *back = layout_is_known(frame) ? (PyObject *)((struct frame_310 *)frame)->back
                                            : attribute(frame, "f_back");
    if (!back || back == py.none)
        return NULL;
    py.Py_IncRef(back);
    return (PyFrameObject *)back;
}

PyFrameObject *frame_current(void)
{
    PyFrameObject *frame = py.PyEval_GetFrame();
    if (frame)
        py.Py_IncRef((PyObject *)frame);
    return frame;
}

void frame_fire_entry(PyFrameObject *frame, int line)
{
    layout_meet(frame);
    struct code *record = code_of(frame_code(frame));
    marker_function__entry(code_text(&record->filename), code_text(&record->funcname), line, frame,
                           code_module(record, frame_globals(frame)));
}

void frame_fire_return(PyFrameObject *frame, int line)
{
    layout_meet(frame);
    struct code *record = code_of(frame_code(frame));
    marker_function__return(code_text(&record->filename), code_text(&record->funcname), line, frame,
                            code_module(record, frame_globals(frame)));
}

/* ---------------------------------------------------------------- frames that run already */

enum { BOTH = MARKER_BIT(function__entry) | MARKER_BIT(function__return) };

atomic_uint frame_tracer;

/* What the hooks are set for; the semaphores may already say more. */
static atomic_uint known;

void frame_wanted(unsigned wanted)
{
    wanted &= BOTH;
    unsigned before = atomic_exchange(&known, wanted);
    if ((wanted & MARKER_BIT(function__return)) && (wanted & ~before))
        atomic_fetch_add(&frame_tracer, 1);
}

bool frame_enters_stack(void)
{
    return known == BOTH && MARKER_ON(function__entry) && MARKER_ON(function__return);
}

size_t frame_stack(PyFrameObject *innermost, PyFrameObject ***frames)
{
    size_t depth = 0, room = 0;
    *frames = NULL;
    for (PyFrameObject *frame = innermost; frame; frame = frame_back(frame)) {
        if (depth == room) {
            size_t more = room ? 2 * room : 64;
            PyFrameObject **grown = realloc(*frames, more * sizeof *grown);
            if (!grown) {
                py.Py_DecRef((PyObject *)frame);
                break;
            }
            *frames = grown;
            room = more;
        }
        (*frames)[depth++] = frame;
    }
    return depth;
}

void frame_release(PyFrameObject **frames, size_t depth)
{
    while (depth > 0)
        py.Py_DecRef((PyObject *)frames[--depth]);
    free(frames);
}

void frame_enter_stack(PyFrameObject *const *frames, size_t depth)
{
    while (depth > 0) {
        PyFrameObject *frame = frames[--depth];
        frame_fire_entry(frame, py.PyFrame_GetLineNumber(frame));
    }
}
