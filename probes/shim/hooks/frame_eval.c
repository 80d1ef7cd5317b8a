/*
 * Function, line, exception and cfunction markers on CPython 3.6 to 3.11.  The frame hook is an
 * eval frame function (PEP 523) around CPython's own, so every entry has its return.
 * trace_profile.c gets the other events, on each thread that the hook sees.  Where CPython exports
 * no function (the hook before 3.9, 3.11's frames), the structs of shared/cpython_structs.h serve,
 * after a comparison with public functions.
 *
 * All functions: any thread, GIL held, unless frame_eval.h says otherwise.  An exception may be in
 * flight where throw() resumes a frame or an exception ends it; it is saved while markers fire.
 *
 * SPDX-License-Identifier: MIT
 */

#include "hooks/frame_eval.h"

#include "cpython/code.h"
#include "cpython/offsets.h"
#include "cpython/symbols.h"
#include "cpython/threads.h"
#include "hooks/rearm.h"
#include "markers/fire.h"
#include "os/process.h"
#include "shared/cpython_structs.h"
#include "sums/sums.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---------------------------------------------------------------- how deep calls are hooked */

enum { KILOBYTE = 1024, MEGABYTE = 1024 * KILOBYTE };

/* The limit moves: in 3.11, for the main thread.  Its stack grows as far as the present
 * RLIMIT_STACK allows, which a program that needs little may have lowered: read again with each
 * STEP. */
static __thread bool moves;

__thread char *stack_limit;

/* The main thread's stack. */
static char *main_stack_end;
static size_t main_stack_size;

/* Where the kernel put the main thread's first frame.  Exported by ld.so: GLIBC_2.2.5, elsewhere
 * GLIBC_2.17 and so on. */
extern void *__libc_stack_end __attribute__((weak));

void stack_limit_init(void)
{
    /* The kernel leaves at least this much free below the stack, whatever the limit becomes. */
    const size_t most = 128 * (size_t)MEGABYTE;
    struct rlimit limit;
    if (main_stack_end || !&__libc_stack_end || getrlimit(RLIMIT_STACK, &limit) != 0)
        return;
    main_stack_end = __libc_stack_end;
    main_stack_size = limit.rlim_cur < most ? limit.rlim_cur : most;
}

/* How much of a stack is hooked.  A quarter of the main thread's usual 8 MB has room for more than
 * 3,000 calls.  Up to 3.10 the hook takes a few percent of what these calls take, so half of a
 * small stack is hooked.  In 3.11 these calls would take none of the stack without the hook. */
static size_t hooked(size_t size)
{
    return py.minor == 11 || size > 4 * (size_t)MEGABYTE ? size / 4 : size / 2;
}

static bool is_within(const char *here, const char *base, size_t size)
{
    return here >= base && here <= base + size;
}

static bool is_on_main_stack(const char *here)
{
    /* A child that another thread has forked continues on that thread's stack. */
    return main_stack_end && gettid() == getpid() &&
           is_within(here, main_stack_end - main_stack_size, main_stack_size);
}

static char *step_down(char *here)
{
    enum { STEP = 128 * KILOBYTE }; /* what the kernel maps at first */
    char *lowest = main_stack_end - hooked(main_stack_size), *next = here - STEP;
    struct rlimit limit;
    moves = next > lowest;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < main_stack_size) {
        moves = true;
        lowest = main_stack_end - hooked(limit.rlim_cur);
    }
    return next > lowest ? next : lowest;
}

bool stack_limit_extend(char *here)
{
    if (moves)
        stack_limit = step_down(here);
    return here >= stack_limit;
}

char *stack_limit_of_thread(void)
{
    char *here = __builtin_frame_address(0);
    if (is_on_main_stack(here))
        return py.minor == 11 ? step_down(here) : main_stack_end - hooked(main_stack_size);
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return here; /* a stack of unknown size: deeper calls are not hooked */
    void *base;
    size_t size;
    bool found = pthread_attr_getstack(&attributes, &base, &size) == 0;
    pthread_attr_destroy(&attributes);
    return found && is_within(here, base, size) ? (char *)base + size - hooked(size) : here;
}

