/*
 * Function, line, exception and cfunction markers on CPython 3.12 and later: sys.monitoring (PEP
 * 669) with C callbacks and a tool id of the shim's.
 *
 * All functions: GIL held, unless hook.h says otherwise.  In a free-threaded build callbacks run on
 * many threads at once, each for a frame of its own thread.  CPython calls callbacks with no
 * exception in flight: for PY_UNWIND and PY_THROW it saves the exception and passes it as an
 * argument (Python/instrumentation.c; Python/ceval.c: monitor_*()).
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/code.h"
#include "cpython/frame.h"
#include "cpython/threads.h"
#include "hooks/hook.h"
#include "markers/detach.h"
#include "markers/fire.h"
#include "os/process.h"
#include "sums/sums.h"

#include <stddef.h>
#include <string.h>

/* ---------------------------------------------------------------- the tool: declarations */

struct monitoring_event {
    const char *name;
    PyMethodDef *callback;
    unsigned markers; /* that it fires */
};

/* sys.monitoring.events.NAME; 0 if this CPython has no such event. */
long monitoring_event_bit(PyObject *monitoring, const char *name);

/* Uses a free id as interp->tool_id.  False: none is free. */
bool monitoring_use_tool_id(PyObject *monitoring, struct interp *interp);

/* An interpreter starts: from now on interp->lacks_id says whether no id is free. */
void monitoring_start(struct interp *interp);

/* The interpreter is cleared. */
void monitoring_end(struct interp *interp);

/* From now on the program gets our id if it asks for it.  The tool then uses another id, with the
 * same callbacks and events, or none. */
void monitoring_give_way(PyObject *monitoring, const struct monitoring_event *events, size_t count);

/* Whether the id is still ours: the program may free any tool's id, and use it. */
bool monitoring_owns_tool_id(PyObject *monitoring, const struct interp *interp);

/* Registers the callbacks.  False: one was refused. */
bool monitoring_register_callbacks(PyObject *monitoring, struct interp *interp,
                                   const struct monitoring_event *events, size_t count);

/* Frees the id, with its events and callbacks. */
void monitoring_free_tool_id(PyObject *monitoring, struct interp *interp,
                             const struct monitoring_event *events, size_t count);

/* Enables all disabled events again, also those of other tools: any tool may do so at any time.
 * CPython instruments each code object anew when it next starts or resumes. */
void monitoring_restart_events(PyObject *monitoring);

/* ---------------------------------------------------------------- ids and event bits */

/* Tried in this order: first the two that PEP 669 leaves without a name, last the debugger's. */
static const int tool_ids[] = {4, 3, 5, 2, 1, 0};
enum { IDS = sizeof tool_ids / sizeof *tool_ids };
static const char tool_name[] = "systemtap";

long monitoring_event_bit(PyObject *monitoring, const char *name)
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

/* ---------------------------------------------------------------- the tool id */

static void set_lacking(struct interp *interp, bool lacking)
{
    if (lacking && !interp->lacks_id)
        debug_log("all ids of sys.monitoring are taken by others: no markers of functions, lines, "
                  "C functions and exceptions until one is free");
    interp->lacks_id = lacking;
}

static void look(PyObject *monitoring, struct interp *interp)
{
    bool free = false;
    for (int i = 0; i < IDS && !free; i++) {
        PyObject *owner = py.PyObject_CallMethod(monitoring, "get_tool", "i", tool_ids[i]);
        free = !owner || owner == py.none;
        cpython_ignore_result(owner);
    }
    py.PyErr_Clear();
    set_lacking(interp, !free);
}

void monitoring_end(struct interp *interp)
{
    interp->lacks_id = false;
    cpython_clear_ref(&interp->tool_name);
}

