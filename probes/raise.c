/*
 * SPDX-License-Identifier: MIT
 */
#include "raise.h"

#include "debug.h"
#include "filter.h"
#include "tracer.h"
#include "frame.h"
#include "layout.h"
#include "markers.h"

/* The frame that an exception left last in this thread, and that frame's caller.  Only compared. */
static __thread PyFrameObject *left, *left_to;

void raise_left_frame(PyFrameObject *frame)
{
    left = frame;
    left_to = frame_back(frame);
    if (left_to)
        py.Py_DecRef((PyObject *)left_to);
}

/* Whether its entries are as we know them. */
static bool is_known(PyObject *traceback)
{
    enum { UNTRIED, KNOWN, UNKNOWN };
    static atomic_int layout; /* each thread finds the same */
    if (layout == UNTRIED) {
        long size = cpython_int_attr(cpython_type(traceback), "__basicsize__");
        layout =
            size == (long)(py.ob_base_offset + sizeof(struct PyTracebackObject)) ? KNOWN : UNKNOWN;
        if (layout == UNKNOWN)
            debug_log("tracebacks in this CPython are not as in the release");
    }
    return layout == KNOWN;
}

/* The next entry of one; NULL: it is the last one.  A new reference.  Without the GIL another
 * thread may put another one there just now, so it's asked for. */
static PyObject *next_of(PyObject *traceback)
{
    PyObject *next;
    if (py.free_threaded) {
        next = py.PyObject_GetAttrString(traceback, "tb_next");
        py.PyErr_Clear();
        if (next == py.none)
            cpython_clear_ref(&next);
        return next;
    }
    next = ((const struct PyTracebackObject *)traceback)->tb_next;
    if (next)
        py.Py_IncRef(next);
    return next;
}

/* Its frame, which stays the same, and is only compared.  As an attribute it is an audited one. */
static PyFrameObject *frame_in(PyObject *traceback)
{
    return ((const struct PyTracebackObject *)ob_base(traceback))->tb_frame;
}

/* Whether the exception began in the frame.  Up to 3.11 CPython also reports the end of an iterator
 * to the loop, which adds nothing to its traceback. */
static bool begins_in(PyFrameObject *frame, PyObject *traceback)
{
    if (!traceback || traceback == py.none || !is_known(traceback) || frame_in(traceback) != frame)
        return false;
    PyObject *next = left_to == frame ? next_of(traceback) : NULL;
    bool begins = !next || frame_in(next) != left;
    cpython_clear_ref(&next);
    return begins;
}

/* A new reference; NULL without an exception in flight if there is none.  Runs no code of the
 * program, whatever the class of the type. */
static PyObject *name_of(PyObject *type)
{
    PyObject *name = NULL;
    if (py.PyType_GetName) {
        name = py.PyType_GetName(type);
    } else {
        PyObject *attributes =
            py.PyObject_GetAttrString(cpython_type(py.tuple_type), "__dict__"); /* of type */
        PyObject *attribute =
            attributes ? py.PyObject_CallMethod(attributes, "__getitem__", "s", "__name__") : NULL;
        if (attribute)
            name = py.PyObject_CallMethod(attribute, "__get__", "O", type);
        cpython_clear_ref(&attributes);
        cpython_clear_ref(&attribute);
    }
    py.PyErr_Clear();
    return name;
}

void raise_reached_frame(struct code_record *record, int line, PyFrameObject *frame,
                         PyObject *exception, PyObject *traceback)
{
    bool begins = begins_in(frame, traceback);
    left = left_to = NULL;
    bool filtered = begins && MARKER_ARMED(filtered__exception__raise) &&
                    filter_matches_code(record, frame_globals(frame));
    if (!begins || !(filtered || MARKER_ON(exception__raise)))
        return;
    offsets_check_frame(frame);
    PyObject *name = name_of(cpython_type(exception));
    Py_ssize_t length = 0;
    const char *type = name ? py.PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    py.PyErr_Clear();
    probe_string(type, length);
    const char *filename = probe_text(&record->filename), *funcname = probe_text(&record->funcname);
    if (MARKER_ON(exception__raise))
        marker_exception__raise(filename, funcname, line, exception, type);
    if (filtered)
        marker_filtered__exception__raise(filename, funcname, line, exception, type,
                                          code_first_module(record));
    cpython_clear_ref(&name);
}
