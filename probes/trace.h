/*
 * Line, exception and C-call events of CPython 3.6 to 3.11, and the returns of frames that began
 * before the tracer attached: trace and profile functions of C, one each a thread.  Called by
 * hook_frame.c alone, whose frame hook visits each thread that calls a Python function.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TRACE_H
#define TRACE_H

#include "cpython.h"
#include "tracer.h"

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

#endif
