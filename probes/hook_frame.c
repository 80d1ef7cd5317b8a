/*
 * Function, line, exception and cfunction markers on CPython 3.6 to 3.11: a frame evaluation hook
 * (PEP 523) around CPython's own evaluator.  It brackets every evaluation of a frame, so every
 * entry has its return; and it visits every thread that runs Python, on which trace.c gets the
 * others.
 *
 * All functions run with the GIL held, on any thread.  An exception may be in flight if a frame is
 * resumed by throw() or ended by an exception; it is put aside there.
 *
 * CPython exports no way to set the hook before 3.9, nor to look into what 3.11 hands to it: that
 * goes by cpython_layout.h, compared with what public functions say of the running interpreter
 * before anything is read or written.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hook_frame.h"

#include "ask.h"
#include "code.h"
#include "debug.h"
#include "evaluator.h"
#include "fire.h"
#include "frame_events.h"
#include "parting.h"
#include "stack_limit.h"
#include "tally.h"
#include "trace.h"

#include <stddef.h>

/* ---------------------------------------------------------------- the hook's place */

typedef PyObject *(*evaluator_36)(PyFrameObject *, int);
typedef PyObject *(*evaluator_39)(PyThreadState *, void *, int);

/* What was there before us, the same in every interpreter that has our hook. */
static void *next_evaluator;

/* The program has put one in front of our hook in one of them (interp->chained_eval_frame). */
static bool has_front;

/* The markers for which the hook is set. */
static unsigned hook_wanted;

static void *hook(void);

/* ---------------------------------------------------------------- firing */

/* Fires with an exception that may be in flight put aside. */
static void with_exception_saved(void (*fire)(void *), void *frame, bool exception)
{
    PyObject *type, *value, *traceback;
    if (exception)
        py.PyErr_Fetch(&type, &value, &traceback);
    fire(frame);
    if (exception)
        py.PyErr_Restore(type, value, traceback);
}

/* Fires the return of a frame; result: NULL with an exception in flight.  Never inlined, so that
 * what it keeps is not on the C stack below the program's. */
static __attribute__((noinline)) void leave(void (*fire)(void *, struct outcome), void *frame,
                                            PyObject *result)
{
    if (result) {
        fire(frame, (struct outcome){.result = result});
        return;
    }
    struct exception_pair room;
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    fire(frame, (struct outcome){.exception = exception_argument(type, value, &room)});
    py.PyErr_Restore(type, value, traceback);
}

/* Called first for each frame, unless it would find nothing new to the thread (a tracer, a trace
 * function of the program).  It sees to that, with an exception that may be in flight put aside. */
static enum {
    HOOK_FRAME,
    PASS_FRAME,
    HOOK_QUIETLY
} prepare_thread(PyThreadState *thread, bool exception)
{
    /* The frame hook may be set only to make this interpreter re-read the wanted markers, and the
     * markers can't be had here. */
    if (rearm_is_requested() && !rearm_current())
        return PASS_FRAME;
    if (!hook_wanted) { /* or the program kept our hook, and put it back or calls it */
        PyInterpreterState *state = cpython_interpreter();
        if (eval_frame_get(state) == hook())
            eval_frame_set(state, next_evaluator);
        return PASS_FRAME;
    }
    if (trace_is_installed(thread))
        return HOOK_FRAME;
    PyObject *type, *value, *traceback;
    if (exception)
        py.PyErr_Fetch(&type, &value, &traceback);
    trace_install(thread);
    if (exception)
        py.PyErr_Restore(type, value, traceback);
    return trace_suspend(thread) ? HOOK_QUIETLY : HOOK_FRAME;
}

static inline bool thread_is_prepared(PyThreadState *thread)
{
    return __builtin_expect(hook_wanted && !rearm_is_requested() && trace_is_installed(thread), 1);
}

/* ---------------------------------------------------------------- what was there before */

/* The frame that this thread has just passed to an evaluator of the program's. */
static __thread void *passed;

static inline bool is_default(void)
{
    return __builtin_expect(next_evaluator == eval_frame_default(), 1);
}

/* The program may have put its evaluator in front of ours once more, which is then both behind ours
 * and in front of it: a frame that reaches ours again has been through both. */
