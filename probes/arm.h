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

/* Whether somebody probes the marker right now. */
#define MARKER_ON(name) \
    __builtin_expect(*(const volatile unsigned short *)&python_##name##_semaphore, 0)

/* One interpreter of the process, and what the hooks keep for it. */
struct interp {
    struct interp *next;
    PyInterpreterState *state;
    int64_t id;         /* 0 before 3.7 */
    atomic_bool arming; /* a thread is in arm_here() for it */
    unsigned armed;     /* markers whose hooks are in place */
    unsigned never;     /* markers that can't be had in this interpreter */
    enum { CODE_UNTRIED, CODE_READY, CODE_UNUSABLE } code;
    int tool;               /* hook_monitoring: the tool id, or -1 */
    PyObject *gc_callback;  /* hook_gc: what is in gc.callbacks, or NULL */
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
    unsigned markers;                                          /* what it feeds */
    bool uses_code;                                            /* it calls code_of() */
    bool (*fits)(void);                                        /* this CPython is one for it */
    enum hook_result (*set)(struct interp *, unsigned wanted); /* GIL held, no exception */
};

extern const struct hook hook_monitoring, hook_frame, hook_gc, hook_import, hook_audit;

/* Fire also what CPython's own markers give (PYTHON_STAP=all).  Set before any arming. */
extern bool arm_all;

/* The markers that are wanted now, as bits.  Any thread, no GIL: it reads the semaphores. */
unsigned arm_wanted(void);

/* Brings the calling interpreter's hooks to what is wanted.  GIL held; an exception in flight
 * stays.  False: something was not ready, try again later. */
bool arm_here(unsigned wanted);

/* Forgets what was known of the main interpreter, which has just been made: it lies where the one
 * before Py_Finalize() lay, and has its id.  GIL held. */
void arm_new_interpreter(void);

/* True while this thread puts hooks in place: what CPython raises then (audit events) is our own
 * doing. */
bool arm_busy(void);

#endif