/* ---------------------------------------------------------------- the eval frame function */

static void **slot_of(PyInterpreterState *state)
{
    return (void **)((char *)state + interpreter_eval_frame_offset(py.minor));
}

void *eval_frame_get(PyInterpreterState *state)
{
    return py._PyInterpreterState_GetEvalFrameFunc ? py._PyInterpreterState_GetEvalFrameFunc(state)
                                                   : *slot_of(state);
}

/* A free-threaded CPython stops the world for it. */
void eval_frame_set(PyInterpreterState *state, void *evaluator)
{
    if (!can_stop_the_world())
        return;
    if (py._PyInterpreterState_SetEvalFrameFunc)
        py._PyInterpreterState_SetEvalFrameFunc(state, evaluator);
    else
        *slot_of(state) = evaluator;
}

static bool place_known;

bool eval_frame_accessible(PyInterpreterState *state)
{
    static bool found;
    if (found || place_known || py._PyInterpreterState_SetEvalFrameFunc)
        return true;
    found = interpreter_eval_frame_offset(py.minor) && *slot_of(state) == eval_frame_default();
    if (!found)
        debug_log("this CPython keeps its frame evaluator elsewhere than the release of 3.%d",
                  py.minor);
    return found;
}

/* Whether the slot shows what the public function sets. */
static bool shows(PyInterpreterState *state, void *evaluator)
{
    py._PyInterpreterState_SetEvalFrameFunc(state, evaluator);
    return *slot_of(state) == evaluator;
}

static bool is_place_known(PyInterpreterState *state, void *other)
{
    if (!interpreter_eval_frame_offset(py.minor) || !eval_frame_default())
        return false;
    if (py.minor <= 8)
        return eval_frame_accessible(state);
    if (eval_frame_get(state) != eval_frame_default())
        return false;
    void *before = *slot_of(state);
    bool known = shows(state, other);
    py._PyInterpreterState_SetEvalFrameFunc(state, eval_frame_default());
    return known && *slot_of(state) == before;
}

void eval_frame_locate(PyInterpreterState *state, void *other)
{
    place_known = is_place_known(state, other);
}