static inline bool unwind_entry(void *frame)
{
    return !is_default() && passed == frame && eval_frame_default();
}

/* Each passes a frame that has not come back.  Never inlined, so that what it keeps is not on the C
 * stack while CPython's own evaluator runs, to which it jumps. */
static __attribute__((noinline)) PyObject *pass_36(PyThreadState *thread, void *frame, int throw)
{
    (void)thread;
    if (is_default())
        return ((evaluator_36)next_evaluator)(frame, throw);
    void *before = passed;
    passed = frame;
    PyObject *result = ((evaluator_36)next_evaluator)(frame, throw);
    passed = before;
    return result;
}

static __attribute__((noinline)) PyObject *pass_39(PyThreadState *thread, void *frame, int throw)
{
    if (is_default())
        return ((evaluator_39)next_evaluator)(thread, frame, throw);
    void *before = passed;
    passed = frame;
    PyObject *result = ((evaluator_39)next_evaluator)(thread, frame, throw);
    passed = before;
    return result;
}

/* ---------------------------------------------------------------- deep calls in 3.11 */

/* With a hook in place CPython 3.11 calls the evaluator for each Python call, where without one it
 * stays in the same C frame.  A program that recurses deeper than the C stack allows so gets the
 * default evaluator for what lies deeper: those calls are not seen, and the program lives. */
static PyObject *evaluate_unhooked(PyThreadState *thread, void *frame)
{
    static bool said;
    if (!said)
        debug_log("calls this deep in a thread's C stack are not seen, nor others meanwhile");
    said = true;
    PyInterpreterState *state = cpython_interpreter();
    if (eval_frame_get(state) != hook()) /* one of the program's, which is to see them */
        return pass_39(thread, frame, 0);
    eval_frame_set(state, next_evaluator);
    PyObject *result = pass_39(thread, frame, 0);
    if (hook_wanted && eval_frame_get(state) == next_evaluator)
        eval_frame_set(state, hook());
    return result;
}

/* On the first frame. */
static void check_frame_311(void *frame)
{
    if (!check_layout_311(frame))
        hook_wanted = 0;
}

/* ---------------------------------------------------------------- the hooks */

/* NULL: not known. */
static inline __attribute__((always_inline)) PyObject *code_in(void *frame, bool is_311)
{
    return is_311 ? f_code_311(frame) : frame_layout_known ? frame_code(frame) : NULL;
}

/* The record of a frame's code; NULL: there is none yet.  An exception may be in flight. */
static inline __attribute__((always_inline)) struct code_record *record_if_any(void *frame,
                                                                               bool is_311)
{
    PyObject *code = code_in(frame, is_311);
    return code ? code_record_if_any(code) : NULL;
}

/* Whether a filtered marker may be for the frame: the same at its end, unless the replay_generation
 * is another one then. */
static inline __attribute__((always_inline)) bool may_pass(void *frame, bool is_311)
{
    bool filtered = marker_is_armed(FILTERED_FUNCTION_MARKERS);
    PyObject *code = filtered ? code_in(frame, is_311) : NULL;
    if (!filtered || (code && filter_rejects_cached(code)))
        return false;
    struct code_record *record = code ? code_record_if_any(code) : NULL;
    return !record || !filter_rejects(record);
}

/* A frame that is passed like this is one that began before any tracer that may come. */
static inline bool is_left_out(bool matches_filter)
{
    return !matches_filter && !marker_is_armed(FUNCTION_MARKERS) &&
           !sums_enabled(SUMS_CALLS | SUMS_TIMES);
}

/* Entries begin with the hook that is set for them, which enters the frames that run already. */
static inline bool fires_entry(bool matches_filter)
{
    return MARKER_ARMED(function__entry) ||
           (matches_filter && MARKER_ARMED(filtered__function__entry));
}

/* The return of a frame that began before the tracer attached is reported by trace.c. */
static inline bool fires_return(bool matches_filter, unsigned tracer)
{
    return (MARKER_ARMED(function__return) ||
            (matches_filter && MARKER_ARMED(filtered__function__return))) &&
           tracer == atomic_load_explicit(&replay_generation, memory_order_relaxed);
}

/* What a hook is made of: an evaluation by the hook itself, by what was there before, and by
 * CPython's own evaluator. */
