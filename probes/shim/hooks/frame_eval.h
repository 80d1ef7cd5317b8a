/*
 * The frame hook of CPython 3.6 to 3.11: an eval frame function (PEP 523), and trace and profile
 * functions for the events inside a frame.  3.12 and later have it only to force a rearm.
 *
 * All functions: any thread, GIL held, unless their comment says otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOOKS_FRAME_EVAL_H
#define HOOKS_FRAME_EVAL_H

#include <stdbool.h>

#include "cpython/frame.h"
#include "cpython/symbols.h"
#include "hooks/hook.h"
#include "markers/fire.h"
#include "sums/sums.h"

/* ---------------------------------------------------------------- how deep calls are hooked */

/* Each hooked call takes room on the C stack: for the hook's C frame and, in 3.11, also for that of
 * CPython's eval frame function.  So calls below this address of the calling thread's stack are not
 * hooked.  NULL: not found yet. */
extern __thread char *stack_limit;

/* Finds the main thread's stack, once, when the frame hook is set.  The C library would read /proc
 * for it, which may be forbidden to the thread (seccomp), or impossible. */
void stack_limit_init(void);

/* The limit of the calling thread.  No GIL needed. */
char *stack_limit_of_thread(void);

/* For a stack that has reached `here`, below the calling thread's limit: moves the limit down, if
 * possible.  False: `here` is still below it.  No GIL needed. */
bool stack_limit_extend(char *here);

/* Inlined: measures the depth of its caller, the hook, at each call of a Python function. */
static inline bool stack_limit_exceeded(void)
{
    if (__builtin_expect(!stack_limit, 0))
        stack_limit = stack_limit_of_thread();
    char *here = __builtin_frame_address(0);
    return __builtin_expect(here < stack_limit, 0) && !stack_limit_extend(here);
}

/* ---------------------------------------------------------------- the eval frame function */

/*
 * An interpreter's eval frame function (PEP 523).  Up to 3.8 CPython exports no function to read or
 * set it.  No version exports one that sets it only if it is unchanged.
 */

/* CPython's own; NULL: not exported. */
static inline void *eval_frame_default(void)
{
    return (void *)py._PyEval_EvalFrameDefault;
}

/* Whether it can be read and set.  Must be called before both. */
bool eval_frame_accessible(PyInterpreterState *state);

void *eval_frame_get(PyInterpreterState *state);
void eval_frame_set(PyInterpreterState *state, void *evaluator);

/* Sets evaluator in place of CPython's own function, by one atomic instruction.  False: another
 * function is set, or the place of the pointer is unknown.  Up to 3.11; any thread, no GIL.  Up to
 * 3.10 CPython reads the pointer once for each call.  3.11's _PyEval_EvalFrame() compares it with
 * NULL first, and it does not become NULL here. */
bool eval_frame_replace_default(PyInterpreterState *state, void *evaluator);

/* Finds out whether eval_frame_replace_default() can work, and must be called before it.  From 3.9
 * on sets the function `other` for a moment. */
void eval_frame_locate(PyInterpreterState *state, void *other);

/* ---------------------------------------------------------------- events of a frame */

/*
 * These functions fire and count the events of an evaluated frame: a PyFrameObject up to 3.10, an
 * interpreter frame in 3.11.  On the thread that runs the frame, no exception in flight, unless
 * their comment says otherwise.
 */

/* entry: the frame starts or resumes.  return: it ends.  count: adds its start to the sums. */
void fire_entry_310(void *frame);
void fire_return_310(void *frame, struct outcome outcome);
void count_entry_310(void *frame);
void fire_entry_311(void *frame);
void fire_return_311(void *frame, struct outcome outcome);
void count_entry_311(void *frame);

/* Whether 3.11's frames and code objects are as in the release. */
extern enum layout_311 { LAYOUT_311_UNTRIED, LAYOUT_311_KNOWN, LAYOUT_311_UNKNOWN } layout_311;

/* Sets layout_311 by the first frame.  False: LAYOUT_311_UNKNOWN. */
bool check_layout_311(void *frame);

