/*
 * Function, line, exception and cfunction markers on CPython 3.12 and later: sys.monitoring (PEP
 * 669) with C callbacks and a tool id of our own.
 *
 * All functions run with the GIL held.  CPython calls the callbacks with no exception in flight:
 * for PY_UNWIND and PY_THROW it holds the exception aside and passes it as an argument
 * (Python/instrumentation.c, Python/ceval.c monitor_*).
 *
 * SPDX-License-Identifier: MIT
 */
#include "callable.h"
#include "code.h"
#include "debug.h"
#include "fire.h"
#include "frame.h"
#include "hook.h"
#include "layout.h"
#include "parting.h"
#include "raise.h"
#include "tally.h"
#include "thread_states.h"
#include "tracer.h"

#include <stddef.h>

/* The ids that PEP 669 leaves free. */
static const int tool_ids[] = {4, 3};
static const char tool_name[] = "systemtap";

static bool fits(void)
{
    return py.minor >= 12;
}

/* The record of the code object that an event is of.  NULL: from 3.13 on a C library may report
 * events of its own (PyMonitoring_FirePyStartEvent() and the like) with any object in place of a
 * code object, which has no record; no marker reports those. */
static inline struct code *record_of(PyObject *object)
{
    struct code *record = code_known(object);
    if (__builtin_expect(record != NULL, 1))
        return record;
    return py.minor < 13 || cpython_type(object) == py.code_type ? code_of(object) : NULL;
}

/* What callbacks return; None is immortal from 3.12 on (PEP 683). */
static inline PyObject *none(void)
{
    return py.none;
}

static int offset_of(PyObject *const *arguments)
{
    return (int)py.PyLong_AsLong(arguments[1]);
}

/* Those of the calling thread's innermost frame, if that runs the code. */
static PyObject *globals_of(PyObject *code)
{
    PyFrameObject *frame = py.PyEval_GetFrame();
    return frame && frame_code(frame) == code ? frame_globals(frame) : NULL;
}

/* Of the calling thread's innermost frame. */
static void entry_here(PyObject *code, struct code *record, int line)
{
    layout_meet_current();
    fire_entry(record, line, shown_now(code, SHOWN_ENTRY));
}

static void return_here(PyObject *code, struct code *record, int line, struct outcome outcome)
{
    layout_meet_current();
    fire_return(record, line, shown_now(code, SHOWN_RETURN), outcome);
}

/* ---------------------------------------------------------------- frames that run already */

/* Which tracer this thread has caught up with. */
static __thread unsigned caught_up;

/* Enters the frames from innermost (a new reference, or NULL) outwards. */
static void enter(PyFrameObject *innermost)
{
    PyFrameObject **frames;
    size_t depth = frame_stack(innermost, &frames);
    fire_entries(frames, depth);
    frame_release(frames, depth);
}

/* Called first in each event of a frame.  Frames that were on this thread's stack when the tracer
 * attached will report their returns.  entering: the current frame's own entry is that event. */
static inline void catch_up(bool entering)
{
    unsigned tracer = atomic_load_explicit(&tracer_number, memory_order_relaxed);
    if (__builtin_expect(caught_up == tracer, 1))
        return;
    caught_up = tracer;
    PyFrameObject *frame = tracer_enters_stack() ? py.PyEval_GetFrame() : NULL;
    if (!frame)
        return;
    if (entering)
        frame = frame_back(frame);
    else
        py.Py_IncRef((PyObject *)frame);
    enter(frame);
}

/* The hook was just set in the calling interpreter, on a thread that may have caught up in another
 * one: its frames here are importlib's, which starts it. */
static void catch_up_here(void)
{
    PyFrameObject *frame = tracer_enters_stack() ? frame_current() : NULL;
    if (!frame)
        return;
    caught_up = tracer_number;
    enter(frame);
}

/* ---------------------------------------------------------------- events */

/* Counts the start of a frame.  Its record, if there is more to do. */
static inline struct code *begins(PyObject *code)
{
    bool counts = tally_counts(TALLY_CALLS);
    struct code *record = counts || MARKER_ON(function__entry) ? record_of(code) : NULL;
    if (counts && record && (record->tally || tally_of(record, globals_of(code))))
        tally_begin(record->tally);
    return record;
}

/* Counts its end. */
static inline struct code *ends(PyObject *code)
{
    bool times = tally_counts(TALLY_TIMES);
    struct code *record = times || MARKER_ON(function__return) ? record_of(code) : NULL;
    if (times && record && record->tally)
        tally_end(record->tally);
    return record;
}