struct parts {
    PyObject *(*again)(PyThreadState *, void *, int);
    PyObject *(*pass)(PyThreadState *, void *, int);
    PyObject *(*by_default)(PyThreadState *, void *, int);
    void (*entry)(void *), (*leave)(void *, struct outcome), (*count)(void *);
    bool is_311;
};

/* What was counted of a frame's function; NULL: nothing yet.  An exception may be in flight. */
static inline __attribute__((always_inline)) struct function_sums *sums_if_counted(void *frame,
                                                                                   bool is_311)
{
    struct code_record *record = record_if_any(frame, is_311);
    return record ? tally_in(record) : NULL;
}

/* Each of the hooks below is this, with its own parts.  They stand between two calls of the
 * evaluator at every level of Python recursion: they keep no more on the C stack than they must,
 * and a function of its own would be one more frame there.  So it is always inlined, where the
 * parts are constants. */
static inline __attribute__((always_inline)) PyObject *evaluate(PyThreadState *thread, void *frame,
                                                                int throw, const struct parts parts)
{
    if (unwind_entry(frame))
        return parts.by_default(thread, frame, throw);
    if (!thread_is_prepared(thread)) {
        int way = prepare_thread(thread, throw);
        if (way == HOOK_QUIETLY) {
            PyObject *result = parts.again(thread, frame, throw);
            trace_resume(thread);
            return result;
        }
        if (way == PASS_FRAME)
            return parts.pass(thread, frame, throw);
    }
    if (!parts.is_311) {
        if (stack_limit_exceeded())
            return parts.pass(thread, frame, throw);
    } else if (!throw) { /* no exception in flight */
        if (stack_limit_exceeded())
            return evaluate_unhooked(thread, frame);
        if (is_return_generator_311(frame))
            return parts.pass(thread, frame, throw);
    }
    unsigned tracer = replay_generation;
    bool matches_filter = may_pass(frame, parts.is_311);
    if (is_left_out(matches_filter))
        return parts.pass(thread, frame, throw);
    if (fires_entry(matches_filter))
        with_exception_saved(parts.entry, frame, throw);
    if (sums_enabled(SUMS_CALLS)) {
        struct function_sums *tally = sums_if_counted(frame, parts.is_311);
        if (tally)
            sums_call_begin(tally);
        else
            with_exception_saved(parts.count, frame, throw);
    }
    PyObject *result = parts.pass(thread, frame, throw);
    if (sums_enabled(SUMS_TIMES)) {
        struct function_sums *tally = sums_if_counted(frame, parts.is_311);
        if (tally)
            sums_call_end(tally);
    }
    if (fires_return(matches_filter, tracer))
        leave(parts.leave, frame, result);
    return result;
}

static PyObject *default_36(PyThreadState *thread, void *frame, int throw)
{
    (void)thread;
    return ((evaluator_36)eval_frame_default())(frame, throw);
}

static PyObject *default_39(PyThreadState *thread, void *frame, int throw)
{
    return ((evaluator_39)eval_frame_default())(thread, frame, throw);
}

static PyObject *hook_36(PyFrameObject *frame, int throw);

static PyObject *again_36(PyThreadState *thread, void *frame, int throw)
{
    (void)thread;
    return hook_36(frame, throw);
}

static PyObject *hook_36(PyFrameObject *frame, int throw)
{
    return evaluate(py.PyThreadState_Get(), frame, throw,
                    (struct parts){again_36, pass_36, default_36, fire_entry_310, fire_return_310,
                                   count_entry_310, false});
}

static PyObject *hook_39(PyThreadState *thread, void *frame, int throw)
{
    return evaluate(thread, frame, throw,
                    (struct parts){hook_39, pass_39, default_39, fire_entry_310, fire_return_310,
                                   count_entry_310, false});
}

static PyObject *hook_311(PyThreadState *thread, void *frame, int throw)
{
    if (__builtin_expect(layout_311 == LAYOUT_311_UNTRIED, 0))
        with_exception_saved(check_frame_311, frame, throw);
    return evaluate(thread, frame, throw,
                    (struct parts){hook_311, pass_39, default_39, fire_entry_311, fire_return_311,
                                   count_entry_311, true});
}