bool monitoring_use_tool_id(PyObject *monitoring, struct interp *interp)
{
    if (!interp->tool_name)
        interp->tool_name = py.PyUnicode_FromString(tool_name);
    for (int i = 0; i < IDS && interp->tool_id < 0 && interp->tool_name; i++)
        if (cpython_ignore_result(py.PyObject_CallMethod(monitoring, "use_tool_id", "iO",
                                                         tool_ids[i], interp->tool_name)))
            interp->tool_id = tool_ids[i];
    py.PyErr_Clear();
    set_lacking(interp, interp->tool_id < 0);
    return interp->tool_id >= 0;
}

/* By identity: the name is an object of our own. */
bool monitoring_owns_tool_id(PyObject *monitoring, const struct interp *interp)
{
    PyObject *owner = py.PyObject_CallMethod(monitoring, "get_tool", "i", interp->tool_id);
    bool ours = owner == interp->tool_name;
    cpython_ignore_result(owner);
    return ours;
}

static bool register_callback(PyObject *monitoring, struct interp *interp,
                              const struct monitoring_event *event, PyObject *function)
{
    long bit = monitoring_event_bit(monitoring, event->name);
    struct cpython_retries attempts = {0};
    bool done = bit && function;
    if (!done)
        return false;
    do {
        PyObject *before = py.PyObject_CallMethod(monitoring, "register_callback", "ilO",
                                                  interp->tool_id, bit, function);
        done = before;
        if (before)
            py.Py_DecRef(before);
    } while (cpython_retry(&attempts, done));
    return done;
}

/* ---------------------------------------------------------------- callbacks */

bool monitoring_register_callbacks(PyObject *monitoring, struct interp *interp,
                                   const struct monitoring_event *events, size_t count)
{
    bool done = true;
    for (size_t i = 0; i < count && done; i++) {
        PyObject *function = py.PyCFunction_NewEx(events[i].callback, NULL, NULL);
        done = register_callback(monitoring, interp, &events[i], function);
        if (function)
            py.Py_DecRef(function);
        py.PyErr_Clear();
    }
    return done;
}

void monitoring_free_tool_id(PyObject *monitoring, struct interp *interp,
                             const struct monitoring_event *events, size_t count)
{
    cpython_ignore_result(
        py.PyObject_CallMethod(monitoring, "set_events", "ii", interp->tool_id, 0));
    for (size_t i = 0; i < count; i++)
        register_callback(monitoring, interp, &events[i], py.none);
    cpython_ignore_result(py.PyObject_CallMethod(monitoring, "free_tool_id", "i", interp->tool_id));
    interp->tool_id = -1;
}

void monitoring_restart_events(PyObject *monitoring)
{
    cpython_ignore_result(py.PyObject_CallMethod(monitoring, "restart_events", NULL));
}

/* ---------------------------------------------------------------- the program's use of ids */

/*
 * The program must get each id as if the shim had no tool, and stap-python must know when no id is
 * left.  So sys.monitoring's use_tool_id() and free_tool_id() call functions of ours: ml_meth of
 * their PyMethodDef is replaced, as in sums/sums.c, and the function objects stay the same.  If the
 * program asks for our id, our tool uses another one, and the program gets it.
 */

/* The arguments of monitoring_give_way(). */
static const struct monitoring_event *given;
static size_t given_count;

/* A function of sys.monitoring. */
struct replaced {
    PyMethodDef *_Atomic definition; /* NULL: not found */
    _Atomic(PyCFunction) original;
};
static struct replaced use, release;

/* METH_FASTCALL: the module, the arguments. */
typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);

/* Between the end of the events at the old id and their start at the new one no Python code may
 * run.  Its calls would be reported twice, or not at all. */