/* PY_START is there for LINE alone (see events): neither sums nor function__entry are wanted, or
 * CPython's own is. */
static atomic_bool start_is_silent;

/* PY_START(code, offset) */
static PyObject *on_start(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    if (atomic_load_explicit(&start_is_silent, memory_order_relaxed))
        return none();
    catch_up(true);
    struct code *record = begins(arguments[0]);
    if (record && MARKER_ON(function__entry))
        entry_here(arguments[0], record, record->first_line);
    return none();
}

/* PY_RESUME(code, offset), PY_THROW(code, offset, exception) */
static PyObject *on_resume(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    catch_up(true);
    struct code *record = begins(arguments[0]);
    if (record && MARKER_ON(function__entry))
        entry_here(arguments[0], record, code_line(arguments[0], record, offset_of(arguments)));
    return none();
}

/* PY_RETURN(code, offset, value), PY_YIELD(code, offset, value) */
static PyObject *on_return(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    catch_up(false);
    struct code *record = ends(arguments[0]);
    if (record && MARKER_ON(function__return))
        return_here(arguments[0], record, code_line(arguments[0], record, offset_of(arguments)),
                    (struct outcome){.result = arguments[2]});
    return none();
}

/* PY_UNWIND(code, offset, exception).  The offset may be that of a RERAISE, which is on no line;
 * the frame stands at the instruction that raised. */
static PyObject *on_unwind(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    PyFrameObject *frame = py.PyEval_GetFrame();
    if (MARKER_ON(exception__raise) && frame)
        raise_leaves(frame);
    catch_up(false);
    struct code *record = ends(arguments[0]);
    if (record && MARKER_ON(function__return)) {
        return_here(arguments[0], record, frame ? py.PyFrame_GetLineNumber(frame) : 0,
                    (struct outcome){.exception = arguments[2]});
    }
    return none();
}

/* RAISE(code, offset, exception) */
static PyObject *on_raise(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    struct code *record = MARKER_ON(exception__raise) ? record_of(arguments[0]) : NULL;
    PyFrameObject *frame = record ? py.PyEval_GetFrame() : NULL;
    if (frame) {
        PyObject *traceback = py.PyException_GetTraceback(arguments[2]);
        raise_came(record, code_line(arguments[0], record, offset_of(arguments)), frame,
                   arguments[2], traceback);
        cpython_drop(&traceback);
    }
    return none();
}

static void fire_line(struct code *record, int line)
{
    marker_line(code_text(&record->filename), code_text(&record->funcname), line);
}

/* LINE(code, line) */
static PyObject *on_line(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    struct code *record = MARKER_ON(line) ? record_of(arguments[0]) : NULL;
    if (record)
        fire_line(record, (int)py.PyLong_AsLong(arguments[1]));
    return none();
}

/* JUMP(code, offset, target).  A loop on one line jumps back to the line it is on, which is a line
 * event for the classic tracer (Python/legacy_tracing.c, sys_trace_jump_func) and no LINE. */
static PyObject *on_jump(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    int from = offset_of(arguments), to = (int)py.PyLong_AsLong(arguments[2]);
    struct code *record = MARKER_ON(line) && to < from ? record_of(arguments[0]) : NULL;
    if (record) {
        int line = code_line(arguments[0], record, to);
        if (line >= 0 && line == code_line(arguments[0], record, from))
            fire_line(record, line);
    }
    return none();
}

/* CALL(code, offset, callable, first argument), and C_RETURN and C_RAISE with the same */
static void fire_cfunction(PyObject *const *arguments,
                           void (*fire)(const char *, const char *, int, const char *))
{
    /* CALL passes the bound method, C_RETURN what it calls. */
    PyObject *callable = callable_behind(arguments[2]);
    struct code *record = callable_of_c(callable) ? record_of(arguments[0]) : NULL;
    if (!record)
        return;
    int line = code_line(arguments[0], record, offset_of(arguments));
    struct callable names = callable_open(callable);
    fire(code_text(&record->filename), names.name, line, names.module);
    callable_close(&names);
}

static inline void count_cfunction(PyObject *const *arguments, void (*count)(struct tally *))
{
    PyObject *callable = callable_behind(arguments[2]);
    struct tally *tally = callable_of_c(callable) ? tally_of_c(callable) : NULL;
    if (tally)
        count(tally);
}

