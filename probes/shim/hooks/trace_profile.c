/*
 * Trace and profile functions (PyEval_SetTrace(), PyEval_SetProfile()), 3.6 to 3.11.  A thread
 * state has one of each.  Ours replaces the program's, and calls it with its own object, which
 * stays where sys.gettrace() and sys.getprofile() find it.  If the program replaces ours, the frame
 * hook puts ours in front again at the thread's next call of a Python function.  Ours is taken out
 * at its next event once no marker needs it.
 *
 * CPython exports no function that returns a thread's trace and profile functions.
 * PyEval_SetTrace() and PyEval_SetProfile() set only those of the calling thread.  They also run
 * the program's audit hooks, at a moment that the program did not choose.  So the shim reads and
 * writes the functions in the thread state, as public headers have it, after a comparison
 * (layout_is_known()).  One exception: up to 3.9 CPython counts the threads with a trace function,
 * so each thread sets its own by PyEval_SetTrace().
 *
 * All functions: GIL held.  CPython calls trace and profile functions with no exception in flight
 * (Python/ceval.c: call_trace_protected()).
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/code.h"
#include "cpython/frame.h"
#include "cpython/threads.h"
#include "hooks/frame_eval.h"
#include "hooks/hook.h"
#include "hooks/rearm.h"
#include "markers/fire.h"
#include "os/process.h"
#include "shared/cpython_structs.h"
#include "sums/sums.h"

#include <stdlib.h>
#include <string.h>

/* Include/cpython/pystate.h */
enum {
    TRACE_CALL,
    TRACE_EXCEPTION,
    TRACE_LINE,
    TRACE_RETURN,
    TRACE_C_CALL,
    TRACE_C_EXCEPTION,
    TRACE_C_RETURN
};

enum { TRACE_MARKERS = MARKER_BITS(line) | MARKER_BITS(exception__raise) };
enum {
    CFUNCTION_MARKERS =
        MARKER_BITS(cfunction__entry) | MARKER_BITS(cfunction__return) | SUMS_C_CALLS
};

unsigned trace_markers;

/* ---------------------------------------------------------------- threads */

/* Records are never freed: a new thread state at the same address takes over the record. */
__thread struct traced_thread *trace_thread;

/* NULL if memory ran out. */
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

/* The calling thread's record; NULL: memory ran out. */
static struct traced_thread *record_here(void)
{
    PyThreadState *state = py.PyThreadState_Get();
    if (!trace_thread || trace_thread->state != state)
        trace_thread = record_of(state);
    return trace_thread;
}

static struct PyThreadState_tracing *functions_of(PyThreadState *state)
{
    return thread_functions(state, py.minor);
}

/* CPython calls the functions only while use_tracing is set. */
static bool is_tracing(PyThreadState *state)
{
    if (py.minor == 11)
        return ((struct PyThreadState_311 *)state)->cframe->use_tracing;
    if (py.minor == 10)
        return ((struct PyThreadState_310 *)state)->cframe->use_tracing;
    return py.minor == 6 ? ((struct PyThreadState_36 *)state)->use_tracing
                         : ((struct PyThreadState_37 *)state)->use_tracing;
}

/* While a trace or profile function runs, CPython calls no other, and sets use_tracing itself
 * afterwards. */
static void set_tracing(PyThreadState *state, bool on)
{
    if (thread_tracing(state, py.minor))
        return;
    if (py.minor == 11)
        ((struct PyThreadState_311 *)state)->cframe->use_tracing = on ? 255 : 0;
    else if (py.minor == 10)
        ((struct PyThreadState_310 *)state)->cframe->use_tracing = on ? 255 : 0;
    else if (py.minor == 6)
        ((struct PyThreadState_36 *)state)->use_tracing = on;
    else
        ((struct PyThreadState_37 *)state)->use_tracing = on;
}

/* This OS thread is setting a trace function.  CPython calls the program's audit hooks first, and
 * their frames must not set it again. */
static __thread bool installing;

/* Up to 3.9: sets the calling thread's trace function by CPython's function, with the present
 * object.  Keeps a reference to the object: the thread state may have the only one, which 3.9 drops
 * before it takes the new one. */