static void move_to_another_id(PyObject *monitoring, struct interp *interp)
{
    struct interp before = *interp;
    interp->tool_id = -1;
    bool moved = monitoring_use_tool_id(monitoring, interp) &&
                 monitoring_register_callbacks(monitoring, interp, given, given_count);
    PyObject *set = py.PyObject_CallMethod(monitoring, "get_events", "i", before.tool_id);
    cpython_ignore_result(
        py.PyObject_CallMethod(monitoring, "set_events", "ii", before.tool_id, 0));
    if (moved && set)
        cpython_ignore_result(
            py.PyObject_CallMethod(monitoring, "set_events", "iO", interp->tool_id, set));
    cpython_clear_ref(&set);
    if (py.minor == 13) /* as in needs_restart() */
        monitoring_restart_events(monitoring);
    monitoring_free_tool_id(monitoring, &before, given, given_count);
    if (!moved && interp->tool_id >= 0)
        monitoring_free_tool_id(monitoring, interp, given, given_count);
}

/* Called with the exception of a refused use_tool_id() in flight.  True: the program was refused
 * our id, and can have it now; the exception is cleared. */
static bool gives_way(PyObject *monitoring, PyObject *const *arguments, Py_ssize_t count)
{
    struct interp *interp = interp_of(cpython_interpreter());
    if (count != 2 || !interp || interp->tool_id < 0 || tstate_list_is_stale() ||
        !can_stop_the_world() || atomic_exchange(&interp->arming, true))
        return false; /* `arming`: another thread is setting hooks */
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    bool was_arming = set_thread_is_arming(true);
    bool gives = py.PyLong_AsLong(arguments[0]) == interp->tool_id &&
                 py.PyType_IsSubtype(cpython_type(arguments[1]), cpython_type(interp->tool_name)) &&
                 monitoring_owns_tool_id(monitoring, interp);
    py.PyErr_Clear();
    if (gives)
        move_to_another_id(monitoring, interp);
    py.PyErr_Clear();
    set_thread_is_arming(was_arming);
    if (gives)
        cpython_clear_ref(&type), cpython_clear_ref(&value), cpython_clear_ref(&traceback);
    else
        py.PyErr_Restore(type, value, traceback);
    atomic_store(&interp->arming, false);
    return gives;
}

/* use_tool_id(id, name) */
static PyObject *use_tool_id(PyObject *monitoring, PyObject *const *arguments, Py_ssize_t count)
{
    fast_function function = (fast_function)(void *)use.original;
    PyObject *result = function(monitoring, arguments, count);
    if (thread_is_arming())
        return result;
    if (!result && gives_way(monitoring, arguments, count))
        result = function(monitoring, arguments, count);
    struct interp *interp = result ? interp_of(cpython_interpreter()) : NULL;
    if (interp && interp->tool_id < 0)
        look(monitoring, interp);
    return result;
}

/* free_tool_id(id) */
static PyObject *free_tool_id(PyObject *monitoring, PyObject *id)
{
    PyObject *result = release.original(monitoring, id);
    struct interp *interp = result && !thread_is_arming() ? interp_of(cpython_interpreter()) : NULL;
    if (interp && interp->lacks_id)
        look(monitoring, interp);
    return result;
}

static void replace(PyObject *monitoring, const char *name, int flags, struct replaced *replaced,
                    PyCFunction ours)
{
    PyObject *function = py.PyObject_GetAttrString(monitoring, name);
    PyMethodDef *found = function && cpython_type(function) == py.cfunction_type
                             ? callable_methoddef(function)
                             : NULL; /* the program has replaced it */
    if (found && !replaced->definition && found->ml_flags == flags &&
        strcmp(found->ml_name, name) == 0) {
        replaced->original = found->ml_meth;
        replaced->definition = found;
    }
    if (replaced->definition)
        replaced->definition->ml_meth = ours;
    cpython_clear_ref(&function);
    py.PyErr_Clear();
}

static void put_back(struct replaced *replaced)
{
    if (replaced->definition)
        replaced->definition->ml_meth = replaced->original;
}

