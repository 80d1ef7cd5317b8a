/*
 * The interpreters of the process: a record of each, with what the hooks keep for it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INTERP_H
#define INTERP_H

#include "cpython.h"
#include "taken.h"

#include <stdatomic.h>

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

#endif
