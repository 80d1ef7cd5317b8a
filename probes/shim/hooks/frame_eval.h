/*
 * How deep into the C stack of a thread the frame hook still hooks.  The hook's own frame stands
 * between any two Python calls on the C stack (and in 3.11 the evaluator's, too): what lies deeper
 * than this limit is not hooked.
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

/* ---------------------------------------------------------------- stack limit */

/* The lowest address of the C stack at which this thread still hooks; NULL: not yet found. */
extern __thread char *stack_limit;

/* Finds the main thread's stack, once: the C library would read /proc for it, which the thread may
 * not be allowed to (seccomp), or can't.  Called when the frame hook is set; GIL held. */
void stack_limit_init(void);

/* The limit of the calling thread.  It need not hold the GIL. */
char *stack_limit_of_thread(void);

/* Whether the limit, which here lies below, can be moved below it.  On the calling thread. */
bool stack_limit_extend(char *here);

/* In the header, as it asks how deep the hook itself stands, at each call of a Python function. */
static inline bool stack_limit_exceeded(void)
{
    if (__builtin_expect(!stack_limit, 0))
        stack_limit = stack_limit_of_thread();
    char *here = __builtin_frame_address(0);
    return __builtin_expect(here < stack_limit, 0) && !stack_limit_extend(here);
}

/* ---------------------------------------------------------------- evaluator */

/*
 * Where CPython keeps an interpreter's frame evaluator (PEP 523).  Up to 3.8 it exports no function
 * for that, and never one that changes it only if it is still the same.
 */

/* CPython's own. */
static inline void *eval_frame_default(void)
{
    return (void *)py._PyEval_EvalFrameDefault;
}

/* Whether it can be read and set: called first.  GIL held. */
bool eval_frame_accessible(PyInterpreterState *state);

/* GIL held. */
void *eval_frame_get(PyInterpreterState *state);
void eval_frame_set(PyInterpreterState *state, void *evaluator);

/* Puts this one in place of CPython's own, by one instruction; false: there was another one, or the
 * place is not known.  Up to 3.11; any thread, no GIL.  CPython reads the place once for each call
 * up to 3.10; 3.11's _PyEval_EvalFrame() compares it with NULL first, which it does not become
 * here. */
bool eval_frame_replace_default(PyInterpreterState *state, void *evaluator);

/* Finds out whether that can be done, before it first is; 3.9 and later by setting the other
 * evaluator for a moment.  GIL held. */
void eval_frame_locate(PyInterpreterState *state, void *other);

/* ---------------------------------------------------------------- frame events */

/*
 * The events of a frame that is evaluated, up to 3.11: fires and counts them.  What the evaluator
 * is given is a PyFrameObject up to 3.10, and in 3.11 what such an object stands for.
 *
 * All functions: on the thread that runs the frame, GIL held, no exception in flight unless that is
 * said.
 */

/* A frame starts or resumes; ends; and its start is counted. */
void fire_entry_310(void *frame);
void fire_return_310(void *frame, struct outcome outcome);
void count_entry_310(void *frame);
void fire_entry_311(void *frame);
void fire_return_311(void *frame, struct outcome outcome);
void count_entry_311(void *frame);

/* Whether the layouts of 3.11 are those of the release. */
extern enum layout_311 { LAYOUT_311_UNTRIED, LAYOUT_311_KNOWN, LAYOUT_311_UNKNOWN } layout_311;

/* Finds that out, on the first frame.  Whether they are. */
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

/* In 3.11 a call of a generator function evaluates the frame as far as its RETURN_GENERATOR, which
 * no other version calls a start of the frame. */
static inline bool is_return_generator_311(struct PyInterpreterFrame_311 *frame)
{
    return frame->prev_instr < first_instr_311(frame) &&
           code_is_generator(frame->f_code, code_record_of(frame->f_code));
}

/* ---------------------------------------------------------------- trace */

/*
 * Line, exception and C-call events of CPython 3.6 to 3.11, and the returns of frames that began
 * before the tracer attached: trace and profile functions of C, one each a thread.  Called by
 * hook_frame.c alone, whose frame hook visits each thread that calls a Python function.
 */

/* What is known of a thread state.  Read and written with the GIL held. */
struct traced_thread {
    struct traced_thread *next;
    PyThreadState *state;
    /* The program's functions, which stood before ours.  Good only while ours is there. */
    Py_tracefunc trace, profile;
    struct replay_state replayed; /* what it has caught up with */
    /* The frames that ran already then, the outermost first; borrowed, and only compared. */
    PyFrameObject **running_frames;
    size_t running_count;
    bool suspended; /* by trace_suspend() */
};

/* Line, exception and cfunction markers that are wanted, as bits.  Changed with the GIL held, by
 * trace_arm() alone. */
extern unsigned trace_markers;

/* The calling OS thread's latest. */
extern __thread struct traced_thread *trace_thread;

/* Wants these markers from now on: function__return for the frames that run already, line,
 * cfunction.  here: the calling interpreter's threads get their functions now, but up to 3.9 those
 * for line, and in 3.6 all, which each thread but the main one gets when it next calls a Python
 * function.  GIL held, no exception in flight; runs no code of the program, but up to 3.9 its audit
 * hooks on a thread that runs Python.  False: some threads could not be reached now. */
bool trace_arm(unsigned wanted, bool here);

/* Each thread that runs Python in the interpreter, and calls a C function next, or returns from a
 * Python function, calls rearm_current() then.  Not in 3.6.  GIL held. */
void trace_force_rearm(PyInterpreterState *interpreter);

/* Gives the calling thread (a PyThreadState) the functions that it should have, in front of those
 * of the program.  GIL held, no exception in flight. */
void trace_install(void *state);

/* The calling thread runs a frame that is not among the old ones: until trace_resume() it needs no
 * profile function, and has none.  False: it keeps what it has.  GIL held. */
bool trace_suspend(PyThreadState *state);
void trace_resume(PyThreadState *state);

/* Whether trace_install() has nothing to do.  GIL held. */
static inline bool trace_is_installed(const PyThreadState *state)
{
    const struct traced_thread *thread = trace_thread;
    return !trace_markers && thread && thread->state == state &&
           (thread->running_count == 0 || thread->suspended) && !replay_is_due(&thread->replayed);
}

/* ---------------------------------------------------------------- hook frame */

/*
 * The frame hook, by which interpreters are also knocked at.
 */

extern const struct hook hook_frame;

/* Has the interpreter's threads call rearm_current(), each when it next calls a function.  again:
 * they were asked before, and have not.  The interpreter need not be the calling one, and may be of
 * any version.  GIL held, or no other thread in the process.  False: the hook can't be set. */
bool frame_eval_force_rearm(struct interp *interp, bool again);

/* The same for the main interpreter, without the GIL, where that can be done at once: up to 3.11,
 * and if the program has no evaluator of its own. */
bool frame_eval_force_rearm_nogil(struct interp *interp);

/* Sees to what the main thread lacks, if the hook is set.  On that thread, GIL held. */
void frame_eval_update_main_thread(void);

#endif
