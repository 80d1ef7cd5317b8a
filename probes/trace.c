/*
 * Trace and profile functions (PyEval_SetTrace, PyEval_SetProfile).  A thread state has one of
 * each. Ours stands in front of the program's own, calls it with its own object, and leaves that
 * object where sys.gettrace() and sys.getprofile() find it.
 *
 * The program may put its function in place of ours at any time; ours comes back in front of it
 * when the thread next calls a Python function.  When ours isn't wanted any more it goes at its
 * next event.
 *
 * No function tells what C function a thread has; where the thread state keeps it is part of
 * CPython's public headers, and is compared with what public functions say before it is used.  It
 * is written there, too: PyEval_SetTrace() and PyEval_SetProfile() would have the program's audit
 * hooks run, on a thread and at a moment that are not theirs, and set a function on the calling
 * thread alone.  But up to 3.9 CPython counts the threads that have a trace function, and so each
 * sets that by PyEval_SetTrace(), itself.
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
#include "thread_states.h"

#include <stdlib.h>
#include <string.h>

/* Include/cpython/pystate.h */
enum { TRACE_CALL, TRACE_LINE = 2, TRACE_RETURN, TRACE_C_CALL, TRACE_C_EXCEPTION, TRACE_C_RETURN };

enum { LINE_MARKERS = MARKER_BIT(line) };
enum { CFUNCTION_MARKERS = MARKER_BIT(cfunction__entry) | MARKER_BIT(cfunction__return) };

unsigned trace_wanted;

/* ---------------------------------------------------------------- threads */

/* Records stay for ever: a thread state that comes at the same address takes over the record. */
__thread struct traced_thread *trace_here;

/* NULL where memory runs out. */
static struct traced_thread *record_of(PyThreadState *state)
{
    static struct traced_thread *records[256];
    struct traced_thread **first =
        &records[((uintptr_t)state >> 6) % (sizeof records / sizeof *records)];
    struct traced_thread *thread = *first;
    while (thread && thread->state != state)
        thread = thread->next;
    if (!thread && (thread = calloc(1, sizeof *thread))) {
        thread->state = state;
        thread->next = *first;
        *first = thread;
    }
    return thread;
}

/* The calling thread's, in an event of it. */
static struct traced_thread *record_here(void)
{
    PyThreadState *state = py.PyThreadState_Get();
    if (!trace_here || trace_here->state != state)
        trace_here = record_of(state);
    return trace_here;
}

/* The four words of a thread state, from c_profilefunc on: Include/pystate.h (3.6, 3.7),
 * Include/cpython/pystate.h (3.8-3.11). */
struct functions {
    Py_tracefunc profile, trace;
    PyObject *profile_object, *trace_object;
};

static struct functions *functions_of(PyThreadState *state)
{
    size_t offset = py.minor == 6 ? 48 : py.minor == 11 ? 64 : 56;
    return (struct functions *)((char *)state + offset);
}

/* Whether CPython looks at the functions at all, which it notes before them: use_tracing, from 3.10
 * on in the CFrame. */
static bool is_tracing(PyThreadState *state)
{
    char *functions = (char *)functions_of(state);
    if (py.minor >= 10)
        return **(uint8_t **)(functions - sizeof(void *));
    return *(int *)(functions - (py.minor == 6 ? 4 : 8));
}

/* tracing: while a trace or profile function runs, and this is not 0, CPython looks at none, and
 * finds out after it whether there is any. */
static const int *tracing_of(PyThreadState *state)
{
    return (int *)((char *)state + (py.minor == 6 ? 40 : 44));
}

static void set_tracing(PyThreadState *state, bool on)
{
    char *functions = (char *)functions_of(state);
    if (*tracing_of(state))
        return;
    if (py.minor == 11)
        **(uint8_t **)(functions - sizeof(void *)) = on ? 255 : 0;
    else if (py.minor == 10)
        **(int **)(functions - sizeof(void *)) = on ? 255 : 0;
    else
        *(int *)(functions - (py.minor == 6 ? 4 : 8)) = on;
}

/* This OS thread is setting a function: CPython asks the program's audit hooks first, whose own
 * frames must not begin it again. */
static __thread bool setting;

bool trace_setting(void)
{
    return setting;
}

/* Sets a trace function by CPython's own, on the calling thread, with the object that is there, or
 * was: the thread state may hold the only reference to it, and 3.9 drops that before it takes the
 * new one. */
static void set_trace_39(PyThreadState *state, Py_tracefunc function)
{
    PyObject *object = functions_of(state)->trace_object;
    if (object)
        py.Py_IncRef(object);
    struct cpython_attempts attempts = {0};
    setting = true;
    do {
        if (py._PyEval_SetTrace) /* 3.9: the public one prints where a hook refuses */
            py._PyEval_SetTrace(state, function, object);
        else
            py.PyEval_SetTrace(function, object);
    } while (cpython_attempt(&attempts, !py.PyErr_Occurred()));
    setting = false;
    if (object)
        py.Py_DecRef(object);
}

