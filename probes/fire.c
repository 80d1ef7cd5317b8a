/*
 * Fires the function markers: by their PyFrameObject of all frames up to 3.10, and of those that
 * began before the tracer attached; from 3.12 on of the innermost frame.  Called by the frame hook,
 * by trace and profile functions, and by sys.monitoring's callbacks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fire.h"

#include "frame.h"
#include "layout.h"

void fire_entry_of(PyFrameObject *frame, int line)
{
    struct code *record = code_of(frame_code(frame));
    struct fires fires = fire_at_entry(record, frame_globals(frame));
    if (!fires.plain && !fires.filtered)
        return;
    layout_meet(frame);
    fire_entry(record, line, shown_by_object(frame), fires);
}

void fire_return_of(PyFrameObject *frame, int line, struct outcome outcome)
{
    struct code *record = code_of(frame_code(frame));
    struct fires fires = fire_at_return(record, frame_globals(frame));
    if (!fires.plain && !fires.filtered)
        return;
    layout_meet(frame);
    fire_return(record, line, shown_by_object(frame), outcome, fires);
}

void fire_entry_now(PyObject *code, struct code *record, int line, struct fires fires)
{
    layout_meet_current();
    struct shown shown = shown_now(code);
    if (shown.runs)
        tracer_keep_entry(shown.frame, fires);
    fire_entry(record, line, shown, fires);
}

void fire_return_now(PyObject *code, struct code *record, int line, struct outcome outcome,
                     struct fires fires)
{
    layout_meet_current();
    struct shown shown = shown_now(code);
    if (shown.runs)
        fires = tracer_with_entry(shown.frame, fires);
    fire_return(record, line, shown, outcome, fires);
}

void fire_cfunction_entry(struct code *caller, PyObject *globals, int line, PyObject *callable)
{
    bool filtered = TRACER_ON(filtered__cfunction__entry) && filter_passes(caller, globals);
    if (!filtered && !MARKER_ON(cfunction__entry))
        return;
    const char *filename = code_text(&caller->filename);
    struct callable names = callable_open(callable);
    if (MARKER_ON(cfunction__entry))
        marker_cfunction__entry(filename, names.name, line, names.module);
    if (filtered)
        marker_filtered__cfunction__entry(filename, names.name, line, names.module,
                                          code_text(&caller->funcname), code_first_module(caller));
    callable_close(&names);
}

void fire_cfunction_return(struct code *caller, PyObject *globals, int line, PyObject *callable)
{
    bool filtered = TRACER_ON(filtered__cfunction__return) && filter_passes(caller, globals);
    if (!filtered && !MARKER_ON(cfunction__return))
        return;
    const char *filename = code_text(&caller->filename);
    struct callable names = callable_open(callable);
    if (MARKER_ON(cfunction__return))
        marker_cfunction__return(filename, names.name, line, names.module);
    if (filtered)
        marker_filtered__cfunction__return(filename, names.name, line, names.module,
                                           code_text(&caller->funcname), code_first_module(caller));
    callable_close(&names);
}

PyObject *fire_exception(PyObject *type, PyObject *value, struct exception_parts *room)
{
    if (!type || (value && py.PyType_IsSubtype(cpython_type(value), type)))
        return value;
    *room = (struct exception_parts){{{1, py.tuple_type}, value ? 2 : 1}, {type, value}};
    return (PyObject *)room;
}

/* Whether the filtered marker has reported it to an earlier tracer, which still is there. */
static bool is_entered(struct code *record, PyObject *globals, unsigned filter_before)
{
    return filter_before && filter_passed(record, globals, filter_before);
}

void fire_entries(PyFrameObject *const *frames, size_t depth, struct tracer_enters enters)
{
    while (depth > 0) {
        PyFrameObject *frame = frames[--depth];
        struct code *record = code_of(frame_code(frame));
        PyObject *globals = frame_globals(frame);
        struct fires fires = {enters.plain, enters.filtered && filter_passes(record, globals) &&
                                                !is_entered(record, globals, enters.filter_before)};
        if (!fires.plain && !fires.filtered)
            continue;
        layout_meet(frame);
        struct shown shown = shown_by_object(frame);
        if (py.minor >= 12)
            tracer_keep_entry(shown.frame, fires);
        fire_entry(record, py.PyFrame_GetLineNumber(frame), shown, fires);
    }
}