void monitoring_give_way(PyObject *monitoring, const struct monitoring_event *events, size_t count)
{
    given = events;
    given_count = count;
    if (detach_is_requested())
        return;
    replace(monitoring, "use_tool_id", METH_FASTCALL, &use, (PyCFunction)(void *)use_tool_id);
    replace(monitoring, "free_tool_id", METH_O, &release, free_tool_id);
}

void monitoring_leave(void)
{
    put_back(&use);
    put_back(&release);
}

void monitoring_start(struct interp *interp)
{
    PyObject *monitoring = cpython_sys_attr("monitoring");
    if (!monitoring)
        return;
    monitoring_give_way(monitoring, given, given_count);
    look(monitoring, interp);
    cpython_clear_ref(&monitoring);
}

/* ---------------------------------------------------------------- helpers of the callbacks */

static bool fits(void)
{
    return py.minor >= 12;
}

/* The record of an event's code object.  NULL: no code object.  From 3.13 on C libraries may report
 * events of their own with any object (PyMonitoring_FirePyStartEvent() and the like), which no
 * marker reports. */
static inline struct code_record *record_of(PyObject *object)
{
    struct code_record *record = code_record_if_any(object);
    if (__builtin_expect(record != NULL, 1))
        return record;
    return py.minor < 13 || cpython_type(object) == py.code_type ? code_record_of(object) : NULL;
}

/* Callbacks return this without a new reference: None is immortal from 3.12 on (PEP 683). */
static inline PyObject *none(void)
{
    return py.none;
}

static int offset_of(PyObject *const *arguments)
{
    return (int)py.PyLong_AsLong(arguments[1]);
}

/* The calling thread's innermost frame, if that runs the code.  Borrowed. */
static PyFrameObject *frame_of(PyObject *code)
{
    PyFrameObject *frame = py.PyEval_GetFrame();
    return frame && frame_code(frame) == code ? frame : NULL;
}

static PyObject *globals_of(PyObject *code)
{
    PyFrameObject *frame = frame_of(code);
    return frame ? frame_globals(frame) : NULL;
}

/* ---------------------------------------------------------------- replay of running frames */

/* The latest replay of this thread. */
static __thread struct replay_state seen;

/* Fires the entries of innermost (a new reference, or NULL) and its callers. */
static void enter(PyFrameObject *innermost, struct replay_request enters)
{
    PyFrameObject **frames;
    size_t depth = frame_stack(innermost, &frames);
    fire_running_frames(frames, depth, enters);
    frame_stack_release(frames, depth);
}

/* Called first in each event of a frame.  Replays the frames that were on this thread's stack when
 * the tracer attached: they will report their returns.  entering: the event is the current frame's
 * own entry. */
static inline void catch_up(bool entering)
{
    if (__builtin_expect(!replay_is_due(&seen), 1))
        return;
    struct replay_request enters = replay_begin(&seen);
    PyFrameObject *frame = enters.plain || enters.filtered ? py.PyEval_GetFrame() : NULL;
    if (!frame)
        return;
    if (entering)
        frame = frame_back(frame);
    else
        py.Py_IncRef((PyObject *)frame);
    enter(frame, enters);
}

/* Replays the thread's frames in the calling interpreter, where the hook has just been set.  The
 * thread may have had its replay in another interpreter.  Its frames here are those of importlib,
 * which runs while the interpreter starts.  reports_starts: PY_START is set. */
static void catch_up_here(bool reports_starts)
{
    struct replay_state nothing = {0};
    struct replay_request enters = replay_begin(&nothing);
    PyFrameObject *frame = enters.plain || enters.filtered ? frame_current() : NULL;
    if (frame && reports_starts && frame_repeats_resume(frame)) {
        PyFrameObject *caller = frame_back(frame);
        py.Py_DecRef((PyObject *)frame);
        frame = caller;
    }
    if (!frame)
        return;
    seen = nothing;
    enter(frame, enters);
}

/* ---------------------------------------------------------------- patterns */