static PyObject *on_call(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    if (MARKER_ON(cfunction__entry))
        fire_cfunction(arguments, marker_cfunction__entry);
    if (tally_counts(TALLY_C_CALLS))
        count_cfunction(arguments, tally_begin);
    return none();
}

static PyObject *on_c_return(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    if (tally_counts(TALLY_TIMES))
        count_cfunction(arguments, tally_end);
    if (MARKER_ON(cfunction__return))
        fire_cfunction(arguments, marker_cfunction__return);
    return none();
}

#define CALLBACK(function) \
    { \
        "systemtap_" #function, (PyCFunction)(void *)function, METH_FASTCALL, 0 \
    }
static PyMethodDef start_def = CALLBACK(on_start);
static PyMethodDef resume_def = CALLBACK(on_resume);
static PyMethodDef return_def = CALLBACK(on_return);
static PyMethodDef unwind_def = CALLBACK(on_unwind);
static PyMethodDef raise_def = CALLBACK(on_raise);
static PyMethodDef line_def = CALLBACK(on_line);
static PyMethodDef jump_def = CALLBACK(on_jump);
static PyMethodDef call_def = CALLBACK(on_call);
static PyMethodDef c_return_def = CALLBACK(on_c_return);

/* CPython gives C_RETURN and C_RAISE only together with CALL.  From 3.13 on it gives no LINE for a
 * line that begins with a frame's first instruction, RESUME, once that is specialised to
 * RESUME_CHECK, of which _Py_call_instrumentation_line() (Python/instrumentation.c) doesn't know:
 * for a lambda, a class, a function on one line.  PY_START keeps it from being specialised. */
enum {
    CFUNCTION = MARKER_BIT(cfunction__entry) | MARKER_BIT(cfunction__return) | TALLY_C_CALLS,
    FUNCTION = MARKER_BIT(function__entry) | MARKER_BIT(function__return),
    BEGINS = MARKER_BIT(function__entry) | TALLY_CALLS,
    ENDS = MARKER_BIT(function__return) | TALLY_TIMES,
    ALL = BEGINS | ENDS | CFUNCTION | MARKER_BIT(line) | MARKER_BIT(exception__raise),
};

static const struct event {
    const char *name;
    PyMethodDef *callback;
    unsigned markers;
} events[] = {
    {"PY_START", &start_def, BEGINS | MARKER_BIT(line)},
    {"PY_RESUME", &resume_def, BEGINS},
    {"PY_THROW", &resume_def, BEGINS},
    {"PY_RETURN", &return_def, ENDS},
    {"PY_YIELD", &return_def, ENDS},
    {"PY_UNWIND", &unwind_def, ENDS | MARKER_BIT(exception__raise)},
    {"RAISE", &raise_def, MARKER_BIT(exception__raise)},
    {"LINE", &line_def, MARKER_BIT(line)},
    {"JUMP", &jump_def, MARKER_BIT(line)},
    {"CALL", &call_def, CFUNCTION},
    {"C_RETURN", &c_return_def, CFUNCTION},
    {"C_RAISE", &c_return_def, CFUNCTION},
};
enum { EVENTS = sizeof events / sizeof *events };

/* sys.monitoring.events.NAME; 0 if this CPython has no such event. */
static long event_bit(PyObject *monitoring, const char *name)
{
    PyObject *all = py.PyObject_GetAttrString(monitoring, "events");
    PyObject *bit = all ? py.PyObject_GetAttrString(all, name) : NULL;
    long result = bit ? py.PyLong_AsLong(bit) : 0;
    if (all)
        py.Py_DecRef(all);
    if (bit)
        py.Py_DecRef(bit);
    py.PyErr_Clear();
    return result;
}

static bool take_tool(PyObject *monitoring, struct interp *interp)
{
    if (!interp->tool_name)
        interp->tool_name = py.PyUnicode_FromString(tool_name);
    for (size_t i = 0;
         i < sizeof tool_ids / sizeof *tool_ids && interp->tool < 0 && interp->tool_name; i++)
        if (cpython_done(py.PyObject_CallMethod(monitoring, "use_tool_id", "iO", tool_ids[i],
                                                interp->tool_name)))
            interp->tool = tool_ids[i];
    py.PyErr_Clear();
    return interp->tool >= 0;
}

/* The program may free any tool's id, and take it for itself.  The name says whose it is, which is
 * an object of our own. */
static bool owns_tool(PyObject *monitoring, const struct interp *interp)
{
    PyObject *owner = py.PyObject_CallMethod(monitoring, "get_tool", "i", interp->tool);
    bool ours = owner == interp->tool_name;
    cpython_done(owner);
    return ours;
}

