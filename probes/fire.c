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

void fire_entry_by_object(PyFrameObject *frame, int line)
{
    struct code_record *record = code_record_of(frame_code(frame));
    struct markers_due fires = markers_due_at_entry(record, frame_globals(frame));
    if (!fires.plain && !fires.filtered)
        return;
    offsets_check_frame(frame);
    fire_entry(record, line, event_frame_of(frame), fires);
}

void fire_return_by_object(PyFrameObject *frame, int line, struct outcome outcome)
{
    struct code_record *record = code_record_of(frame_code(frame));
    struct markers_due fires = markers_due_at_return(record, frame_globals(frame));
    if (!fires.plain && !fires.filtered)
        return;
    offsets_check_frame(frame);
    fire_return(record, line, event_frame_of(frame), outcome, fires);
}

void fire_entry_now(PyObject *code, struct code_record *record, int line, struct markers_due fires)
{
    offsets_check_current();
    struct event_frame shown = event_frame_now(code);
    if (shown.is_current)
        tracer_keep_entry(shown.frame, fires);
    fire_entry(record, line, shown, fires);
}

void fire_return_now(PyObject *code, struct code_record *record, int line, struct outcome outcome,
                     struct markers_due fires)
{
    offsets_check_current();
    struct event_frame shown = event_frame_now(code);
    if (shown.is_current)
        fires = tracer_with_entry(shown.frame, fires);
    fire_return(record, line, shown, outcome, fires);
}

void fire_cfunction_entry(struct code_record *caller, PyObject *globals, int line,
                          PyObject *callable)
{
    bool filtered =
        MARKER_ARMED(filtered__cfunction__entry) && filter_matches_code(caller, globals);
    if (!filtered && !MARKER_ON(cfunction__entry))
        return;
    const char *filename = probe_text(&caller->filename);
    struct callable_names names = callable_names_get(callable);
    if (MARKER_ON(cfunction__entry))
        marker_cfunction__entry(filename, names.name, line, names.module);
    if (filtered)
        marker_filtered__cfunction__entry(filename, names.name, line, names.module,
                                          probe_text(&caller->funcname), code_first_module(caller));
    callable_names_release(&names);
}

void fire_cfunction_return(struct code_record *caller, PyObject *globals, int line,
                           PyObject *callable)
{
    bool filtered =
        MARKER_ARMED(filtered__cfunction__return) && filter_matches_code(caller, globals);
    if (!filtered && !MARKER_ON(cfunction__return))
        return;
    const char *filename = probe_text(&caller->filename);
    struct callable_names names = callable_names_get(callable);
    if (MARKER_ON(cfunction__return))
        marker_cfunction__return(filename, names.name, line, names.module);
    if (filtered)
        marker_filtered__cfunction__return(filename, names.name, line, names.module,
                                           probe_text(&caller->funcname),
                                           code_first_module(caller));
    callable_names_release(&names);
}

PyObject *exception_argument(PyObject *type, PyObject *value, struct exception_pair *room)
{
    if (!type || (value && py.PyType_IsSubtype(cpython_type(value), type)))
        return value;
    *room = (struct exception_pair){{{1, py.tuple_type}, value ? 2 : 1}, {type, value}};
    return (PyObject *)room;
}

/* Whether the filtered marker has reported it to an earlier tracer, which still is there. */
static bool is_entered(struct code_record *record, PyObject *globals, unsigned filter_before)
{
    return filter_before && filter_matched_at(record, globals, filter_before);
}

void fire_running_frames(PyFrameObject *const *frames, size_t depth, struct replay_request enters)
{
    while (depth > 0) {
        PyFrameObject *frame = frames[--depth];
        struct code_record *record = code_record_of(frame_code(frame));
        PyObject *globals = frame_globals(frame);
        struct markers_due fires = {enters.plain,
                                    enters.filtered && filter_matches_code(record, globals) &&
                                        !is_entered(record, globals, enters.filter_replayed)};
        if (!fires.plain && !fires.filtered)
            continue;
        offsets_check_frame(frame);
        struct event_frame shown = event_frame_of(frame);
        if (py.minor >= 12)
            tracer_keep_entry(shown.frame, fires);
        fire_entry(record, py.PyFrame_GetLineNumber(frame), shown, fires);
    }
}