/* sys.monitoring.DISABLE, the same for all interpreters (Python/instrumentation.c:
 * _PyInstrumentation_DISABLE); NULL: unknown. */
static PyObject *_Atomic disable;

/* A callback has returned DISABLE, in some interpreter. */
static atomic_bool has_disabled;

/* Returns DISABLE if only filtered markers need this event and no pattern matches.  others: other
 * markers need it.  Goes by the armed patterns, not the newest: another tracer may come before the
 * hooks are set anew. */
static inline PyObject *unless_filtered(struct code_record *record, bool others)
{
    PyObject *disabled = atomic_load_explicit(&disable, memory_order_relaxed);
    if (others || !disabled || !record || filter_may_match(record))
        return none();
    has_disabled = true;
    py.Py_IncRef(disabled);
    return disabled;
}

/* ---------------------------------------------------------------- events */

static inline bool passes(struct code_record *record, PyObject *code)
{
    return filter_matches_code(record, filter_is_cached(record) ? NULL : globals_of(code));
}

/* Counts the start of a frame, and fires its entry.  NULL: no record was needed, or no code
 * object. */
static inline struct code_record *begins(PyObject *const *arguments, bool first_line)
{
    PyObject *code = arguments[0];
    bool counts = sums_enabled(SUMS_CALLS);
    struct code_record *record = counts || EVENT_ON(function__entry) ? record_of(code) : NULL;
    if (!record)
        return NULL;
    struct function_sums *sums = counts ? sums_in(record) : NULL;
    if (counts && (sums || (sums = sums_of_code(record, globals_of(code)))))
        sums_call_begin(sums);
    struct markers_due fires = {MARKER_ARMED(function__entry),
                                MARKER_ARMED(filtered__function__entry) && passes(record, code)};
    if (fires.plain || fires.filtered)
        fire_entry_now(code, record,
                       first_line ? record->first_line
                                  : code_line_at(code, record, offset_of(arguments)),
                       fires);
    return record;
}

/* Counts the end of a frame.  NULL: no record was needed, or no code object. */
static inline struct code_record *ends(PyObject *code)
{
    bool times = sums_enabled(SUMS_TIMES);
    struct code_record *record = times || EVENT_ON(function__return) ? record_of(code) : NULL;
    if (times && record && record->sums)
        sums_call_end(sums_in(record));
    return record;
}

static inline struct markers_due at_return(PyObject *code, struct code_record *record)
{
    return (struct markers_due){MARKER_ARMED(function__return),
                                MARKER_ARMED(filtered__function__return) && passes(record, code)};
}

/* PY_START is set for LINE alone (see `events`): sums and entries are not enabled, or CPython's own
 * markers report them. */
static atomic_bool start_is_silent;

static inline bool begins_unfiltered(void)
{
    return marker_is_armed(MARKER_BIT(function__entry)) || sums_enabled(SUMS_CALLS);
}

/* PY_START(code, offset) */
static PyObject *on_start(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    if (atomic_load_explicit(&start_is_silent, memory_order_relaxed))
        return unless_filtered(code_record_if_any(arguments[0]), marker_is_armed(MARKER_BIT(line)));
    catch_up(true);
    struct code_record *record = begins(arguments, true);
    return unless_filtered(record, begins_unfiltered() || marker_is_armed(MARKER_BIT(line)));
}

/* PY_RESUME(code, offset) */
static PyObject *on_resume(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    catch_up(true);
    struct code_record *record = begins(arguments, false);
    return unless_filtered(record, begins_unfiltered());
}

/* PY_THROW(code, offset, exception), which can't be disabled */
static PyObject *on_throw(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    catch_up(true);
    begins(arguments, false);
    return none();
}