static void set_trace(PyThreadState *state, Py_tracefunc function)
{
    struct functions *functions = functions_of(state);
    if (py.minor < 10) {
        set_trace_39(state, function);
        return;
    }
    functions->trace = function;
    set_tracing(state, functions->profile || functions->trace);
}

/* Of any thread. */
static void set_profile(PyThreadState *state, Py_tracefunc function)
{
    struct functions *functions = functions_of(state);
    functions->profile = function;
    set_tracing(state, functions->profile || functions->trace);
}

/* ---------------------------------------------------------------- what is wanted */

/* Up to 3.9 an audit hook of the program may refuse: it would be asked again at every call. */
static bool refused_trace;

/* function__return is wanted, for the frames of threads that ran already. */
static bool returns_wanted;

static bool wants_trace(void)
{
    return (trace_wanted & LINE_MARKERS) && !refused_trace;
}

static bool wants_profile(const struct traced_thread *thread)
{
    return (trace_wanted & CFUNCTION_MARKERS) || (returns_wanted && thread->old_count);
}

/* ---------------------------------------------------------------- frames that run already */

static bool layout_is_known(void);

static bool runs(const struct traced_thread *thread, PyFrameObject *frame)
{
    size_t i = thread->old_count;
    while (i > 0 && thread->old[i - 1] != frame)
        i--;
    return i > 0;
}

/* Forgets the frames that returned while the program's function stood in place of ours. */
static void forget_returned(struct traced_thread *thread)
{
    PyFrameObject **frames;
    size_t depth = frame_stack(frame_current(), &frames), i = 0;
    while (i < depth && !runs(thread, frames[i]))
        i++;
    if (i == depth)
        thread->old_count = 0;
    else
        while (thread->old[thread->old_count - 1] != frames[i])
            thread->old_count--;
    frame_release(frames, depth);
}

/* The calling thread meets the present tracer for the first time.  innermost (a new reference, or
 * NULL) and what called it began before. */
static void catch_up(struct traced_thread *thread, PyFrameObject *innermost)
{
    PyFrameObject **frames;
    thread->tracer = frame_tracer;
    thread->quiet = false;
    size_t depth = frame_stack(innermost, &frames);
    free(thread->old);
    thread->old = NULL;
    thread->old_count = 0;
    if (MARKER_ON(function__return) && depth && layout_is_known() &&
        (thread->old = malloc(depth * sizeof *thread->old))) {
        thread->old_count = depth;
        for (size_t i = 0; i < depth; i++)
            thread->old[i] = frames[depth - 1 - i];
        if (frame_enters_stack())
            frame_enter_stack(frames, depth);
    }
    frame_release(frames, depth);
}

/* ---------------------------------------------------------------- events */

