/*
 * What arm.c and the hooks share: a record of each interpreter, the interface of a hook, and
 * arming.
 *
 * All functions: any thread, GIL held, unless their comment says otherwise.
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

/* ---------------------------------------------------------------- interpreters */

struct interp {
    /* Threads without the lock read these, each as a whole. */
    struct interp *next;
    PyInterpreterState *state;
    atomic_bool is_main;        /* the main interpreter */
    atomic_bool lacks_id;       /* monitoring.c: no tool id was free at the latest check */
    atomic_bool rearm_forced;   /* the frame hook is set for a rearm, not done yet */
    claim_flag arming;          /* claimed by the thread that changes its hooks */
    atomic_int calls_pending;   /* 3.12+: the shim's pending calls in its queue, see rearm.c */
    atomic_uint armed;          /* markers whose hooks are set */
    _Atomic uint64_t armed_for; /* filter_arm_key() at the latest arming, or ARMED_FOR_NOTHING */

    int64_t id;                   /* 0 before 3.7 */
    bool started;                 /* by arm_interpreter_started(), or include_unseen of rearm.c */
    bool ended;                   /* 3.8+: ended, or its end would go unnoticed; under the lock */
    unsigned filter;              /* filter_revision() when filtered markers were last armed */
    PyThreadState *newest_tstate; /* free-threaded: its newest thread at the latest request */
    unsigned unavailable; /* markers that can't be had here, until none of the hook is enabled */
    enum { CODE_EXTRA_UNTRIED, CODE_EXTRA_READY, CODE_EXTRA_UNUSABLE } code;
    void *chained_eval_frame;        /* frame_eval.c: the program's function in front of the hook */
    int tool_id;                     /* monitoring.c: the tool id, or -1 */
    PyObject *tool_name;             /* monitoring.c: our tool's name, compared by identity */
    PyObject *gc_callbacks;          /* gc.c: CPython's own list gc.callbacks */
    PyObject *gc_callback;           /* gc.c: our callback in the list, or NULL */
    PyObject *find_and_load_wrapper; /* import.c: in place of _find_and_load, or NULL */
    PyObject *find_and_load_original;
};

/* The interpreter's record, created on first use; NULL: memory ran out.  Takes the list's lock.
 * GIL held, or no other thread in the process. */
struct interp *interp_of(PyInterpreterState *state);

/* The newest record, or NULL; `next` links the others.  Records are never freed, and interp_of()
 * puts new ones first, under the lock. */
struct interp *interp_first(void);

/* Keeps the interpreter from ending, until interp_let_go().  Only the watcher calls these, for one
 * interpreter at a time; it holds no lock meanwhile.  False: the interpreter has ended, or the shim
 * has not seen it start, and would not see it end. */
bool interp_keep(struct interp *interp);
void interp_let_go(void);

/* The main interpreter's record, or NULL.  Any thread, no lock: only the head of the list
 * changes, and a reset leaves `next` alone. */
struct interp *interp_main(void);

/* Whether the main interpreter has ended, as far as the shim knows; then the records are as new:
 * all other interpreters have ended, too.  On the thread of a main interpreter, GIL held. */
bool interp_forget_ended(void);

/* Whether a living interpreter lacks a tool id (lacks_id).  Any thread, no lock. */
bool interp_lacks_id(void);

/* The lock of the list and of each record's `ended`.  Its holder must not wait for a GIL. */
void interp_lock(void);
void interp_unlock(void);

/* Whether a thread was changing the hooks of an interpreter.  In the child of a fork, before
 * interp_after_fork(). */
bool interp_any_arming(void);

/* In the child of a fork, which has no other thread. */
void interp_after_fork(void);

/* ---------------------------------------------------------------- hooks */

/*
 * A hook is one way to make CPython call the shim, for some of the markers.  arm.c sets it in an
 * interpreter while one of these markers is enabled there, and takes it out afterwards.
 */

enum hook_result {
    HOOK_DONE,
    HOOK_LATER, /* CPython is not ready yet: try again */
    HOOK_LACKS, /* other tools have all tool ids: logged once, tried again at each recheck */
    HOOK_NEVER, /* impossible here, logged; tried again after no marker was enabled */
};

/* arm.c calls the functions with the GIL held and no exception in flight, on any thread that runs
 * Python in the interpreter.  It calls set() also on the watcher's thread, if watcher_may_set or
 * watcher_may_reset allows it. */
struct hook {
    const char *name;
    unsigned markers;           /* the markers that it fires */
    bool uses_code;             /* it calls code_record_of() */
    bool watcher_may_set;       /* set() runs no code of the program, and no garbage collection */
    bool watcher_may_reset;     /* the same, for a recheck of a hook that is set already */
    bool must_recheck;          /* the program may take the hook out: a recheck calls set() again */
    bool (*is_supported)(void); /* in this CPython */

    /* An interpreter starts.  May be NULL. */
    void (*start)(struct interp *interp);

    /* Sets the hook for these of its markers; 0: takes it out.  Process-wide state follows
     * markers_enabled(), not `enabled`: another interpreter may have been armed for more markers
     * since. */
    enum hook_result (*set)(struct interp *interp, unsigned enabled);

    /* The interpreter is cleared: drops the objects in the record.  May be NULL. */
    void (*end)(struct interp *interp);
};

/* Whether the calling thread is setting hooks: the shim itself then causes the audit events that
 * CPython raises. */
bool thread_is_arming(void);

/* Returns the previous value. */
bool set_thread_is_arming(bool arming);

/* How many interpreters have rearm_forced set.  Read up to 3.11, with the GIL held.  Written with
 * the GIL held, with no other thread in the process, or by the thread that has claimed `arming` of
 * the only interpreter. */
extern atomic_uint rearm_requests;

static inline bool rearm_is_requested(void)
{
    return atomic_load_explicit(&rearm_requests, memory_order_relaxed);
}

/* In the order in which they are set; a NULL after the last. */
extern const struct hook *const hooks[];

/* ---------------------------------------------------------------- arming */

/* Starts the hooks of the calling interpreter, once, and arms it for the enabled markers.  is_new:
 * CPython has just created it, so a record that exists is of an earlier one.  On the thread that
 * starts the interpreter or first runs Python in it; an exception in flight stays. */
void arm_interpreter_started(bool is_new);

/* Sets the calling interpreter's hooks for the enabled markers.  On a thread of the program; an
 * exception in flight stays.  False: a hook was not ready, or another thread is arming; to be
 * called again. */
bool arm_current(void);

/* The same for the hooks that the watcher may set, on its thread, with the main interpreter's
 * GIL. */
bool arm_current_from_watcher(void);

/* Whether an interpreter was armed for a marker, or not to the end, since the latest call.  On the
 * watcher's thread. */
bool arm_since_last_look(void);

/* In the child of a fork, which has no other thread. */
void arm_after_fork(void);
void memory_after_fork(void);

/* A function of atexit: memory that CPython frees as it ends was in use until the program's end.
 * Rearming has stopped. */
void memory_at_exit(void);

/* ---------------------------------------------------------------- detaching */

/* The shim detaches: puts CPython's own use_tool_id() and free_tool_id() back.  Any thread, no
 * GIL. */
void monitoring_leave(void);

#endif
