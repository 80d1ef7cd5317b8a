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

/* While a trace or profile function runs (tracing is not 0) CPython looks at none, and finds out
 * after it whether there is any. */
static void set_tracing(PyThreadState *state, bool on)
{
    char *functions = (char *)functions_of(state);
    if (*(int *)((char *)state + (py.minor == 6 ? 40 : 44)))
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

typedef int (*setter)(PyThreadState *, Py_tracefunc, PyObject *);

/* Sets a function with the object that is there, or was: the thread state may hold the only
 * reference to it, and 3.9 drops that before it takes the new one.  Before 3.9 a function can be
 * set on the calling thread only. */
static void set_function(setter set, void (*set_here)(Py_tracefunc, PyObject *),
                         PyThreadState *state, Py_tracefunc function, PyObject *object)
{
    if (object)
        py.Py_IncRef(object);
    setting = true;
    if (set)
        set(state, function, object);
    else
        set_here(function, object);
    setting = false;
    py.PyErr_Clear();
    if (object)
        py.Py_DecRef(object);
}

static void set_trace(PyThreadState *state, Py_tracefunc function, PyObject *object)
{
    set_function(py._PyEval_SetTrace, py.PyEval_SetTrace, state, function, object);
}

static void set_profile(PyThreadState *state, Py_tracefunc function, PyObject *object)
{
    set_function(py._PyEval_SetProfile, py.PyEval_SetProfile, state, function, object);
}

/* ---------------------------------------------------------------- what is wanted */

/* An audit hook of the program refused: it would be asked again at every call. */
static bool refused_trace, refused_profile;

/* function__return is wanted, for the frames of threads that ran already. */
static bool returns_wanted;

static bool wants_trace(void)
{
    return (trace_wanted & LINE_MARKERS) && !refused_trace;
}

static bool wants_profile(const struct traced_thread *thread)
{
    return ((trace_wanted & CFUNCTION_MARKERS) || (returns_wanted && thread->old_count)) &&
           !refused_profile;
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
    if (MARKER_ON(function__return) && !refused_profile && depth && layout_is_known() &&
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
    if (!wants_trace() && !setting)
        set_trace(py.PyThreadState_Get(), program, object);
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
        set_profile(thread->state, program, object);
    return program ? program(object, frame, what, argument) : 0;
}

/* ---------------------------------------------------------------- setting */

static void give_up(bool *refused, const char *what)
{
    *refused = true;
    debug_log("an audit hook of the program refused a %s function", what);
}

/* Gives the calling thread the functions that it should have. */
static void put_in_place(struct traced_thread *thread)
{
    struct functions *functions = functions_of(thread->state);
    if (wants_trace() && layout_is_known() && functions->trace != on_trace) {
        thread->trace = functions->trace;
        set_trace(thread->state, on_trace, functions->trace_object);
        if (functions->trace != on_trace)
            give_up(&refused_trace, "trace");
    }
    if (wants_profile(thread) && layout_is_known() && functions->profile != on_profile) {
        thread->profile = functions->profile;
        set_profile(thread->state, on_profile, functions->profile_object);
        if (functions->profile != on_profile)
            give_up(&refused_profile, "profile");
    }
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
    functions->profile = NULL;
    if (!functions->trace)
        set_tracing(state, false);
    thread->quiet = true;
    return true;
}

void trace_resume(PyThreadState *state)
{
    struct traced_thread *thread = record_of(state);
    struct functions *functions = functions_of(state);
    thread->quiet = false;
    if (functions->profile) /* the program's, or ours by trace_set() */
        return;
    functions->profile = on_profile;
    set_tracing(state, true);
}

static int visit_main_thread(void *unused)
{
    (void)unused;
    trace_visit(py.PyThreadState_Get());
    return 0;
}

/* Whether a pending call may be asked for.  3.8 refuses it from the end of the program's code on,
 * while the functions of atexit run, and prints that (Python/ceval.c, _PyEval_AddPendingCall): so
 * there the main thread is to be in that code, as its outermost frame shows.  The GIL is ours. */
static bool main_thread_runs(void)
{
    if (py.minor != 8)
        return true;
    PyThreadState *oldest = NULL, *state = py.PyInterpreterState_ThreadHead(cpython_interpreter());
    for (; state; state = py.PyThreadState_Next(state))
        oldest = state;
    /* behind prev, next and interp: Include/cpython/pystate.h */
    PyFrameObject *frame = oldest && layout_is_known() ? ((PyFrameObject **)oldest)[3] : NULL;
    if (!frame)
        return false;
    py.Py_IncRef((PyObject *)frame);
    for (PyFrameObject *back; (back = frame_back(frame)); frame = back)
        py.Py_DecRef((PyObject *)frame);
    const char *name = code_of(frame_code(frame))->funcname.utf8;
    bool runs = name && (strcmp(name, "<module>") == 0 || strcmp(name, "_run_module_as_main") == 0);
    py.Py_DecRef((PyObject *)frame);
    return runs;
}

/* The functions of other threads are written to directly: their objects stay, so that nothing is
 * audited and nothing freed, and the GIL is ours for all of the walk.  Up to 3.9 CPython also
 * counts the threads that have a trace function, so there each sets its own. */
static void reach_other_threads(void)
{
    if (!layout_is_known())
        return;
    PyThreadState *own = py.PyThreadState_Get();
    PyThreadState *state = py.PyInterpreterState_ThreadHead(cpython_interpreter());
    for (; state; state = py.PyThreadState_Next(state)) {
        struct traced_thread *thread = state == own ? NULL : record_of(state);
        struct functions *functions = functions_of(state);
        if (!thread)
            continue;
        /* What it has on its stack it finds out itself, in its next event. */
        if ((returns_wanted || wants_profile(thread)) && !refused_profile &&
            functions->profile != on_profile) {
            thread->profile = functions->profile;
            functions->profile = on_profile;
            set_tracing(state, true);
        }
        if (wants_trace() && py.minor >= 10 && functions->trace != on_trace) {
            thread->trace = functions->trace;
            functions->trace = on_trace;
            set_tracing(state, true);
        }
    }
}

void trace_set(unsigned wanted, bool here)
{
    trace_wanted = wanted & (LINE_MARKERS | CFUNCTION_MARKERS);
    returns_wanted = wanted & MARKER_BIT(function__return);
    refused_trace = refused_profile = false;
    if (!here || (!trace_wanted && !returns_wanted))
        return;
    if (py.PyEval_GetFrame()) /* not the watcher, which runs no Python */
        trace_visit(py.PyThreadState_Get());
    if (py.minor < 10 && trace_wanted && main_thread_runs())
        py.Py_AddPendingCall(visit_main_thread, NULL);
    reach_other_threads();
}

/* Sets both functions on a new thread state, and sees whether they are where we look for them. */
static bool layout_is_known(void)
{
    static enum { UNTRIED, KNOWN, UNKNOWN } layout;
    if (layout != UNTRIED)
        return layout == KNOWN;
    layout = UNKNOWN; /* for what the program's audit hooks call meanwhile */
    PyThreadState *scratch = py.PyThreadState_New(cpython_interpreter());
    if (!scratch)
        return false;
    struct functions *functions = functions_of(scratch);
    bool empty = !functions->profile && !functions->trace && !functions->profile_object &&
                 !functions->trace_object;
    /* A debug build takes no other thread state. */
    bool swap = !py._PyEval_SetTrace && !py.PySys_GetObject("gettotalrefcount");
    PyThreadState *own = swap ? py.PyThreadState_Swap(scratch) : NULL;
    if (swap || py._PyEval_SetTrace) {
        set_trace(scratch, on_trace, py.none);
        set_profile(scratch, on_profile, py.none);
    }
    bool full = functions->profile == on_profile && functions->trace == on_trace &&
                is_tracing(scratch) && functions->profile_object == py.none &&
                functions->trace_object == py.none;
    if (full) {
        set_trace(scratch, NULL, NULL);
        set_profile(scratch, NULL, NULL);
        full = !is_tracing(scratch);
    }
    py.PyThreadState_Clear(scratch);
    if (swap)
        py.PyThreadState_Swap(own);
    py.PyThreadState_Delete(scratch);
    layout = empty && full ? KNOWN : UNKNOWN;
    if (layout == UNKNOWN)
        debug_log("the thread states of this CPython are not those of the release");
    return layout == KNOWN;
}