/* PY_RETURN(code, offset, value), PY_YIELD(code, offset, value) */
static PyObject *on_return(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    catch_up(false);
    PyObject *code = arguments[0];
    struct code_record *record = ends(code);
    if (!record)
        return none();
    struct markers_due fires = at_return(code, record);
    if (fires.plain || fires.filtered)
        fire_return_now(code, record, code_line_at(code, record, offset_of(arguments)),
                        (struct outcome){.result = arguments[2]}, fires);
    return unless_filtered(record, marker_is_armed(MARKER_BIT(function__return)) ||
                                       sums_enabled(SUMS_TIMES));
}

/* PY_UNWIND(code, offset, exception).  The offset may be that of a RERAISE, which has no line; the
 * frame's own line is that of the instruction that raised. */
static PyObject *on_unwind(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    PyFrameObject *frame = frame_of(arguments[0]);
    if (EVENT_ON(exception__raise) && frame)
        raise_left_frame(frame);
    catch_up(false);
    struct code_record *record = ends(arguments[0]);
    struct markers_due fires = record ? at_return(arguments[0], record) : (struct markers_due){0};
    if (fires.plain || fires.filtered)
        fire_return_now(arguments[0], record,
                        frame ? py.PyFrame_GetLineNumber(frame)
                              : code_line_at(arguments[0], record, offset_of(arguments)),
                        (struct outcome){.exception = arguments[2]}, fires);
    return none();
}

/* RAISE(code, offset, exception) */
static PyObject *on_raise(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    struct code_record *record = EVENT_ON(exception__raise) ? record_of(arguments[0]) : NULL;
    PyFrameObject *frame = record ? py.PyEval_GetFrame() : NULL;
    if (frame) {
        PyObject *traceback = py.PyException_GetTraceback(arguments[2]);
        raise_reached_frame(record, code_line_at(arguments[0], record, offset_of(arguments)), frame,
                            arguments[2], traceback);
        cpython_clear_ref(&traceback);
    }
    return none();
}

static void line_here(PyObject *code, struct code_record *record, int line)
{
    fire_line(record, filter_is_cached(record) ? NULL : globals_of(code), line);
}

/* LINE(code, line) */
static PyObject *on_line(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    struct code_record *record = EVENT_ON(line) ? record_of(arguments[0]) : NULL;
    if (record)
        line_here(arguments[0], record, (int)py.PyLong_AsLong(arguments[1]));
    return unless_filtered(record, marker_is_armed(MARKER_BIT(line)));
}

/* JUMP(code, offset, target).  A loop on one line jumps back to its own line: a line event for a
 * trace function (Python/legacy_tracing.c: sys_trace_jump_func()), but no LINE. */
static PyObject *on_jump(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    int from = offset_of(arguments), to = (int)py.PyLong_AsLong(arguments[2]);
    struct code_record *record = EVENT_ON(line) && to < from ? record_of(arguments[0]) : NULL;
    if (record) {
        int line = code_line_at(arguments[0], record, to);
        if (line >= 0 && line == code_line_at(arguments[0], record, from))
            line_here(arguments[0], record, line);
    }
    return unless_filtered(record, marker_is_armed(MARKER_BIT(line)));
}

/* Calls fire() if the event is of a function in C.  Returns the caller's record. */
static struct code_record *call_here(PyObject *const *arguments,
                                     void (*fire)(struct code_record *, PyObject *, int,
                                                  PyObject *))
{
    PyObject *code = arguments[0];
    struct code_record *record = record_of(code);
    /* CALL passes the bound method, C_RETURN the function behind it. */
    PyObject *callable = callable_unwrap_method(arguments[2]);
    if (record && callable_is_builtin(callable))
        fire(record, filter_is_cached(record) ? NULL : globals_of(code),
             code_line_at(code, record, offset_of(arguments)), callable);
    return record;
}

static inline void count_cfunction(PyObject *const *arguments,
                                   void (*count)(struct function_sums *))
{
    PyObject *callable = callable_unwrap_method(arguments[2]);
    struct function_sums *sums = callable_is_builtin(callable) ? sums_of_cfunction(callable) : NULL;
    if (sums)
        count(sums);
}