bool eval_frame_replace_default(PyInterpreterState *state, void *evaluator)
{
    if (!place_known)
        return false;
    void **slot = slot_of(state), *now = __atomic_load_n(slot, __ATOMIC_RELAXED);
    return now == evaluator || ((!now || now == eval_frame_default()) &&
                                __atomic_compare_exchange_n(slot, &now, evaluator, false,
                                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* ---------------------------------------------------------------- frame events, 3.6 to 3.10 */

void fire_entry_310(void *frame)
{
    fire_entry_by_object(frame, py.PyFrame_GetLineNumber(frame));
}

void count_entry_310(void *frame)
{
    struct function_sums *sums =
        sums_of_code(code_record_of(frame_code(frame)), frame_globals(frame));
    if (sums)
        sums_call_begin(sums);
}

void fire_return_310(void *frame, struct outcome outcome)
{
    fire_return_by_object(frame, py.PyFrame_GetLineNumber(frame), outcome);
}

/* ---------------------------------------------------------------- frame events, 3.11 */

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

/* Links the frame to its caller while the marker fires, so that a probe can walk the stack from it.
 * CPython sets the same link a moment later. */
void fire_entry_311(void *data)
{
    struct PyInterpreterFrame_311 *frame = data;
    struct code_record *record = code_record_of(frame->f_code);
    struct markers_due fires = markers_due_at_entry(record, frame->f_globals);
    if (!fires.plain && !fires.filtered)
        return;
    frame->previous = this_cframe()->current_frame;
    offsets_check_current(); /* checks its caller: this frame may not have begun */
    fire_entry(record, line_311(frame, record), shown_311(frame), fires);
}

void count_entry_311(void *data)
{
    struct PyInterpreterFrame_311 *frame = data;
    struct function_sums *sums = sums_of_code(code_record_of(frame->f_code), frame->f_globals);
    if (sums)
        sums_call_begin(sums);
}

/* CPython may have unlinked a generator's frame already. */
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

/* Compares the structs with what public functions return for the frame's function, and for the
 * frames below it on the calling thread.  CPython can't change the list of these meanwhile. */
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
    /* Frames that have not begun have no object. */
    while (current && current != frame_interpreter_frame(caller))
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

/* ---------------------------------------------------------------- state of the hook */

typedef PyObject *(*eval_frame_36)(PyFrameObject *, int);
typedef PyObject *(*eval_frame_39)(PyThreadState *, void *, int);

/* The function that the hook replaced and calls, the same in every interpreter that has the
 * hook. */
static void *next_eval_frame;

/* In some interpreter the program has put a function in front of the hook: chained_eval_frame. */
static bool has_front;

/* The markers for which the hook is set. */
static unsigned hook_enabled;

static void *hook(void);

/* ---------------------------------------------------------------- firing */

static void with_exception_saved(void (*fire)(void *), void *frame, bool exception)
{
    PyObject *type, *value, *traceback;
    if (exception)
        py.PyErr_Fetch(&type, &value, &traceback);
    fire(frame);
    if (exception)
        py.PyErr_Restore(type, value, traceback);
}

/* Fires the return of a frame; result: NULL with an exception in flight.  Not inlined: its
 * variables must not be on the C stack while the frame runs. */
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

/* Called first for each frame, unless thread_is_prepared().  Rearms, and installs the trace and
 * profile functions that the thread lacks, for a new tracer or as the program has set its own.
 * exception: one may be in flight, and is saved. */
static enum {
    HOOK_FRAME,
    PASS_FRAME,
    HOOK_QUIETLY
} prepare_thread(PyThreadState *thread, bool exception)
{
    /* The hook may be set for a rearm alone, in an interpreter that can't have the markers. */
    if (rearm_is_requested() && !rearm_current())
        return PASS_FRAME;
    if (!hook_enabled) { /* or the program has kept our hook, and set it again or calls it */
        PyInterpreterState *state = cpython_interpreter();
        if (eval_frame_get(state) == hook())
            eval_frame_set(state, next_eval_frame);
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
    return __builtin_expect(hook_enabled && !rearm_is_requested() && trace_is_installed(thread), 1);
}

/* ---------------------------------------------------------------- passing frames on */

/* The frame that this thread has passed to an eval frame function of the program. */
static __thread void *passed;

static inline bool is_default(void)
{
    return __builtin_expect(next_eval_frame == eval_frame_default(), 1);
}

/* Whether the frame has passed the hook before.  A program that sets its function again has it both
 * in front of the hook and behind it.  A frame that reaches the hook a second time has passed both,
 * and goes to CPython's own function. */
static inline bool unwind_entry(void *frame)
{
    return !is_default() && passed == frame && eval_frame_default();
}

/* pass_36() and pass_39() pass a frame to the function that the hook replaced.  Not inlined: they
 * call CPython's own function by a jump, and so take nothing of the C stack while it runs. */
static __attribute__((noinline)) PyObject *pass_36(PyThreadState *thread, void *frame, int throw)
{
    (void)thread;
    if (is_default())
        return ((eval_frame_36)next_eval_frame)(frame, throw);
    void *before = passed;
    passed = frame;
    PyObject *result = ((eval_frame_36)next_eval_frame)(frame, throw);
    passed = before;
    return result;
}

static __attribute__((noinline)) PyObject *pass_39(PyThreadState *thread, void *frame, int throw)
{
    if (is_default())
        return ((eval_frame_39)next_eval_frame)(thread, frame, throw);
    void *before = passed;
    passed = frame;
    PyObject *result = ((eval_frame_39)next_eval_frame)(thread, frame, throw);
    passed = before;
    return result;
}

/* ---------------------------------------------------------------- deep calls in 3.11 */

/* With an eval frame function set, CPython 3.11 calls it for each Python call; without one it stays
 * in the same C frame.  For a program that recurses deeper than the C stack then allows, the hook
 * is taken out for the deeper calls.  They are not reported, and the program does not crash. */
static PyObject *evaluate_unhooked(PyThreadState *thread, void *frame)
{
    static bool said;
    if (!said)
        debug_log("calls this deep in a thread's C stack are not seen, nor others meanwhile");
    said = true;
    PyInterpreterState *state = cpython_interpreter();
    if (eval_frame_get(state) != hook()) /* the program's own, which must get the deeper calls */
        return pass_39(thread, frame, 0);
    eval_frame_set(state, next_eval_frame);
    PyObject *result = pass_39(thread, frame, 0);
    if (hook_enabled && eval_frame_get(state) == next_eval_frame)
        eval_frame_set(state, hook());
    return result;
}

/* On the first frame. */
static void check_frame_311(void *frame)
{
    if (!check_layout_311(frame))
        hook_enabled = 0;
}

/* ---------------------------------------------------------------- the hooks of each version */

/* NULL: unknown. */
static inline __attribute__((always_inline)) PyObject *code_in(void *frame, bool is_311)
{
    return is_311 ? f_code_311(frame) : frame_layout_known ? frame_code(frame) : NULL;
}

/* NULL: the frame's code has no record yet.  An exception may be in flight. */
static inline __attribute__((always_inline)) struct code_record *record_if_any(void *frame,
                                                                               bool is_311)
{
    PyObject *code = code_in(frame, is_311);
    return code ? code_record_if_any(code) : NULL;
}

/* Whether a filtered marker may be for the frame.  The answer holds at the frame's end, too, unless
 * replay_generation has changed. */
static inline __attribute__((always_inline)) bool may_pass(void *frame, bool is_311)
{
    bool filtered = marker_is_armed(FILTERED_FUNCTION_MARKERS);
    PyObject *code = filtered ? code_in(frame, is_311) : NULL;
    if (!filtered || (code && filter_rejects_cached(code)))
        return false;
    struct code_record *record = code ? code_record_if_any(code) : NULL;
    return !record || !filter_rejects(record);
}

/* Whether no marker and no sum needs the frame.  A tracer that attaches later takes such a frame
 * for one that was running before. */
static inline bool is_left_out(bool matches_filter)
{
    return !matches_filter && !marker_is_armed(FUNCTION_MARKERS) &&
           !sums_enabled(SUMS_CALLS | SUMS_TIMES);
}

/* Entries fire once the hook is set for them: setting it replays the frames that are running. */
static inline bool fires_entry(bool matches_filter)
{
    return MARKER_ARMED(function__entry) ||
           (matches_filter && MARKER_ARMED(filtered__function__entry));
}

/* trace_profile.c fires the return of a frame that began before the tracer attached. */
static inline bool fires_return(bool matches_filter, unsigned tracer)
{
    return (MARKER_ARMED(function__return) ||
            (matches_filter && MARKER_ARMED(filtered__function__return))) &&
           tracer == atomic_load_explicit(&replay_generation, memory_order_relaxed);
}

/* How a frame is evaluated.  again: by the hook itself; pass: by the function that the hook
 * replaced; by_default: by CPython's own function. */
struct parts {
    PyObject *(*again)(PyThreadState *, void *, int);
    PyObject *(*pass)(PyThreadState *, void *, int);
    PyObject *(*by_default)(PyThreadState *, void *, int);
    void (*entry)(void *), (*leave)(void *, struct outcome), (*count)(void *);
    bool is_311;
};

/* NULL: the frame's function has no sums yet.  An exception may be in flight. */
static inline __attribute__((always_inline)) struct function_sums *sums_if_counted(void *frame,
                                                                                   bool is_311)
{
    struct code_record *record = record_if_any(frame, is_311);
    return record ? sums_in(record) : NULL;
}

/* The body of each hook below.  A hook's C frame is on the stack at every level of Python
 * recursion: it must be small, and the only one.  So the body is always inlined, with parts that
 * are constants. */
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
        struct function_sums *sums = sums_if_counted(frame, parts.is_311);
        if (sums)
            sums_call_begin(sums);
        else
            with_exception_saved(parts.count, frame, throw);
    }
    PyObject *result = parts.pass(thread, frame, throw);
    if (sums_enabled(SUMS_TIMES)) {
        struct function_sums *sums = sums_if_counted(frame, parts.is_311);
        if (sums)
            sums_call_end(sums);
    }
    if (fires_return(matches_filter, tracer))
        leave(parts.leave, frame, result);
    return result;
}

static PyObject *default_36(PyThreadState *thread, void *frame, int throw)
{
    (void)thread;
    return ((eval_frame_36)eval_frame_default())(frame, throw);
}

static PyObject *default_39(PyThreadState *thread, void *frame, int throw)
{
    return ((eval_frame_39)eval_frame_default())(thread, frame, throw);
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

/* 3.12 and later: to force one rearm. */
static PyObject *hook_312(PyThreadState *thread, void *frame, int throw)
{
    PyInterpreterState *state = cpython_interpreter();
    if (eval_frame_get(state) == hook())
        eval_frame_set(state, next_eval_frame);
    rearm_current();
    return (unwind_entry(frame) ? default_39 : pass_39)(thread, frame, throw);
}

/* ---------------------------------------------------------------- setting the hook */

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
    /* Which of the two would call the other is unknown.  The hook is not set, so that they don't
     * call each other in a circle. */
    if (next_eval_frame && now != next_eval_frame && (has_front || is_in_place_somewhere())) {
        debug_log("the program has set a frame evaluator in front of the shim's");
        return false;
    }
    interp->chained_eval_frame = NULL;
    next_eval_frame = now;
    eval_frame_set(interp->state, hook());
    return true;
}

bool frame_eval_force_rearm(struct interp *interp, bool again)
{
    if (!can_be_set(interp->state) || !install_hook(interp))
        return false;
    /* Up to 3.11, for a thread that calls no Python function for a while, in a long loop of one
     * frame. Not at the first request: the program could notice, by the events of its own profile
     * function, that another one was set. */
    if (again && py.minor <= 11)
        trace_force_rearm(interp->state);
    return true;
}

static void start(struct interp *interp)
{
    if (!interp->is_main)
        return;
    eval_frame_locate(interp->state, hook());
    if (!next_eval_frame)
        next_eval_frame = eval_frame_default();
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

static enum hook_result set(struct interp *interp, unsigned enabled)
{
    if (!can_be_set(interp->state))
        return HOOK_NEVER;
    stack_limit_init();
    void *now = eval_frame_get(interp->state);
    bool was_set = (interp->armed & ALL) || interp->rearm_forced;
    if (was_set && now != hook() && now != next_eval_frame && now != eval_frame_default()) {
        /* The hook stays behind the program's function, and fires nothing without a tracer. */
        interp->chained_eval_frame = now;
        has_front = true;
    }
    if (enabled && !install_hook(interp))
        return HOOK_NEVER;
    if (!enabled && now == hook())
        eval_frame_set(interp->state, next_eval_frame);
    /* For the process.  This interpreter may be armed for none of them, if its code objects can't
     * have records. */
    unsigned all = code_extra_in_use() ? markers_enabled() & ALL : 0;
    hook_enabled = all;
    replay_set_markers(all);
    sums_set_enabled(all);
    exit_flush_set(all & SUMS_MARKERS);
    return trace_arm(all, enabled) ? HOOK_DONE : HOOK_LATER;
}

void frame_eval_update_main_thread(void)
{
    if (hook_enabled)
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