static int on_trace(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    struct traced_thread *thread = record_here();
    Py_tracefunc program = thread ? thread->trace : NULL;
    if (what == TRACE_LINE && MARKER_ON(line)) {
        struct code *record = code_of(frame_code(frame));
        marker_line(code_text(&record->filename), code_text(&record->funcname),
                    py.PyFrame_GetLineNumber(frame));
    }
    if (!wants_trace() && !setting) {
        PyThreadState *state = py.PyThreadState_Get();
        set_trace(state, program);
        /* Up to 3.9 that runs audit hooks of the program, which may set another one. */
        if (functions_of(state)->trace != program)
            return 0;
        object = functions_of(state)->trace_object;
    }
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

/* A frame that the frame hook saw begin fires its return there. */
static void fire_return(struct traced_thread *thread, PyFrameObject *frame)
{
    if (thread->old_count == 0 || thread->old[thread->old_count - 1] != frame)
        return;
    thread->old_count--;
    if (MARKER_ON(function__return))
        frame_fire_return(frame, py.PyFrame_GetLineNumber(frame));
}

static int on_profile(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    struct traced_thread *thread = record_here();
    if (!thread) /* not so: ours was set with a record */
        return 0;
    if (arm_knocks && what != TRACE_CALL) { /* the frame hook has answered */
        arm_answer();
        /* That may have run audit hooks of the program, which may have set another one. */
        if (functions_of(thread->state)->profile != on_profile)
            return 0;
        object = functions_of(thread->state)->profile_object;
    }
    Py_tracefunc program = thread->profile;
    if (thread->tracer != frame_tracer && what != TRACE_CALL) {
        py.Py_IncRef((PyObject *)frame);
        catch_up(thread, frame);
    }
    if (what == TRACE_RETURN)
        fire_return(thread, frame);
    else if (what == TRACE_C_CALL || what == TRACE_C_EXCEPTION || what == TRACE_C_RETURN)
        fire_cfunction(frame, what, argument);
    if (!wants_profile(thread) && !setting)
        set_profile(thread->state, program);
    return program ? program(object, frame, what, argument) : 0;
}

/* ---------------------------------------------------------------- setting */

static void take_profile(struct traced_thread *thread, struct functions *functions)
{
    if (functions->profile == on_profile)
        return;
    thread->profile = functions->profile;
    set_profile(thread->state, on_profile);
}

/* Gives the calling thread the functions that it should have. */
static void put_in_place(struct traced_thread *thread)
{
    struct functions *functions = functions_of(thread->state);
    if (wants_trace() && layout_is_known() && functions->trace != on_trace) {
        thread->trace = functions->trace;
        set_trace(thread->state, on_trace);
        if (functions->trace != on_trace) {
            refused_trace = true;
            debug_log("an audit hook of the program refused a trace function");
        }
    }
    if (wants_profile(thread) && layout_is_known())
        take_profile(thread, functions);
}

void trace_visit(void *state)
{
    struct traced_thread *thread = setting ? NULL : record_here();
    if (!thread || thread->state != state)
        return;
    if (thread->tracer != frame_tracer) {
        catch_up(thread, frame_current()); /* the hooked frame's caller */
    } else if (thread->old_count && functions_of(state)->profile != on_profile) {
        forget_returned(thread);
    }
    put_in_place(thread);
}

/* CPython takes a function that is NULL for none, whatever else it has noted. */
bool trace_quieten(PyThreadState *state)
{
    struct traced_thread *thread = trace_here;
    if (!thread || thread->state != state || thread->quiet || thread->old_count == 0 ||
        thread->profile || trace_wanted || !layout_is_known())
        return false;
    struct functions *functions = functions_of(state);
    if (functions->profile != on_profile || !is_tracing(state))
        return false;
    set_profile(state, NULL);
    thread->quiet = true;
    return true;
}

void trace_resume(PyThreadState *state)
{
    struct traced_thread *thread = record_of(state);
    thread->quiet = false;
    if (!functions_of(state)->profile) /* else the program's, or ours by trace_set() */
        take_profile(thread, functions_of(state));
}

/* This and the next one run under the lock of thread_states_walk(). */
static void reach(PyThreadState *state, void *own)
{
    struct traced_thread *thread = state == own ? NULL : record_of(state);
    struct functions *functions = functions_of(state);
    if (!thread)
        return;
    /* What it has on its stack it finds out itself, in its next event. */
    if (returns_wanted || wants_profile(thread))
        take_profile(thread, functions);
    if (wants_trace() && py.minor >= 10 && functions->trace != on_trace) {
        thread->trace = functions->trace;
        set_trace(state, on_trace);
    }
}

static void reach_to_knock(PyThreadState *state, void *own)
{
    struct traced_thread *thread = state == own ? NULL : record_of(state);
    if (thread)
        take_profile(thread, functions_of(state));
}

/* What can't be reached is knocked at by the frame hook alone, or by the watcher's next question.
 */
void trace_knock(PyInterpreterState *interpreter)
{
    if (layout_is_known())
        thread_states_walk(interpreter, reach_to_knock, py.PyThreadState_Get());
}

bool trace_set(unsigned wanted, bool here)
{
    trace_wanted = wanted & (LINE_MARKERS | CFUNCTION_MARKERS);
    returns_wanted = wanted & MARKER_BIT(function__return);
    refused_trace = false;
    if (!here || (!trace_wanted && !returns_wanted))
        return true;
    PyThreadState *own = py.PyThreadState_Get();
    if (py.PyEval_GetFrame()) /* not the watcher, which runs no Python */
        trace_visit(own);
    return !layout_is_known() ||
           thread_states_walk(cpython_interpreter(), reach, own) != WALK_LATER;
}

/* Looks at the calling thread's: the interpreter stands before the functions, and the type of the
 * exception in flight behind them; and whether CPython looks at the functions is told as it should
 * be. */
static bool layout_is_known(void)
{
    static enum { UNTRIED, KNOWN, UNKNOWN } layout;
    if (layout != UNTRIED)
        return layout == KNOWN;
    PyThreadState *own = py.PyThreadState_Get();
    struct functions *functions = functions_of(own);
    PyObject **exception = (PyObject **)(functions + 1);
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    bool right = ((PyInterpreterState **)own)[2] == cpython_interpreter() && !*exception;
    py.Py_IncRef(py.none);
    py.PyErr_Restore(py.none, NULL, NULL);
    right = right && *exception == py.none;
    py.PyErr_Clear();
    py.PyErr_Restore(type, value, traceback);
    right =
        right && (*tracing_of(own) || is_tracing(own) == (functions->profile || functions->trace));
    layout = right ? KNOWN : UNKNOWN;
    if (!right)
        debug_log("the thread states of this CPython are not those of the release");
    return right;
}
