/*
 * Publishes which CPython this is and where its frames have what (layout_page.h).
 *
 * GIL held: in a free-threaded build the calling thread is attached, and others may be, too.  What
 * is read without CPython's functions is then what no other thread writes: this thread's state and
 * its frames, what never changes in a code object or a type, and a dict under its lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "cpython.h"

#include <stdatomic.h>

/* Maps the page.  Called once, by the loader, under the dynamic linker's lock; no GIL. */
void layout_publish(void);

/* Compares what is known of this CPython's frames and threads with what the public functions say of
 * one, and publishes it if it's right.  Called as the main interpreter starts, or with the shim's
 * first call in one that runs; then with frames that markers report, until one was enough to
 * decide.  Any thread, GIL held, no exception in flight; so with those below. */
void layout_check(PyFrameObject *frame);

/* Has the threads' states looked for again: a new Py_Initialize() may have put them elsewhere.
 * Called as the main interpreter starts. */
void layout_forget_threads(void);

extern atomic_bool layout_settled;

/* Whether it still needs a frame to look at. */
static inline bool layout_wants(void)
{
    return __builtin_expect(!atomic_load_explicit(&layout_settled, memory_order_relaxed), 0);
}

static inline void layout_meet(PyFrameObject *frame)
{
    if (layout_wants() && frame)
        layout_check(frame);
}

/* The same with the calling thread's innermost frame, which it then has made. */
static inline void layout_meet_current(void)
{
    if (layout_wants())
        layout_meet(py.PyEval_GetFrame());
}

#endif
