/*
 * Arming: which markers somebody probes, and the hooks that feed them.  A hook is one way to make
 * CPython call the shim (hook_*.c); arm.c puts hooks into an interpreter while their markers are
 * wanted, and takes them out after.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARM_H
#define ARM_H

#include "markers.h"

#include <stdatomic.h>

#define MARKER_BIT(name) (1u << MARKER_##name)

/* In interp->armed: the interpreter has the frame hook also to be told that what is wanted has
 * changed. */
#define ARM_KNOCKED (1u << 31)
_Static_assert(MARKERS < 31, "a bit for each marker, and one more");

/* The markers, as bits, for which the shim is silent because somebody probes CPython's own.  As
 * arm_wanted() last found them: the watcher asks it every 50 ms. */
extern atomic_uint arm_silent;

/* Whether the marker is to be fired: somebody probes it right now, and the shim is its source.  A
 * hook may call for one that isn't, as it is in place for others. */
#define MARKER_ON(name) \
    (__builtin_expect(*(const volatile unsigned short *)&python_##name##_semaphore, 0) && \
     !(atomic_load_explicit(&arm_silent, memory_order_relaxed) & MARKER_BIT(name)))

/* One interpreter of the process, and what the hooks keep for it. */
struct interp {
    struct interp *next;
    PyInterpreterState *state;
    int64_t id;            /* 0 before 3.7 */
    bool started;          /* by arm_start() */
    bool is_main;          /* the first interpreter of the process */
    bool ended;            /* 3.8 and later; under the lock of the list */
    atomic_uint armed_for; /* the markers for which it was last armed */
    atomic_bool arming;    /* a thread is in arm_here() for it */
    atomic_bool asked;     /* 3.12 and later: a pending call of ours is in its queue */
    unsigned armed;        /* markers whose hooks are in place */
    unsigned never;        /* markers that can't be had in this interpreter */
    enum { CODE_UNTRIED, CODE_READY, CODE_UNUSABLE } code;
    void *front;            /* hook_frame: the evaluator in front of our hook, which it calls */
    int tool;               /* hook_monitoring: the tool id, or -1 */
    PyObject *tool_name;    /* hook_monitoring: by which the id is known for ours */
    PyObject *gc_callbacks; /* hook_gc: gc.callbacks as CPython has it */
    PyObject *gc_callback;  /* hook_gc: what is in it, or NULL */
    PyObject *find_wrapper; /* hook_import: what is in place of _find_and_load, or NULL */
    PyObject *find_original;
};

enum hook_result {
    HOOK_DONE,
    HOOK_LATER, /* CPython isn't ready yet: try again */
    HOOK_NEVER, /* it can't be had here; the reason was given to debug_log() */
};

struct hook {
    const char *name;
    unsigned markers; /* what it feeds */
    bool uses_code;   /* it calls code_of() */
    bool quiet; /* set() runs no code of the program, nor a collection: the watcher may call it */
    bool quiet_again;               /* so it is where the hook was set for the same before */
    bool (*fits)(void);             /* this CPython is one for it */
    void (*start)(struct interp *); /* an interpreter starts; or NULL */
    enum hook_result (*set)(struct interp *, unsigned wanted); /* GIL held, no exception */
    void (*visit)(void); /* the main thread runs Python: see to what it lacks; or NULL */
    bool can_be_lost;    /* the program may take it out: set() is called again, to look */
};

extern const struct hook hook_monitoring, hook_frame, hook_gc, hook_import, hook_audit;

/* Fire also what CPython's own markers give (PYTHON_STAP=all).  Set before any arming. */
extern bool arm_all;

/* The markers that are wanted of the shim now, as bits.  No GIL: it reads the semaphores.  Of
 * CPython's own too: so only with the GIL, or on a thread that is joined before CPython ends. */
unsigned arm_wanted(void);

/* What the semaphores add up to. */
unsigned arm_raised(void);

/* Begins with the calling interpreter, unless that has been done: brings its hooks to what is
 * wanted.  is_new: it has just been made, and what is known of it is of one before it.  GIL held;
 * an exception in flight stays. */
void arm_start(bool is_new);

/* Brings the calling interpreter's hooks to what is wanted, on a thread of the program's that runs
 * Python in it.  GIL held; an exception in flight stays.  False: something was not ready, it will
 * be tried again. */
bool arm_here(void);

/* Asks the interpreters of the process to bring their hooks to what is wanted: each does so itself,
 * on the first thread that runs Python there.  look: those too that have done it, as the program
 * may have taken hooks out.  Called by the watcher, on whose thread no code of the program may run:
 * a fork waits for it, with whatever locks the program's own fork handlers hold.
 *
 * 3.12 and later: without the GIL, by a pending call, which any thread of the interpreter makes. Up
 * to 3.11 with the main interpreter's GIL: the frame hook is set at once, so that all threads have
 * it, those too that wait in C; for the rest there are the frame hook, which any thread meets at
 * its next call, a profile function (but for 3.6), which it meets at its next call of C, and but
 * for 3.8 and 3.11 a pending call of the main thread's. */
void arm_ask(unsigned wanted, bool look);

/* Whether all interpreters have done so.  No GIL. */
bool arm_done(unsigned wanted);

/* Has a thread of the main interpreter's call this soon, in a CPython that runs already; it is to
 * call arm_start().  As arm_ask() for threads and GIL. */
bool arm_attach(void (*meet)(void)); /* false: try again */

/* The same in the child of a fork by C, when it next calls a Python function; NULL: no longer.  No
 * lock, no GIL: no other thread is there. */
void arm_meet_child(void (*meet)(void));

/* The main interpreter ends, or begins: nothing is armed from then on, or again.  GIL held. */
void arm_close(void);
void arm_open(void);

/* The shim was loaded into a running CPython: up to 3.11, interpreters that were there before, and
 * those that start later, are to be knocked at, too.  GIL held. */
void arm_meet_others(void);

/* Up to 3.11: how many interpreters have the frame hook also to be told to arm.  Read and written
 * with the GIL held. */
extern unsigned arm_knocks;

/* Called by the frame hook, and by profile functions, while there are some: arms the calling
 * interpreter if it is one of them. False: its markers can't be had, and the hook is to do nothing.
 * GIL held. */
bool arm_answer(void);

/* Whether a thread is in arm_here(), for any interpreter.  No GIL. */
bool arm_goes_on(void);

/* In the child of a fork, in which no other thread is. */
void arm_forked(void);

/* In hook_frame.c: puts the frame hook into another interpreter.  GIL held, or no other thread. */
enum hook_result frame_knock(struct interp *interp);

/* True while this thread puts hooks in place: what CPython raises then (audit events) is our own
 * doing. */
bool arm_busy(void);

#endif