static void set_trace_39(PyThreadState *state, Py_tracefunc function)
{
    PyObject *object = functions_of(state)->c_traceobj;
    if (object)
        py.Py_IncRef(object);
    struct cpython_retries attempts = {0};
    bool was_arming = set_thread_is_arming(true);
    installing = true;
    do {
        if (py._PyEval_SetTrace) /* 3.9: the public one prints a message if a hook refuses */
            py._PyEval_SetTrace(state, function, object);
        else
            py.PyEval_SetTrace(function, object);
    } while (cpython_retry(&attempts, !py.PyErr_Occurred()));
    installing = false;
    set_thread_is_arming(was_arming);
    if (object)
        py.Py_DecRef(object);
}

static void set_trace(PyThreadState *state, Py_tracefunc function)
{
    struct PyThreadState_tracing *functions = functions_of(state);
    if (py.minor < 10) {
        set_trace_39(state, function);
        return;
    }
    functions->c_tracefunc = function;
    set_tracing(state, functions->c_profilefunc || functions->c_tracefunc);
}

/* Of any thread. */
static void set_profile(PyThreadState *state, Py_tracefunc function)
{
    struct PyThreadState_tracing *functions = functions_of(state);
    functions->c_profilefunc = function;
    set_tracing(state, functions->c_profilefunc || functions->c_tracefunc);
}

/* ---------------------------------------------------------------- which functions are needed */

/* Up to 3.9: an audit hook of the program has refused; else it would be asked at every call. */
static bool audit_refused_trace;

/* function__return is enabled, for frames that are running. */
static bool returns_enabled;

static bool wants_trace(void)
{
    return (trace_markers & TRACE_MARKERS) && !audit_refused_trace;
}

static bool wants_profile(const struct traced_thread *thread)
{
    return (trace_markers & CFUNCTION_MARKERS) || (returns_enabled && thread->running_count);
}

/* ---------------------------------------------------------------- replay of running frames */

static bool layout_is_known(void);

static bool runs(const struct traced_thread *thread, PyFrameObject *frame)
{
    size_t i = thread->running_count;
    while (i > 0 && thread->running_frames[i - 1] != frame)
        i--;
    return i > 0;
}

/* Drops the frames that returned while the program's function was set instead of ours. */
static void drop_returned(struct traced_thread *thread)
{
    PyFrameObject **frames;
    size_t depth = frame_stack(frame_current(), &frames), i = 0;
    while (i < depth && !runs(thread, frames[i]))
        i++;
    if (i == depth)
        thread->running_count = 0;
    else
        while (thread->running_frames[thread->running_count - 1] != frames[i])
            thread->running_count--;
    frame_stack_release(frames, depth);
}

/* Starts the replay that is due: innermost (a new reference, or NULL) and its callers began before
 * the tracer attached. */
static void catch_up(struct traced_thread *thread, PyFrameObject *innermost)
{
    PyFrameObject **frames;
    struct replay_request enters = replay_begin(&thread->replayed);
    thread->suspended = false;
    size_t depth = frame_stack(innermost, &frames);
    free(thread->running_frames);
    thread->running_frames = NULL;
    thread->running_count = 0;
    if (EVENT_ON(function__return) && depth && layout_is_known() &&
        (thread->running_frames = malloc(depth * sizeof *thread->running_frames))) {
        thread->running_count = depth;
        for (size_t i = 0; i < depth; i++)
            thread->running_frames[i] = frames[depth - 1 - i];
        if (enters.plain || enters.filtered)
            fire_running_frames(frames, depth, enters);
    }
    frame_stack_release(frames, depth);
}

/* ---------------------------------------------------------------- events */

/* argument: TRACE_EXCEPTION passes (type, value, traceback), TRACE_RETURN passes NULL if an
 * exception leaves the frame. */
static void fire_raise(PyFrameObject *frame, int what, PyObject *argument)
{
    if (what == TRACE_RETURN && !argument)
        raise_left_frame(frame);
    else if (what == TRACE_EXCEPTION)
        raise_reached_frame(code_record_of(frame_code(frame)), py.PyFrame_GetLineNumber(frame),
                            frame, py.PyTuple_GetItem(argument, 1),
                            py.PyTuple_GetItem(argument, 2));
}

/* Whether the event is CPython's.  C code may call the function for frames that it has made up
 * (Cython with profile=True).  The frame hook sees no start of such a frame, so no marker reports
 * it. */