/* CALL(code, offset, callable, first argument).  C_RETURN and C_RAISE have the same arguments, and
 * are disabled together with CALL. */
static PyObject *on_call(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    struct code_record *record = NULL;
    if (EVENT_ON(cfunction__entry))
        record = call_here(arguments, fire_cfunction_entry);
    else if (MARKER_ARMED(filtered__cfunction__return))
        record = record_of(arguments[0]);
    if (sums_enabled(SUMS_C_CALLS))
        count_cfunction(arguments, sums_call_begin);
    unsigned plain = MARKER_BIT(cfunction__entry) | MARKER_BIT(cfunction__return);
    bool others = marker_is_armed(plain) || sums_enabled(SUMS_C_CALLS);
    if (record && !others)
        passes(record, arguments[0]); /* of a call of Python, too: else it could not be disabled */
    return unless_filtered(record, others);
}

static PyObject *on_c_return(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)count;
    if (sums_enabled(SUMS_TIMES))
        count_cfunction(arguments, sums_call_end);
    if (EVENT_ON(cfunction__return))
        call_here(arguments, fire_cfunction_return);
    return none();
}

#define CALLBACK(function) \
    { \
        "systemtap_" #function, (PyCFunction)(void *)function, METH_FASTCALL, 0 \
    }
static PyMethodDef start_def = CALLBACK(on_start);
static PyMethodDef resume_def = CALLBACK(on_resume);
static PyMethodDef throw_def = CALLBACK(on_throw);
static PyMethodDef return_def = CALLBACK(on_return);
static PyMethodDef unwind_def = CALLBACK(on_unwind);
static PyMethodDef raise_def = CALLBACK(on_raise);
static PyMethodDef line_def = CALLBACK(on_line);
static PyMethodDef jump_def = CALLBACK(on_jump);
static PyMethodDef call_def = CALLBACK(on_call);
static PyMethodDef c_return_def = CALLBACK(on_c_return);

/* CPython reports C_RETURN and C_RAISE only together with CALL.  From 3.13 on a line may begin with
 * a frame's first instruction, RESUME: a lambda, a class, a function on one line.  CPython reports
 * no LINE for it once RESUME is specialised to RESUME_CHECK, which _Py_call_instrumentation_line()
 * (Python/instrumentation.c) doesn't know.  PY_START keeps RESUME from being specialised. */
enum {
    LINE = MARKER_BITS(line),
    RAISE = MARKER_BITS(exception__raise),
    CFUNCTION = MARKER_BITS(cfunction__entry) | MARKER_BITS(cfunction__return) | SUMS_C_CALLS,
    FUNCTION = MARKER_BITS(function__entry) | MARKER_BITS(function__return),
    BEGINS = MARKER_BITS(function__entry) | SUMS_CALLS,
    ENDS = MARKER_BITS(function__return) | SUMS_TIMES,
    ALL = BEGINS | ENDS | CFUNCTION | LINE | RAISE,
};

static const struct monitoring_event events[] = {
    {"PY_START", &start_def, BEGINS | LINE},
    {"PY_RESUME", &resume_def, BEGINS},
    {"PY_THROW", &throw_def, BEGINS},
    {"PY_RETURN", &return_def, ENDS},
    {"PY_YIELD", &return_def, ENDS},
    {"PY_UNWIND", &unwind_def, ENDS | RAISE},
    {"RAISE", &raise_def, RAISE},
    {"LINE", &line_def, LINE},
    {"JUMP", &jump_def, LINE},
    {"CALL", &call_def, CFUNCTION},
    {"C_RETURN", &c_return_def, CFUNCTION},
    {"C_RAISE", &c_return_def, CFUNCTION},
};
enum { EVENTS = sizeof events / sizeof *events };

