/*
 * Function, line and cfunction markers on CPython 3.6 to 3.11: a frame evaluation hook (PEP 523)
 * around CPython's own evaluator.  It brackets every evaluation of a frame, so every entry has its
 * return; and it visits every thread that runs Python, on which trace.c gets lines and C calls.
 *
 * All functions run with the GIL held, on any thread.  An exception may be in flight where a frame
 * is resumed by throw() or ended by an exception; it is put aside there.
 *
 * CPython exports no way to set the hook before 3.9, nor to look into what 3.11 hands to it.  What
 * is known of those layouts stands here, and is compared with what public functions say of the
 * running interpreter before anything is read or written through it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm.h"
#include "code.h"
#include "debug.h"
#include "frame.h"
#include "layout.h"
#include "trace.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---------------------------------------------------------------- layouts */

/* Include/cpython/pystate.h, 3.11 */
struct cframe_311 {
    uint8_t use_tracing;
    struct frame_311 *current_frame;
};
struct thread_state_311 {
    void *previous, *next, *interp;
    int initialized, is_static, recursion[3], tracing, tracing_what;
    struct cframe_311 *cframe;
};

/* Where the interpreter state has its eval_frame, before 3.9 gave functions for it: Include/
 * pystate.h (3.6, 3.7), Include/internal/pycore_pystate.h (3.8). */
static size_t eval_frame_offset(void)
{
    if (sizeof(void *) != 8)
        return 0;
    return py.minor == 6 ? 112 : py.minor == 7 ? 464 : py.minor == 8 ? 568 : 0;
}

/* -------------------------------------------------------------- the hook's place */

typedef PyObject *(*evaluator_36)(PyFrameObject *, int);
typedef PyObject *(*evaluator_39)(PyThreadState *, void *, int);

/* What was there before us, the same in every interpreter that has our hook. */
static void *next_evaluator;

/* Somebody has come in front of our hook in one of them (interp->front). */
static bool has_front;

/* The markers for which the hook is set. */
static unsigned hook_wanted;

static void *hook(void);

static void **eval_frame_slot(PyInterpreterState *state)
{
    return (void **)((char *)state + eval_frame_offset());
}

static void *get_evaluator(PyInterpreterState *state)
{
    return py._PyInterpreterState_GetEvalFrameFunc ? py._PyInterpreterState_GetEvalFrameFunc(state)
                                                   : *eval_frame_slot(state);
}

static void set_evaluator(PyInterpreterState *state, void *evaluator)
{
    if (py._PyInterpreterState_SetEvalFrameFunc)
        py._PyInterpreterState_SetEvalFrameFunc(state, evaluator);
    else
        *eval_frame_slot(state) = evaluator;
}

/* ---------------------------------------------------------------- firing */

/* Fires with an exception that may be in flight put aside. */
static void fire_aside(void (*fire)(void *), void *frame, bool exception)
{
    PyObject *type, *value, *traceback;
    if (exception)
        py.PyErr_Fetch(&type, &value, &traceback);
    fire(frame);
    if (exception)
        py.PyErr_Restore(type, value, traceback);
}

/* Called first for each frame.  Where something is new to the thread (a tracer, a trace function of
 * the program) it is seen to, with an exception that may be in flight put aside. */
static enum { HOOK_FRAME, PASS_FRAME, HOOK_QUIETLY } visit(PyThreadState *thread, bool exception)
{
    /* The interpreter may have the hook for no more than to be told that, and can't be armed. */
    if (arm_knocks && !arm_answer())
        return PASS_FRAME;
    if (!hook_wanted) { /* or somebody who had it from us put it back, or calls it */
        PyInterpreterState *state = cpython_interpreter();
        if (get_evaluator(state) == hook())
            set_evaluator(state, next_evaluator);
        return PASS_FRAME;
    }
    if (trace_is_settled(thread))
        return HOOK_FRAME;
    fire_aside(trace_visit, thread, exception);
    return trace_quieten(thread) ? HOOK_QUIETLY : HOOK_FRAME;
}

