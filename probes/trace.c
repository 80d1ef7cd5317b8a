/*
 * Trace and profile functions (PyEval_SetTrace, PyEval_SetProfile).  A thread has one of each. Ours
 * stands in front of the program's own, calls it with its own object, and leaves that object where
 * sys.gettrace() and sys.getprofile() find it.
 *
 * The program may put its function in place of ours at any time; ours comes back in front of it
 * when the thread next calls a Python function.  When ours isn't wanted any more it goes at its
 * next event.  So no thread ever touches another one's functions.
 *
 * No function tells what C function a thread has; where the thread state keeps it is part of
 * CPython's public headers, and is tried out on a thread state of our own before it is used.
 *
 * All functions run with the GIL held.  CPython calls trace and profile functions with no exception
 * in flight (Python/ceval.c, call_trace_protected).
 *
 * SPDX-License-Identifier: MIT
 */
#include "trace.h"

#include "arm.h"
#include "callable.h"
#include "code.h"
#include "debug.h"
#include "frame.h"

#include <stddef.h>

/* Include/cpython/pystate.h */
enum { TRACE_LINE = 2, TRACE_C_CALL = 4, TRACE_C_EXCEPTION = 5, TRACE_C_RETURN = 6 };

enum { LINE_MARKERS = MARKER_BIT(line) };
enum { CFUNCTION_MARKERS = MARKER_BIT(cfunction__entry) | MARKER_BIT(cfunction__return) };

unsigned trace_wanted;

/* The four words of a thread state, from c_profilefunc on: Include/pystate.h (3.6, 3.7),
 * Include/cpython/pystate.h (3.8-3.11). */
struct functions {
    Py_tracefunc profile, trace;
    PyObject *profile_object, *trace_object;
};

static struct functions *functions_of(PyThreadState *thread)
{
    size_t offset = py.minor == 6 ? 48 : py.minor == 11 ? 64 : 56;
    return (struct functions *)((char *)thread + offset);
}

/* What stood before ours on this thread.  Good only while ours is there. */
static __thread Py_tracefunc program_trace, program_profile;

static int on_trace(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    Py_tracefunc program = program_trace;
    if (what == TRACE_LINE && MARKER_ON(line)) {
        struct code *record = code_of(frame_code(frame));
        marker_line(code_text(&record->filename), code_text(&record->funcname),
                    py.PyFrame_GetLineNumber(frame));
    }
    if (!(trace_wanted & LINE_MARKERS))
        py.PyEval_SetTrace(program, object);
    return program ? program(object, frame, what, argument) : 0;
}

static void fire_cfunction(PyFrameObject *frame, int what, PyObject *function)
{
    bool entry = what == TRACE_C_CALL;
    if (!(entry ? MARKER_ON(cfunction__entry) : MARKER_ON(cfunction__return)))
        return;
    struct code *record = code_of(frame_code(frame));
    struct callable names = callable_open(function);
    (entry ? marker_cfunction__entry : marker_cfunction__return)(
        code_text(&record->filename), names.name, py.PyFrame_GetLineNumber(frame), names.module);
    callable_close(&names);
}

static int on_profile(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    Py_tracefunc program = program_profile;
    if (what == TRACE_C_CALL || what == TRACE_C_EXCEPTION || what == TRACE_C_RETURN)
        fire_cfunction(frame, what, argument);
    if (!(trace_wanted & CFUNCTION_MARKERS))
        py.PyEval_SetProfile(program, object);
    return program ? program(object, frame, what, argument) : 0;
}

void trace_this_thread(PyThreadState *thread)
{
    struct functions *functions = functions_of(thread);
    if ((trace_wanted & LINE_MARKERS) && functions->trace != on_trace) {
        program_trace = functions->trace;
        py.PyEval_SetTrace(on_trace, functions->trace_object);
    }
    if ((trace_wanted & CFUNCTION_MARKERS) && functions->profile != on_profile) {
        program_profile = functions->profile;
        py.PyEval_SetProfile(on_profile, functions->profile_object);
    }
    py.PyErr_Clear(); /* an audit hook of the program may refuse */
}

static int trace_main_thread(void *unused)
{
    (void)unused;
    if (trace_wanted)
        trace_this_thread(py.PyThreadState_Get());
    return 0;
}

/* Sets both functions on a new thread state, and sees whether they are where we look for them. */
static bool layout_is_known(void)
{
    static enum { UNTRIED, KNOWN, UNKNOWN } layout;
    if (layout != UNTRIED)
        return layout == KNOWN;
    PyThreadState *scratch = py.PyThreadState_New(cpython_interpreter());
    if (!scratch)
        return false;
    struct functions *functions = functions_of(scratch);
    bool empty = !functions->profile && !functions->trace && !functions->profile_object &&
                 !functions->trace_object;
    PyThreadState *own = py.PyThreadState_Swap(scratch);
    py.PyEval_SetTrace(on_trace, py.none);
    py.PyEval_SetProfile(on_profile, py.none);
    bool full = functions->profile == on_profile && functions->trace == on_trace &&
                functions->profile_object == py.none && functions->trace_object == py.none;
    py.PyEval_SetTrace(NULL, NULL);
    py.PyEval_SetProfile(NULL, NULL);
    py.PyErr_Clear();
    py.PyThreadState_Clear(scratch);
    py.PyThreadState_Swap(own);
    py.PyThreadState_Delete(scratch);
    layout = empty && full ? KNOWN : UNKNOWN;
    if (layout == UNKNOWN)
        debug_log("the thread states of this CPython are not those of the release");
    return layout == KNOWN;
}

bool trace_set(unsigned wanted)
{
    wanted &= LINE_MARKERS | CFUNCTION_MARKERS;
    if (wanted && !layout_is_known())
        return false;
    trace_wanted = wanted;
    if (wanted) {
        trace_this_thread(py.PyThreadState_Get());
        py.Py_AddPendingCall(trace_main_thread, NULL);
    }
    return true;
}