/* For the whole process. */
static void note_enabled(PyObject *monitoring)
{
    unsigned enabled = markers_enabled();
    monitoring_give_way(monitoring, events, EVENTS);
    replay_set_markers(enabled);
    sums_set_enabled(enabled);
    exit_flush_set(enabled & SUMS_MARKERS);
}

/* Whether disabled events are to come again: other markers are enabled, or other patterns.  In 3.13
 * also if nothing was disabled.  There RESUME makes pending calls, or lets another thread have the
 * GIL, and then writes RESUME_CHECK over the instruction, whatever it has become meanwhile
 * (Python/bytecodes.c).  The function would have no PY_START any more. */
static bool needs_restart(const struct interp *interp, unsigned enabled)
{
    return (py.minor == 13 || has_disabled) &&
           ((interp->armed & ALL) != enabled || interp->filter != filter_revision());
}

static void find_disable(PyObject *monitoring)
{
    PyObject *found = disable ? NULL : py.PyObject_GetAttrString(monitoring, "DISABLE");
    if (found)
        disable = found; /* kept; it is immortal */
    py.PyErr_Clear();
}

static enum hook_result set_by(PyObject *monitoring, struct interp *interp, unsigned enabled)
{
    /* When the events change, CPython walks the stacks of all threads for the code that they run
     * (Python/instrumentation.c: instrument_all_executing_code_objects()). */
    bool may_change = enabled || interp->tool_id >= 0;
    if (!monitoring || (may_change && (tstate_list_is_stale() || !can_stop_the_world())))
        return HOOK_LATER;
    if (interp->tool_id >= 0 && !monitoring_owns_tool_id(monitoring, interp)) {
        debug_log("the program has taken sys.monitoring's tool id %d from the shim",
                  interp->tool_id);
        interp->tool_id = -1;
        if (enabled) /* no other id: the program's events at this one may still call our callbacks
                      */
            return HOOK_NEVER;
    }
    if (!enabled) {
        if (interp->tool_id >= 0)
            monitoring_free_tool_id(monitoring, interp, events, EVENTS);
        note_enabled(monitoring);
        return HOOK_DONE;
    }
    if (interp->tool_id < 0) {
        if (!monitoring_use_tool_id(monitoring, interp))
            return HOOK_LACKS;
        if (!monitoring_register_callbacks(monitoring, interp, events, EVENTS)) {
            debug_log("sys.monitoring refused a callback");
            monitoring_free_tool_id(monitoring, interp, events, EVENTS);
            return HOOK_NEVER;
        }
    }
    find_disable(monitoring);
    note_enabled(monitoring);
    start_is_silent = !(enabled & BEGINS);
    long set_of_events = 0;
    for (int i = 0; i < EVENTS; i++)
        if (enabled & events[i].markers)
            set_of_events |= monitoring_event_bit(monitoring, events[i].name);
    if (!cpython_ignore_result(py.PyObject_CallMethod(monitoring, "set_events", "il",
                                                      interp->tool_id, set_of_events))) {
        debug_log("sys.monitoring refused the events");
        monitoring_free_tool_id(monitoring, interp, events, EVENTS);
        return HOOK_NEVER;
    }
    if (needs_restart(interp, enabled))
        monitoring_restart_events(monitoring);
    if (!(interp->armed & FUNCTION))
        catch_up_here(enabled & BEGINS);
    return HOOK_DONE;
}

static enum hook_result set(struct interp *interp, unsigned enabled)
{
    PyObject *monitoring = cpython_sys_attr("monitoring");
    enum hook_result result = set_by(monitoring, interp, enabled);
    cpython_clear_ref(&monitoring);
    return result;
}

const struct hook hook_monitoring = {
    .name = "monitoring hook",
    .markers = ALL,
    .uses_code = true,
    .must_recheck = true,
    .is_supported = fits,
    .start = monitoring_start,
    .set = set,
    .end = monitoring_end,
};