static bool is_running(PyFrameObject *frame)
{
    return py.PyEval_GetFrame() == frame;
}

static int on_trace(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    struct traced_thread *thread = record_here();
    Py_tracefunc program = thread ? thread->trace : NULL;
    bool runs = is_running(frame);
    if (runs && what == TRACE_LINE && EVENT_ON(line))
        fire_line(code_record_of(frame_code(frame)), frame_globals(frame),
                  py.PyFrame_GetLineNumber(frame));
    if (runs && EVENT_ON(exception__raise))
        fire_raise(frame, what, argument);
    if (!wants_trace() && !installing) {
        PyThreadState *state = py.PyThreadState_Get();
        set_trace(state, program);
        /* Up to 3.9 set_trace() runs audit hooks of the program, which may set another function. */
        if (functions_of(state)->c_tracefunc != program)
            return 0;
        object = functions_of(state)->c_traceobj;
    }
    return program ? program(object, frame, what, argument) : 0;
}

static void count_cfunction(PyObject *function, void (*count)(struct function_sums *))
{
    struct function_sums *sums = sums_of_cfunction(function);
    if (sums)
        count(sums);
}

static void fire_cfunction(PyFrameObject *frame, int what, PyObject *function)
{
    bool entry = what == TRACE_C_CALL;
    if (sums_enabled(entry ? SUMS_C_CALLS : SUMS_TIMES))
        count_cfunction(function, entry ? sums_call_begin : sums_call_end);
    if (!(entry ? EVENT_ON(cfunction__entry) : EVENT_ON(cfunction__return)))
        return;
    (entry ? fire_cfunction_entry
           : fire_cfunction_return)(code_record_of(frame_code(frame)), frame_globals(frame),
                                    py.PyFrame_GetLineNumber(frame), function);
}

/* For a frame that began before the tracer attached; the frame hook fires the other returns.
 * result: NULL if an exception leaves the frame, which CPython has saved. */
static void fire_running_return(struct traced_thread *thread, PyFrameObject *frame,
                                PyObject *result)
{
    if (thread->running_count == 0 || thread->running_frames[thread->running_count - 1] != frame)
        return;
    thread->running_count--;
    if (EVENT_ON(function__return))
        fire_return_by_object(frame, py.PyFrame_GetLineNumber(frame),
                              (struct outcome){.result = result});
}

static int on_profile(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    struct traced_thread *thread = record_here();
    if (!thread) /* impossible: ours was set with a record */
        return 0;
    if (rearm_is_requested() && what != TRACE_CALL) { /* at TRACE_CALL the frame hook has rearmed */
        rearm_current();
        /* rearm_current() may have run audit hooks of the program, which may set another
         * function. */
        if (functions_of(thread->state)->c_profilefunc != on_profile)
            return 0;
        object = functions_of(thread->state)->c_profileobj;
    }
    Py_tracefunc program = thread->profile;
    bool runs = is_running(frame);
    if (runs && replay_is_due(&thread->replayed) && what != TRACE_CALL) {
        py.Py_IncRef((PyObject *)frame);
        catch_up(thread, frame);
    }
    if (runs && what == TRACE_RETURN)
        fire_running_return(thread, frame, argument);
    else if (runs && (what == TRACE_C_CALL || what == TRACE_C_EXCEPTION || what == TRACE_C_RETURN))
        fire_cfunction(frame, what, argument);
    if (!wants_profile(thread) && !installing)
        set_profile(thread->state, program);
    return program ? program(object, frame, what, argument) : 0;
}

/* ---------------------------------------------------------------- setting the functions */

static void save_profile(struct traced_thread *thread, struct PyThreadState_tracing *functions)
{
    if (functions->c_profilefunc == on_profile)
        return;
    thread->profile = functions->c_profilefunc;
    set_profile(thread->state, on_profile);
}

static void put_in_place(struct traced_thread *thread)
{
    struct PyThreadState_tracing *functions = functions_of(thread->state);
    if (wants_trace() && layout_is_known() && functions->c_tracefunc != on_trace) {
        thread->trace = functions->c_tracefunc;
        set_trace(thread->state, on_trace);
        if (functions->c_tracefunc != on_trace) {
            audit_refused_trace = true;
            debug_log("the program's own audit hook refused a trace function");
        }
    }
    if (wants_profile(thread) && layout_is_known())
        save_profile(thread, functions);
}