/* offsetof(PyCodeObject, co_code_adaptive), which is the code type's basicsize. */
extern long co_code_adaptive_311;

/* Borrowed; an exception may be in flight. */
static inline PyObject *f_code_311(const void *frame)
{
    return ((const struct PyInterpreterFrame_311 *)frame)->f_code;
}

static inline uint16_t *first_instr_311(const struct PyInterpreterFrame_311 *frame)
{
    return (uint16_t *)((char *)frame->f_code + co_code_adaptive_311);
}

/* Whether this evaluation only makes the generator, and ends at RETURN_GENERATOR: 3.11 evaluates a
 * frame when a generator function is called.  Other versions report no start of the frame then. */
static inline bool is_return_generator_311(struct PyInterpreterFrame_311 *frame)
{
    return frame->prev_instr < first_instr_311(frame) &&
           code_is_generator(frame->f_code, code_record_of(frame->f_code));
}

/* ---------------------------------------------------------------- trace and profile functions */

/*
 * Trace and profile functions in C, one of each per thread, 3.6 to 3.11: events of lines,
 * exceptions and C calls, and the returns of frames that began before the tracer attached.  For
 * frame_eval.c alone, whose hook runs on each thread that calls a Python function.
 */

/* The record of a thread state. */
struct traced_thread {
    struct traced_thread *next;
    PyThreadState *state;
    /* The program's functions, which ours replaced.  Valid only while ours are set. */
    Py_tracefunc trace, profile;
    struct replay_state replayed; /* the latest replay */
    /* Frames that were running at that time and have not returned, the outermost first; borrowed,
     * and only compared. */
    PyFrameObject **running_frames;
    size_t running_count;
    bool suspended; /* by trace_suspend() */
};

/* The enabled markers of lines, exceptions and C functions, as bits.  Written by trace_arm()
 * alone. */
extern unsigned trace_markers;

/* The latest record that the calling OS thread has used. */
extern __thread struct traced_thread *trace_thread;

/* Sets the enabled markers: of lines, exceptions, C functions, and function__return for frames that
 * are running.  here: installs the functions on all threads of this interpreter now.  But up to 3.9
 * each thread installs its trace function itself, in 3.6 both functions, when it next calls a
 * Python function.  The main thread does so in frame_eval_update_main_thread().  Runs no code of
 * the program, except audit hooks up to 3.9, on a thread that runs Python.  No exception in flight.
 * False: some threads could not be reached now. */
bool trace_arm(unsigned enabled, bool here);

/* Has each thread of the interpreter call rearm_current() when it next calls a C function, or
 * returns from a Python function.  Not in 3.6. */
void trace_force_rearm(PyInterpreterState *interpreter);

/* Installs the functions that the calling thread needs, in front of the program's.  state: its
 * PyThreadState.  No exception in flight. */
void trace_install(void *state);

/* While the calling thread runs a frame that is not among running_frames, it needs no profile
 * function: takes it out until trace_resume().  False: nothing has changed. */
bool trace_suspend(PyThreadState *state);
void trace_resume(PyThreadState *state);

/* Whether trace_install() has nothing to do. */
static inline bool trace_is_installed(const PyThreadState *state)
{
    const struct traced_thread *thread = trace_thread;
    return !trace_markers && thread && thread->state == state &&
           (thread->running_count == 0 || thread->suspended) && !replay_is_due(&thread->replayed);
}

/* ---------------------------------------------------------------- the hook */

extern const struct hook hook_frame;

/* Forces a rearm: each thread of the interpreter calls rearm_current() when it next calls a Python
 * function.  again: the previous request has had no effect yet.  The interpreter need not be the
 * calling one; any version of CPython.  GIL held, or no other thread in the process.  False: the
 * hook can't be set. */
bool frame_eval_force_rearm(struct interp *interp, bool again);

/* The same for the main interpreter, without the GIL: up to 3.11, and if the program has no eval
 * frame function of its own.  On the watcher's thread. */
bool frame_eval_force_rearm_nogil(struct interp *interp);

/* Installs the main thread's trace and profile functions, if the hook is set.  On the main
 * thread. */
void frame_eval_update_main_thread(void);

#endif