static inline bool visited(PyThreadState *thread)
{
    return __builtin_expect(hook_wanted && !arm_knocks && trace_is_settled(thread), 1);
}

/* ---------------------------------------------------------------- what was there before */

/* The frame that this thread has just passed to an evaluator of the program's. */
static __thread void *passed;

static inline void *default_evaluator(void)
{
    return (void *)py._PyEval_EvalFrameDefault;
}

static inline bool is_default(void)
{
    return __builtin_expect(next_evaluator == default_evaluator(), 1);
}

/* The program may have put its evaluator in front of ours once more, which is then both behind ours
 * and in front of it: what comes back has been through both. */
static inline bool comes_back(void *frame)
{
    return !is_default() && passed == frame && default_evaluator();
}

static PyObject *pass_36(PyFrameObject *frame, int throw)
{
    if (is_default())
        return ((evaluator_36)next_evaluator)(frame, throw);
    void *before = passed;
    evaluator_36 next =
        comes_back(frame) ? (evaluator_36)default_evaluator() : (evaluator_36)next_evaluator;
    passed = frame;
    PyObject *result = next(frame, throw);
    passed = before;
    return result;
}

static PyObject *pass_39(PyThreadState *thread, void *frame, int throw)
{
    if (is_default())
        return ((evaluator_39)next_evaluator)(thread, frame, throw);
    void *before = passed;
    evaluator_39 next =
        comes_back(frame) ? (evaluator_39)default_evaluator() : (evaluator_39)next_evaluator;
    passed = frame;
    PyObject *result = next(thread, frame, throw);
    passed = before;
    return result;
}

/* ---------------------------------------------------------------- the C stack */

enum { MEGABYTE = 1024 * 1024 };

/* The lowest address of the C stack at which this thread still hooks. */
static __thread char *stack_limit;

/* The main thread's stack, found when the hook is first set: the C library would read /proc for it,
 * which the thread may not be allowed to (seccomp), or can't. */
static char *main_stack_end;
static size_t main_stack_size;

/* Where the kernel put the main thread's first frame: ld.so's, GLIBC_2.2.5 (GLIBC_2.17 and so on
 * elsewhere). */
extern void *__libc_stack_end __attribute__((weak));

static void find_main_stack(void)
{
    /* What the kernel leaves free below it at least, whatever the limit becomes. */
    const size_t most = 128 * (size_t)MEGABYTE;
    struct rlimit limit;
    if (main_stack_end || !&__libc_stack_end || getrlimit(RLIMIT_STACK, &limit) != 0)
        return;
    main_stack_end = __libc_stack_end;
    main_stack_size = limit.rlim_cur < most ? limit.rlim_cur : most;
}

static bool is_within(const char *here, const char *base, size_t size)
{
    return here >= base && here <= base + size;
}

static bool find_stack(const char *here, char **base, size_t *size)
{
    if (main_stack_end && gettid() == getpid()) {
        *base = main_stack_end - main_stack_size;
        *size = main_stack_size;
        if (is_within(here, *base, *size))
            return true;
        /* The child of another thread goes on with that one's stack. */
    }
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    bool found = pthread_attr_getstack(&attributes, (void **)base, size) == 0;
    pthread_attr_destroy(&attributes);
    return found && is_within(here, *base, *size);
}

static char *find_stack_limit(void)
{
    char *base, *here = __builtin_frame_address(0);
    size_t size;
    if (!find_stack(here, &base, &size))
        return here; /* a stack of unknown size: don't hook what lies deeper */
    /* The first quarter of the main thread's usual 8 MB is room for more than 3,000 calls; what the
     * hook itself takes of it is a few hundredths of the stack. */
    return base + (size <= 4 * MEGABYTE ? size / 2 : size - size / 4);
}

/* The hook's own frame stands between any two Python calls on the C stack (and in 3.11 the
 * evaluator's, too): what lies deeper than this is not hooked. */
