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

/* What stood before ours on this thread, and on which of its thread states (a thread that runs
 * several interpreters has several).  Good only while ours is there. */
static __thread Py_tracefunc program_trace, program_profile;
static __thread PyThreadState *traced_state;

/* This thread is setting a function: CPython asks the program's audit hooks first, whose own frames
 * must not begin it again. */
static __thread bool setting;

/* Sets a function with the object that is there, or was: the thread state may hold the only
 * reference to it, and 3.9 drops that before it takes the new one. */
static void set_function(void (*set)(Py_tracefunc, PyObject *), Py_tracefunc function,
                         PyObject *object)
{
    if (object)
        py.Py_IncRef(object);
    setting = true;
    set(function, object);
    setting = false;
    py.PyErr_Clear();
    if (object)
        py.Py_DecRef(object);
}

/* Where an audit hook of the program refuses, it would be asked again at every call, and CPython
 * writes of each refusal to stderr. */
static void give_up(unsigned markers)
{
    trace_wanted &= ~markers;
    debug_log("an audit hook of the program refused a trace function: markers %x are off", markers);
}

bool trace_setting(void)
{
    return setting;
}

static int on_trace(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    Py_tracefunc program = program_trace;
    if (what == TRACE_LINE && MARKER_ON(line)) {
        struct code *record = code_of(frame_code(frame));
        marker_line(code_text(&record->filename), code_text(&record->funcname),
                    py.PyFrame_GetLineNumber(frame));
    }
    if (!(trace_wanted & LINE_MARKERS) && !setting)
        set_function(py.PyEval_SetTrace, program, object);
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
    if (!(trace_wanted & CFUNCTION_MARKERS) && !setting)
        set_function(py.PyEval_SetProfile, program, object);
    return program ? program(object, frame, what, argument) : 0;
}

void trace_this_thread(PyThreadState *thread)
{
    if (setting)
        return;
    struct functions *functions = functions_of(thread);
    bool trace = (trace_wanted & LINE_MARKERS) && functions->trace != on_trace;
    bool profile = (trace_wanted & CFUNCTION_MARKERS) && functions->profile != on_profile;
    if (!trace && !profile)
        return;
    /* Ours stands on another state of this thread already, with what it found there. */
    if (traced_state && traced_state != thread)
        return;
    traced_state = thread;
    if (trace) {
        program_trace = functions->trace;
        set_function(py.PyEval_SetTrace, on_trace, functions->trace_object);
        if (functions->trace != on_trace)
            give_up(LINE_MARKERS);
    }
    if (profile) {
        program_profile = functions->profile;
        set_function(py.PyEval_SetProfile, on_profile, functions->profile_object);
        if (functions->profile != on_profile)
            give_up(CFUNCTION_MARKERS);
    }
}

static int trace_main_thread(void *unused)
{
    (void)unused;
    if (trace_wanted)
        trace_this_thread(py.PyThreadState_Get());
    return 0;
}

/* PyThreadState_Swap() of a debug build ends the process where the thread has another state of the
 * same interpreter.  3.9 and later can do without. */
static bool swap_is_fatal(void)
{
    return py.PySys_GetObject("gettotalrefcount") != NULL;
}

/* The thread state on which the next two set a function, other than the current
 * one. */
static PyThreadState *scratch_state;

static void set_scratch_trace(Py_tracefunc function, PyObject *object)
{
    py._PyEval_SetTrace(scratch_state, function, object);
}

static void set_scratch_profile(Py_tracefunc function, PyObject *object)
{
    py._PyEval_SetProfile(scratch_state, function, object);
}

/* Sets both functions on a new thread state, and sees whether they are where we look for them. */
static bool layout_is_known(void)
{
    static enum { UNTRIED, KNOWN, UNKNOWN } layout;
    if (layout != UNTRIED)
        return layout == KNOWN;
    bool swaps = !swap_is_fatal();
    if (!swaps && (!py._PyEval_SetTrace || !py._PyEval_SetProfile)) {
        debug_log("a debug build before CPython 3.9: no line and no cfunction markers");
        layout = UNKNOWN;
        return false;
    }
    void (*set_trace)(Py_tracefunc, PyObject *) = swaps ? py.PyEval_SetTrace : set_scratch_trace;
    void (*set_profile)(Py_tracefunc, PyObject *) =
        swaps ? py.PyEval_SetProfile : set_scratch_profile;
    PyThreadState *scratch = py.PyThreadState_New(cpython_interpreter());
    if (!scratch)
        return false;
    struct functions *functions = functions_of(scratch);
    bool empty = !functions->profile && !functions->trace && !functions->profile_object &&
                 !functions->trace_object;
    PyThreadState *own = swaps ? py.PyThreadState_Swap(scratch) : NULL;
    scratch_state = scratch;
    set_function(set_trace, on_trace, py.none);
    set_function(set_profile, on_profile, py.none);
    bool full = functions->profile == on_profile && functions->trace == on_trace &&
                functions->profile_object == py.none && functions->trace_object == py.none;
    set_function(set_trace, NULL, NULL);
    set_function(set_profile, NULL, NULL);
    py.PyThreadState_Clear(scratch);
    if (swaps)
        py.PyThreadState_Swap(own);
    py.PyThreadState_Delete(scratch);
    layout = empty && full ? KNOWN : UNKNOWN;
    if (layout == UNKNOWN)
        debug_log("the thread states of this CPython are not those of the release");
    return layout == KNOWN;
}

void trace_set(unsigned wanted)
{
    wanted &= LINE_MARKERS | CFUNCTION_MARKERS;
    trace_wanted = wanted && layout_is_known() ? wanted : 0;
    if (trace_wanted) {
        if (py.PyEval_GetFrame()) /* not the watcher, which runs no Python */
            trace_this_thread(py.PyThreadState_Get());
        py.Py_AddPendingCall(trace_main_thread, NULL);
    }
}