/* 3.12 and later have this for a knock alone, once. */
static PyObject *hook_312(PyThreadState *thread, void *frame, int throw)
{
    PyInterpreterState *state = cpython_interpreter();
    if (eval_frame_get(state) == hook())
        eval_frame_set(state, next_evaluator);
    rearm_current();
    return (unwind_entry(frame) ? default_39 : pass_39)(thread, frame, throw);
}

/* ---------------------------------------------------------------- setting */

static bool fits(void)
{
    return py.minor <= 11;
}

static void *hook(void)
{
    if (py.minor >= 12)
        return (void *)hook_312;
    return py.minor == 11 ? (void *)hook_311 : py.minor >= 9 ? (void *)hook_39 : (void *)hook_36;
}

static bool can_be_set(PyInterpreterState *state)
{
    return eval_frame_accessible(state) && layout_311 != LAYOUT_311_UNKNOWN;
}

static bool is_in_place_somewhere(void)
{
    PyInterpreterState *state = py.PyInterpreterState_Head();
    while (state && eval_frame_get(state) != hook())
        state = py.PyInterpreterState_Next(state);
    return state;
}

static bool install_hook(struct interp *interp)
{
    void *now = eval_frame_get(interp->state);
    if (now == hook() || (interp->chained_eval_frame && now == interp->chained_eval_frame))
        return true;
    /* Which of the two would call the other one can't be known: ours is not set, so that they don't
     * call each other in a circle. */
    if (next_evaluator && now != next_evaluator && (has_front || is_in_place_somewhere())) {
        debug_log("the program has set a frame evaluator in front of the shim's");
        return false;
    }
    interp->chained_eval_frame = NULL;
    next_evaluator = now;
    eval_frame_set(interp->state, hook());
    return true;
}

bool frame_eval_force_rearm(struct interp *interp, bool again)
{
    if (!can_be_set(interp->state) || !install_hook(interp))
        return false;
    /* For a thread that calls no Python function for a while, as it is in a long loop of one frame.
     * Not at once, as the program would find in its own profile function's events that another one
     * was there before. */
    if (again)
        trace_force_rearm(interp->state);
    return true;
}

static void start(struct interp *interp)
{
    if (!interp->is_main)
        return;
    eval_frame_locate(interp->state, hook());
    if (!next_evaluator)
        next_evaluator = eval_frame_default();
}

bool frame_eval_force_rearm_nogil(struct interp *interp)
{
    if (layout_311 == LAYOUT_311_UNKNOWN || has_front || interp->chained_eval_frame ||
        !is_default())
        return false;
    return eval_frame_replace_default(interp->state, hook());
}

enum {
    ALL = MARKER_BITS(function__entry) | MARKER_BITS(function__return) | MARKER_BITS(line) |
          MARKER_BITS(cfunction__entry) | MARKER_BITS(cfunction__return) |
          MARKER_BITS(exception__raise) | SUMS_MARKERS
};

static enum hook_result set(struct interp *interp, unsigned wanted)
{
    if (!can_be_set(interp->state))
        return HOOK_NEVER;
    stack_limit_init();
    void *now = eval_frame_get(interp->state);
    bool was_set = (interp->armed & ALL) || interp->rearm_forced;
    if (was_set && now != hook() && now != next_evaluator) {
        interp->chained_eval_frame =
            now; /* ours stays behind it, silent while no tracer is attached */
        has_front = true;
    }
    if (wanted && !install_hook(interp))
        return HOOK_NEVER;
    if (!wanted && now == hook())
        eval_frame_set(interp->state, next_evaluator);
    /* In the process; this interpreter may want none of it, as no code object could have a record
     * here. */
    unsigned all = code_extra_in_use() ? markers_enabled() & ALL : 0;
    hook_wanted = all;
    replay_set_markers(all);
    sums_set_enabled(all);
    exit_flush_set(all & SUMS_MARKERS);
    return trace_arm(all, wanted) ? HOOK_DONE : HOOK_LATER;
}

void frame_eval_update_main_thread(void)
{
    if (hook_wanted)
        trace_install(py.PyThreadState_Get());
}

const struct hook hook_frame = {
    .name = "frame hook",
    .markers = ALL,
    .uses_code = true,
    .watcher_may_set = true,
    .is_supported = fits,
    .start = start,
    .set = set,
};