static inline bool too_deep(void)
{
    if (__builtin_expect(!stack_limit, 0))
        stack_limit = find_stack_limit();
    return __builtin_expect((char *)__builtin_frame_address(0) < stack_limit, 0);
}

/* ---------------------------------------------------------------- 3.6 to 3.10 */

static void entry_310(void *frame)
{
    frame_fire_entry(frame, py.PyFrame_GetLineNumber(frame));
}

static void return_310(void *frame)
{
    frame_fire_return(frame, py.PyFrame_GetLineNumber(frame));
}

/* Entries begin with the hook that is set for them, which enters the frames that run already. */
static inline bool enters(void)
{
    return MARKER_ON(function__entry) && (hook_wanted & MARKER_BIT(function__entry));
}

/* A frame that began before the tracer came: trace.c tells it of the return. */
static inline bool returns(unsigned tracer)
{
    return MARKER_ON(function__return) &&
           tracer == atomic_load_explicit(&frame_tracer, memory_order_relaxed);
}

/* The two hooks stand between two calls of the evaluator at every level of Python recursion: they
 * keep no more on the C stack than they must. */
static PyObject *hook_36(PyFrameObject *frame, int throw)
{
    PyThreadState *thread = py.PyThreadState_Get();
    if (comes_back(frame))
        return pass_36(frame, throw);
    if (!visited(thread)) {
        int way = visit(thread, throw);
        if (way == HOOK_QUIETLY) {
            PyObject *result = hook_36(frame, throw);
            trace_resume(thread);
            return result;
        }
        if (way == PASS_FRAME)
            return pass_36(frame, throw);
    }
    if (too_deep())
        return pass_36(frame, throw);
    unsigned tracer = frame_tracer;
    if (enters())
        fire_aside(entry_310, frame, throw);
    PyObject *result = pass_36(frame, throw);
    if (returns(tracer))
        fire_aside(return_310, frame, !result);
    return result;
}

static PyObject *hook_39(PyThreadState *thread, void *frame, int throw)
{
    if (comes_back(frame))
        return pass_39(thread, frame, throw);
    if (!visited(thread)) {
        int way = visit(thread, throw);
        if (way == HOOK_QUIETLY) {
            PyObject *result = hook_39(thread, frame, throw);
            trace_resume(thread);
            return result;
        }
        if (way == PASS_FRAME)
            return pass_39(thread, frame, throw);
    }
    if (too_deep())
        return pass_39(thread, frame, throw);
    unsigned tracer = frame_tracer;
    if (enters())
        fire_aside(entry_310, frame, throw);
    PyObject *result = pass_39(thread, frame, throw);
    if (returns(tracer))
        fire_aside(return_310, frame, !result);
    return result;
}

/* ---------------------------------------------------------------- 3.11 */

/* offsetof(PyCodeObject, co_code_adaptive), which is the code type's basicsize. */
static long code_units_offset;

static uint16_t *first_instruction(const struct frame_311 *frame)
{
    return (uint16_t *)((char *)frame->code + code_units_offset);
}

static struct cframe_311 *this_cframe(void)
{
    return ((struct thread_state_311 *)py.PyThreadState_Get())->cframe;
}

static int line_311(struct frame_311 *frame, struct code *record)
{
    ptrdiff_t offset = (char *)frame->previous_instruction - (char *)first_instruction(frame);
    return code_line(frame->code, record, (int)offset);
}

/* While a marker fires, the frame is linked to its caller, so that a probe can walk the stack from
 * it.  CPython links it so in a moment itself. */
static void entry_311(void *data)
{
    struct frame_311 *frame = data;
    frame->previous = this_cframe()->current_frame;
    struct code *record = code_of(frame->code);
    layout_meet_current(); /* its caller: this frame may not have begun */
    marker_function__entry(code_text(&record->filename), code_text(&record->funcname),
                           line_311(frame, record), frame_stand_in(frame, FRAME_ENTRY),
                           code_module(record, frame->globals));
}

