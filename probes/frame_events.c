/*
 * The events of a frame that is evaluated, up to 3.11.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame_events.h"

#include "debug.h"
#include "layout.h"

#include <stddef.h>

/* ---------------------------------------------------------------- 3.6 to 3.10 */

void fire_entry_310(void *frame)
{
    fire_entry_by_object(frame, py.PyFrame_GetLineNumber(frame));
}

void count_entry_310(void *frame)
{
    struct function_sums *tally =
        sums_of_code(code_record_of(frame_code(frame)), frame_globals(frame));
    if (tally)
        sums_call_begin(tally);
}

void fire_return_310(void *frame, struct outcome outcome)
{
    fire_return_by_object(frame, py.PyFrame_GetLineNumber(frame), outcome);
}

/* ---------------------------------------------------------------- 3.11 */

static struct PyCFrame_311 *this_cframe(void)
{
    return ((struct PyThreadState_311 *)py.PyThreadState_Get())->cframe;
}

static int line_311(struct PyInterpreterFrame_311 *frame, struct code_record *record)
{
    ptrdiff_t offset = (char *)frame->prev_instr - (char *)first_instr_311(frame);
    return code_line_at(frame->f_code, record, (int)offset);
}

static struct event_frame shown_311(struct PyInterpreterFrame_311 *frame)
{
    return (struct event_frame){frame, frame->f_globals, true};
}

/* While a marker fires, the frame is linked to its caller, so that a probe can walk the stack from
 * it.  CPython links it so in a moment itself. */
void fire_entry_311(void *data)
{
    struct PyInterpreterFrame_311 *frame = data;
    struct code_record *record = code_record_of(frame->f_code);
    struct markers_due fires = markers_due_at_entry(record, frame->f_globals);
    if (!fires.plain && !fires.filtered)
        return;
    frame->previous = this_cframe()->current_frame;
    offsets_check_current(); /* its caller: this frame may not have begun */
    fire_entry(record, line_311(frame, record), shown_311(frame), fires);
}

void count_entry_311(void *data)
{
    struct PyInterpreterFrame_311 *frame = data;
    struct function_sums *tally = sums_of_code(code_record_of(frame->f_code), frame->f_globals);
    if (tally)
        sums_call_begin(tally);
}

/* A generator's frame may be unlinked already. */
void fire_return_311(void *data, struct outcome outcome)
{
    struct PyInterpreterFrame_311 *frame = data;
    struct PyInterpreterFrame_311 *previous = frame->previous;
    struct code_record *record = code_record_of(frame->f_code);
    struct markers_due fires = markers_due_at_return(record, frame->f_globals);
    if (!fires.plain && !fires.filtered)
        return;
    frame->previous = this_cframe()->current_frame;
    offsets_check_current();
    fire_return(record, line_311(frame, record), shown_311(frame), outcome, fires);
    frame->previous = previous;
}

enum layout_311 layout_311;
long co_code_adaptive_311;

/* Compares them with what the public functions say of the function, and of the frames below it on
 * the calling thread, whose list CPython can't change meanwhile. */
static bool is_known_311(const struct PyInterpreterFrame_311 *frame)
{
    PyObject *function = frame->f_func;
    if (py.PySys_GetObject("getobjects") || /* Py_TRACE_REFS: another PyObject_HEAD */
        !function || cpython_type(function) != py.function_type ||
        py.PyFunction_GetCode(function) != frame->f_code ||
        py.PyFunction_GetGlobals(function) != frame->f_globals)
        return false;
    co_code_adaptive_311 = cpython_int_attr(py.code_type, "__basicsize__");
    const struct PyThreadState_311 *thread = (struct PyThreadState_311 *)py.PyThreadState_Get();
    if (co_code_adaptive_311 <= 0 || thread->head.interp != cpython_interpreter() ||
        !thread->cframe || frame->prev_instr < first_instr_311(frame) - 1)
        return false;
    PyFrameObject *caller = py.PyEval_GetFrame();
    const struct PyInterpreterFrame_311 *current = thread->cframe->current_frame;
    if (!caller)
        return !current;
    while (current && current != frame_interpreter_frame(
                                     caller)) /* some have not begun: those have no object */
        current = current->previous;
    return current;
}

bool check_layout_311(void *frame)
{
    layout_311 = is_known_311(frame) ? LAYOUT_311_KNOWN : LAYOUT_311_UNKNOWN;
    if (layout_311 == LAYOUT_311_UNKNOWN)
        debug_log("frames in this CPython 3.11 are not as in the release");
    return layout_311 == LAYOUT_311_KNOWN;
}