static bool register_callback(PyObject *monitoring, struct interp *interp,
                              const struct event *event, PyObject *function)
{
    long bit = event_bit(monitoring, event->name);
    struct cpython_attempts attempts = {0};
    bool done = bit && function;
    if (!done)
        return false;
    do {
        PyObject *before = py.PyObject_CallMethod(monitoring, "register_callback", "ilO",
                                                  interp->tool, bit, function);
        done = before;
        if (before)
            py.Py_DecRef(before);
    } while (cpython_attempt(&attempts, done));
    return done;
}

static bool register_callbacks(PyObject *monitoring, struct interp *interp)
{
    bool done = true;
    for (int i = 0; i < EVENTS && done; i++) {
        PyObject *function = py.PyCFunction_NewEx(events[i].callback, NULL, NULL);
        done = register_callback(monitoring, interp, &events[i], function);
        if (function)
            py.Py_DecRef(function);
        py.PyErr_Clear();
    }
    return done;
}

static void give_up_tool(PyObject *monitoring, struct interp *interp)
{
    cpython_done(py.PyObject_CallMethod(monitoring, "set_events", "ii", interp->tool, 0));
    for (int i = 0; i < EVENTS; i++)
        register_callback(monitoring, interp, &events[i], py.none);
    cpython_done(py.PyObject_CallMethod(monitoring, "free_tool_id", "i", interp->tool));
    interp->tool = -1;
}

/* 3.13 calls what is pending, or lets another thread have the GIL, in the middle of a RESUME, and
 * then writes RESUME_CHECK over it, whatever it has become meanwhile (Python/bytecodes.c): that
 * function would have no PY_START any more.  With this each code object is instrumented once more
 * when it next begins.  Other tools have their disabled events enabled, which they may be at any
 * time. */
static void instrument_again(PyObject *monitoring)
{
    cpython_done(py.PyObject_CallMethod(monitoring, "restart_events", NULL));
}

/* In the process. */
static void note_wanted(void)
{
    unsigned wanted = wanted_markers();
    tracer_wants(wanted);
    tally_wants(wanted);
    parting_set(wanted & TALLY_MARKERS);
}

static enum hook_result set(struct interp *interp, unsigned wanted)
{
    PyObject *monitoring = py.PySys_GetObject("monitoring"); /* borrowed */
    /* When the events change, CPython looks into the stack of each thread for what it runs
     * (Python/instrumentation.c, instrument_all_executing_code_objects()). */
    if (!monitoring || thread_states_are_stale())
        return HOOK_LATER;
    if (interp->tool >= 0 && !owns_tool(monitoring, interp)) {
        debug_log("the program has taken sys.monitoring's tool id %d from the shim", interp->tool);
        interp->tool = -1;
        if (wanted) /* not another one: what calls us of this one's events is the program's now */
            return HOOK_NEVER;
    }
    if (!wanted) {
        if (interp->tool >= 0)
            give_up_tool(monitoring, interp);
        note_wanted();
        return HOOK_DONE;
    }
    if (interp->tool < 0) {
        if (!take_tool(monitoring, interp)) {
            debug_log("sys.monitoring has no free tool id");
            return HOOK_NEVER;
        }
        if (!register_callbacks(monitoring, interp)) {
            debug_log("sys.monitoring refused a callback");
            give_up_tool(monitoring, interp);
            return HOOK_NEVER;
        }
    }
    note_wanted();
    start_is_silent = !(wanted & BEGINS);
    long set_of_events = 0;
    for (int i = 0; i < EVENTS; i++)
        if (wanted & events[i].markers)
            set_of_events |= event_bit(monitoring, events[i].name);
    if (!cpython_done(
            py.PyObject_CallMethod(monitoring, "set_events", "il", interp->tool, set_of_events))) {
        debug_log("sys.monitoring refused the events");
        give_up_tool(monitoring, interp);
        return HOOK_NEVER;
    }
    if (py.minor == 13 && (interp->armed & ALL) != wanted)
        instrument_again(monitoring);
    if (!(interp->armed & FUNCTION))
        catch_up_here();
    return HOOK_DONE;
}

static void end(struct interp *interp)
{
    cpython_drop(&interp->tool_name);
}

const struct hook hook_monitoring = {
    .name = "monitoring hook",
    .markers = ALL,
    .uses_code = true,
    .can_be_lost = true,
    .fits = fits,
    .set = set,
    .end = end,
};