/* A generator's frame may be unlinked already. */
static void return_311(void *data)
{
    struct frame_311 *frame = data;
    struct frame_311 *previous = frame->previous;
    frame->previous = this_cframe()->current_frame;
    struct code *record = code_of(frame->code);
    layout_meet_current();
    PyFrameObject *shown = frame_stand_in(frame, FRAME_RETURN);
    marker_function__return(code_text(&record->filename), code_text(&record->funcname),
                            line_311(frame, record), shown, code_module(record, frame->globals));
    frame_returned(shown);
    frame->previous = previous;
}

/* In 3.11 a call of a generator function evaluates the frame as far as its RETURN_GENERATOR, which
 * no other version calls a start of the frame. */
static bool makes_generator(struct frame_311 *frame)
{
    return frame->previous_instruction < first_instruction(frame) &&
           code_makes_generator(frame->code, code_of(frame->code));
}

/* With a hook in place CPython 3.11 calls the evaluator for each Python call, where without one it
 * stays in the same C frame.  A program that recurses deeper than the C stack allows so gets the
 * default evaluator for what lies deeper: those calls are not seen, and the program lives. */
static PyObject *evaluate_unseen(PyThreadState *thread, void *frame)
{
    PyInterpreterState *state = cpython_interpreter();
    if (get_evaluator(state) != hook()) /* one of the program's, which is to see them */
        return pass_39(thread, frame, 0);
    set_evaluator(state, next_evaluator);
    PyObject *result = pass_39(thread, frame, 0);
    if (hook_wanted && get_evaluator(state) == next_evaluator)
        set_evaluator(state, hook());
    return result;
}

/* Whether the layouts of 3.11 are those of the release: the first frame tells. */
static enum { UNTRIED, KNOWN, UNKNOWN } layouts_311;

/* Compares them with what the public functions say of the function, and of the frames below it on
 * the calling thread, whose list CPython can't change meanwhile. */
static bool is_known_311(const struct frame_311 *frame)
{
    PyObject *function = frame->function;
    if (py.PySys_GetObject("getobjects") || /* Py_TRACE_REFS: another PyObject_HEAD */
        !function || cpython_type(function) != py.function_type ||
        py.PyFunction_GetCode(function) != frame->code ||
        py.PyFunction_GetGlobals(function) != frame->globals)
        return false;
    code_units_offset = cpython_long(py.code_type, "__basicsize__");
    const struct thread_state_311 *thread = (struct thread_state_311 *)py.PyThreadState_Get();
    if (code_units_offset <= 0 || thread->interp != cpython_interpreter() || !thread->cframe ||
        frame->previous_instruction < first_instruction(frame) - 1)
        return false;
    PyFrameObject *caller = py.PyEval_GetFrame();
    const struct frame_311 *current = thread->cframe->current_frame;
    if (!caller)
        return !current;
    while (current &&
           current != frame_inside(caller)) /* some have not begun: those have no object */
        current = current->previous;
    return current;
}

static void look_311(void *frame)
{
    layouts_311 = is_known_311(frame) ? KNOWN : UNKNOWN;
    if (layouts_311 == KNOWN)
        return;
    hook_wanted = 0;
    debug_log("the frames of this CPython 3.11 are not those of the release");
}

static PyObject *hook_311(PyThreadState *thread, void *frame, int throw)
{
    if (comes_back(frame))
        return pass_39(thread, frame, throw);
    if (__builtin_expect(layouts_311 == UNTRIED, 0))
        fire_aside(look_311, frame, throw);
    if (!visited(thread)) {
        int way = visit(thread, throw);
        if (way == HOOK_QUIETLY) {
            PyObject *result = hook_311(thread, frame, throw);
            trace_resume(thread);
            return result;
        }
        if (way == PASS_FRAME)
            return pass_39(thread, frame, throw);
    }
    if (!throw) { /* no exception in flight */
        if (too_deep())
            return evaluate_unseen(thread, frame);
        if (makes_generator(frame))
            return pass_39(thread, frame, throw);
    }
    unsigned tracer = frame_tracer;
    if (enters())
        fire_aside(entry_311, frame, throw);
    PyObject *result = pass_39(thread, frame, throw);
    if (returns(tracer))
        fire_aside(return_311, frame, !result);
    return result;
}

