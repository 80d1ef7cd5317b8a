/*
 * The interpreters of the process: a record of each, with what the hooks keep for it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOOKS_HOOK_H
#define HOOKS_HOOK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cpython/symbols.h"
#include "markers/enabled.h"
#include "os/thread.h"

/* ---------------------------------------------------------------- interp */

struct interp {
    struct interp *next;
    PyInterpreterState *state;
    int64_t id;                   /* 0 before 3.7 */
    bool started;                 /* by arm_interpreter_started() */
    atomic_bool is_main;          /* the first interpreter of the process */
    bool ended;                   /* 3.8 and later; under the lock of the list */
    _Atomic uint64_t armed_for;   /* filter_arm_key() of the markers for which it was last armed */
    unsigned filter;              /* filter_revision() for which the hooks were last set */
    claim_flag arming;            /* a thread is in arm_current() for it */
    claim_flag call_pending;      /* 3.12 and later: a pending call of ours is in its queue */
    PyThreadState *newest_tstate; /* its newest thread when that was put there: ask.c */
    atomic_uint armed;            /* markers whose hooks are in place */
    unsigned unavailable;         /* markers that can't be had in this interpreter */
    atomic_bool rearm_forced;     /* a hook's knock() has succeeded, and was not yet answered */
    enum { CODE_EXTRA_UNTRIED, CODE_EXTRA_READY, CODE_EXTRA_UNUSABLE } code;
    void *chained_eval_frame; /* hook_frame: the evaluator in front of our hook, which it calls */
    int tool_id;              /* hook_monitoring: the tool id, or -1 */
    atomic_bool lacks_id;     /* hook_monitoring: others had all of them when it last looked */
    PyObject *tool_name;      /* hook_monitoring: by which the id is known for ours */
    PyObject *gc_callbacks;   /* hook_gc: gc.callbacks as CPython has it */
    PyObject *gc_callback;    /* hook_gc: what is in it, or NULL */
    PyObject *find_and_load_wrapper; /* hook_import: what is in place of _find_and_load, or NULL */
    PyObject *find_and_load_original;
};

/* The record of an interpreter, made if there is none; NULL if memory ran out.  Takes the lock.
 * GIL held, or no other thread in the process. */
struct interp *interp_of(PyInterpreterState *state);

/* What a new interpreter begins with.  The objects that the record had went with the one before.
 * Under the lock. */
void interp_reset(struct interp *interp);

/* The list, newest first, linked by next; NULL while it is empty.  Records are never freed, so a
 * pointer to one stays good; a new one is put first, under the lock. */
struct interp *interp_first(void);

/* The main interpreter's record, or NULL.  No lock: of what is on the list only the head changes.
 */
struct interp *interp_main(void);

/* Whether one that lives lacks_id.  Any thread, no lock, as above. */
bool interp_lacks_id(void);

/* The lock guards the list and each record's `ended`.  No GIL is waited for under it. */
void interp_lock(void);
void interp_unlock(void);

/* Whether a thread was in arm_current() for one of them.  In the child of a fork, before
 * interp_after_fork(). */
bool interp_any_arming(void);

/* In the child of a fork, in which no other thread is. */
void interp_after_fork(void);

/* ---------------------------------------------------------------- hook */

/*
 * A hook: one way to make CPython call the shim (hook_*.c).  It feeds some of the markers; arm.c
 * sets it in an interpreter while one of these is wanted there, and takes it out after.  Here is
 * what the hooks and arm.c agree upon, and what the hooks ask of arm.c.
 */

enum hook_result {
    HOOK_DONE,
    HOOK_LATER, /* CPython isn't ready yet: try again */
    HOOK_LACKS, /* the program has what it needs: asked again at each look; debug_log() says so once
                 */
    HOOK_NEVER, /* it can't be had here; debug_log() says why, or that what it needs is missing */
};

/* arm.c calls these with the GIL held and no exception in flight, on any thread that runs Python in
 * the interpreter; of a quiet hook set() on the watcher's thread, too.  What may be NULL says so.
 */
struct hook {
    const char *name;
    unsigned markers;       /* what it feeds */
    bool uses_code;         /* it calls code_record_of() */
    bool watcher_may_set;   /* set() runs no code of the program, nor a collection: the watcher may
                               call it */
    bool watcher_may_reset; /* so it is if the hook was set for the same before */
    bool must_recheck;      /* the program may take it out: set() is called again, to look */
    bool (*is_supported)(void); /* this CPython is one for it */

    /* An interpreter starts.  May be NULL. */
    void (*start)(struct interp *interp);

    /* Brings the hook to these of its markers; 0: takes it out.  What is wanted in the process it
     * asks markers_enabled() itself, when it writes it down: another interpreter may have been
     * armed for more since arm.c asked. */
    enum hook_result (*set)(struct interp *interp, unsigned wanted);

    /* The interpreter is cleared: drops the objects in the record.  May be NULL. */
    void (*end)(struct interp *interp);
};

/* Whether this thread puts hooks in place: what CPython raises then (audit events) is our own
 * doing. */
bool thread_is_arming(void);

/* Sets that, and returns what it was before. */
bool set_thread_is_arming(bool busy);

/* Up to 3.11: how many interpreters were knocked at and have not answered.  Read with the GIL held;
 * written with it, or with no other thread in the process, or by a thread that has set `arming` of
 * the only interpreter there is. */
extern atomic_uint rearm_requests;

static inline bool rearm_is_requested(void)
{
    return atomic_load_explicit(&rearm_requests, memory_order_relaxed);
}

/* ---------------------------------------------------------------- hooks */

/*
 * The table of hooks.
 */

/* All of them, in the order in which they are set; after the last a NULL. */
extern const struct hook *const hooks[];

/* ---------------------------------------------------------------- arm */

/*
 * Arming: puts hooks into interpreters while their markers are wanted, and takes them out after.
 * Called by the loader when an interpreter starts, and by the watcher when a tracer attaches or
 * detaches.
 */

/* Begins with the calling interpreter, unless that has been done: brings its hooks to what is
 * wanted.  is_new: it has just been made, and what is known of it is of one before it.  Called by
 * the loader, on the thread that starts the interpreter or first runs Python in it.  GIL held; an
 * exception in flight stays. */
void arm_interpreter_started(bool is_new);

/* Brings the calling interpreter's hooks to what is wanted, on a thread of the program's that runs
 * Python in it.  GIL held; an exception in flight stays.  False: something was not ready, the
 * interpreter is to be asked again. */
bool arm_current(void);

/* The same for the quiet hooks alone.  On the watcher's thread, with the main interpreter's GIL. */
bool arm_current_from_watcher(void);

/* In the child of a fork, in which no other thread is. */
void arm_after_fork(void);

/* ---------------------------------------------------------------- leave */

/* The shim detaches: the program's calls are CPython's alone again.  Any thread, no GIL. */
void monitoring_leave(void);

#endif
