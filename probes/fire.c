/*
 * Fires the function markers of PyFrameObjects: of all frames up to 3.10, and of those that began
 * before the tracer attached.  Called by the frame hook, by trace and profile functions, and by
 * sys.monitoring's callbacks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fire.h"

#include "frame.h"
#include "layout.h"

void fire_entry_of(PyFrameObject *frame, int line)
{
    layout_meet(frame);
    struct code *record = code_of(frame_code(frame));
    fire_entry(record, line, shown_by_object(frame, SHOWN_ENTRY));
}

void fire_return_of(PyFrameObject *frame, int line, struct outcome outcome)
{
    layout_meet(frame);
    struct code *record = code_of(frame_code(frame));
    fire_return(record, line, shown_by_object(frame, SHOWN_RETURN), outcome);
}

PyObject *fire_exception(PyObject *type, PyObject *value, struct exception_parts *room)
{
    if (!type || (value && py.PyType_IsSubtype(cpython_type(value), type)))
        return value;
    *room = (struct exception_parts){{{1, py.tuple_type}, value ? 2 : 1}, {type, value}};
    return (PyObject *)room;
}

void fire_entries(PyFrameObject *const *frames, size_t depth)
{
    while (depth > 0) {
        PyFrameObject *frame = frames[--depth];
        fire_entry_of(frame, py.PyFrame_GetLineNumber(frame));
    }
}
