/*
 * A hook: one way to make CPython call the shim (hook_*.c).  It feeds some of the markers; arm.c
 * sets it in an interpreter while one of these is wanted there, and takes it out after.  Here is
 * what the hooks and arm.c agree upon, and what the hooks ask of arm.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOOK_H
#define HOOK_H

#include "interp.h"
#include "wanted.h"

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

#endif