void trace_install(void *state)
{
    struct traced_thread *thread = installing ? NULL : record_here();
    if (!thread || thread->state != state)
        return;
    if (replay_is_due(&thread->replayed)) {
        catch_up(thread, frame_current()); /* the hooked frame's caller */
    } else if (thread->running_count && functions_of(state)->c_profilefunc != on_profile) {
        drop_returned(thread);
    }
    put_in_place(thread);
}

/* CPython calls no function that is NULL, whatever use_tracing says. */
bool trace_suspend(PyThreadState *state)
{
    struct traced_thread *thread = trace_thread;
    if (!thread || thread->state != state || thread->suspended || thread->running_count == 0 ||
        thread->profile || trace_markers || !layout_is_known())
        return false;
    struct PyThreadState_tracing *functions = functions_of(state);
    if (functions->c_profilefunc != on_profile || !is_tracing(state))
        return false;
    set_profile(state, NULL);
    thread->suspended = true;
    return true;
}

void trace_resume(PyThreadState *state)
{
    struct traced_thread *thread = record_of(state);
    thread->suspended = false;
    if (!functions_of(state)->c_profilefunc) /* else the program's, or ours by trace_arm() */
        save_profile(thread, functions_of(state));
}

/* install_on() and force_rearm_on() run under the lock of tstate_for_each(). */
static void install_on(PyThreadState *state, void *own)
{
    struct traced_thread *thread = state == own ? NULL : record_of(state);
    struct PyThreadState_tracing *functions = functions_of(state);
    if (!thread)
        return;
    /* The thread itself finds out, at its next event, which frames are running. */
    if (returns_enabled || wants_profile(thread))
        save_profile(thread, functions);
    if (wants_trace() && py.minor >= 10 && functions->c_tracefunc != on_trace) {
        thread->trace = functions->c_tracefunc;
        set_trace(state, on_trace);
    }
}

static void force_rearm_on(PyThreadState *state, void *own)
{
    struct traced_thread *thread = state == own ? NULL : record_of(state);
    if (thread)
        save_profile(thread, functions_of(state));
}

/* A thread that can't be reached rearms in the frame hook, or at the watcher's next request. */
void trace_force_rearm(PyInterpreterState *interpreter)
{
    if (layout_is_known())
        tstate_for_each(interpreter, force_rearm_on, py.PyThreadState_Get());
}

bool trace_arm(unsigned enabled, bool here)
{
    trace_markers = enabled & (TRACE_MARKERS | CFUNCTION_MARKERS);
    returns_enabled = enabled & MARKER_BITS(function__return);
    audit_refused_trace = false;
    if (!here || (!trace_markers && !returns_enabled))
        return true;
    PyThreadState *own = py.PyThreadState_Get();
    if (py.PyEval_GetFrame()) /* not the watcher, which runs no Python */
        trace_install(own);
    return !layout_is_known() ||
           tstate_for_each(cpython_interpreter(), install_on, own) != WALK_LATER;
}

/* Compares the calling thread's state with the release: the interpreter before the functions, and
 * the type of the exception in flight after them.  use_tracing must agree with the functions. */
static bool layout_is_known(void)
{
    static enum { UNTRIED, KNOWN, UNKNOWN } layout;
    if (layout != UNTRIED)
        return layout == KNOWN;
    PyThreadState *own = py.PyThreadState_Get();
    struct PyThreadState_tracing *functions = functions_of(own);
    PyObject **exception = &functions->curexc_type;
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    bool right = ((struct PyThreadState_head *)own)->interp == cpython_interpreter() && !*exception;
    py.Py_IncRef(py.none);
    py.PyErr_Restore(py.none, NULL, NULL);
    right = right && *exception == py.none;
    py.PyErr_Clear();
    py.PyErr_Restore(type, value, traceback);
    right = right && (thread_tracing(own, py.minor) ||
                      is_tracing(own) == (functions->c_profilefunc || functions->c_tracefunc));
    layout = right ? KNOWN : UNKNOWN;
    if (!right)
        debug_log("thread states in this CPython are not as in the release");
    return right;
}