/* ---------------------------------------------------------------- the hook */

static bool fits(void)
{
    return py.minor <= 11;
}

/* 3.12 and later have this for a knock alone, once. */
static PyObject *hook_312(PyThreadState *thread, void *frame, int throw)
{
    PyInterpreterState *state = cpython_interpreter();
    if (get_evaluator(state) == hook())
        set_evaluator(state, next_evaluator);
    arm_answer();
    return pass_39(thread, frame, throw);
}

static void *hook(void)
{
    if (py.minor >= 12)
        return (void *)hook_312;
    return py.minor == 11 ? (void *)hook_311 : py.minor >= 9 ? (void *)hook_39 : (void *)hook_36;
}

/* Whether the evaluator is where it is looked for, as far as is known. */
static bool can_be_set(PyInterpreterState *state)
{
    static bool checked;
    if (!checked && !py._PyInterpreterState_SetEvalFrameFunc &&
        (!eval_frame_offset() || *eval_frame_slot(state) != (void *)py._PyEval_EvalFrameDefault)) {
        debug_log("the frame evaluator is not where CPython 3.%d has it", py.minor);
        return false;
    }
    checked = true;
    return layouts_311 != UNKNOWN;
}

static bool is_in_place_somewhere(void)
{
    PyInterpreterState *state = py.PyInterpreterState_Head();
    while (state && get_evaluator(state) != hook())
        state = py.PyInterpreterState_Next(state);
    return state;
}

static bool put_in_place(struct interp *interp)
{
    void *now = get_evaluator(interp->state);
    if (now == hook() || (interp->front && now == interp->front))
        return true;
    /* Which of the two would call the other one can't be known: not to go in a circle, ours stays
     * away. */
    if (next_evaluator && now != next_evaluator && (has_front || is_in_place_somewhere())) {
        debug_log("another frame evaluator came in front of ours");
        return false;
    }
    interp->front = NULL;
    next_evaluator = now;
    set_evaluator(interp->state, hook());
    return true;
}

enum hook_result frame_knock(struct interp *interp)
{
    return can_be_set(interp->state) && put_in_place(interp) ? HOOK_DONE : HOOK_NEVER;
}

static enum hook_result set(struct interp *interp, unsigned wanted)
{
    if (!can_be_set(interp->state))
        return HOOK_NEVER;
    find_main_stack();
    void *now = get_evaluator(interp->state);
    bool was_set = interp->armed & hook_frame.markers;
    if (was_set && now != hook() && now != next_evaluator) {
        interp->front = now; /* ours stays behind it, silent while nobody probes */
        has_front = true;
    }
    if (wanted && !put_in_place(interp))
        return HOOK_NEVER;
    if (!wanted && now == hook())
        set_evaluator(interp->state, next_evaluator);
    /* In the process; this interpreter may want none of it, as no code object could have a record
     * here. */
    unsigned all = code_kept() ? arm_wanted() & hook_frame.markers : 0;
    hook_wanted = all;
    frame_wanted(all);
    return trace_set(all, wanted) ? HOOK_DONE : HOOK_LATER;
}

static void visit_here(void)
{
    if (hook_wanted)
        trace_visit(py.PyThreadState_Get());
}

const struct hook hook_frame = {
    .name = "frame evaluator",
    .markers = MARKER_BIT(function__entry) | MARKER_BIT(function__return) | MARKER_BIT(line) |
               MARKER_BIT(cfunction__entry) | MARKER_BIT(cfunction__return) | ARM_KNOCKED,
    .uses_code = true,
    .quiet = true,
    .fits = fits,
    .set = set,
    .visit = visit_here,
};
