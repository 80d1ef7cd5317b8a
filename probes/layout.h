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
void offsets_publish(void);

/* Compares what is known of this CPython's frames and threads with what the public functions say of
 * one, and publishes it if it's right.  Called as the main interpreter starts, or with the shim's
 * first call in one that runs; then with frames that markers report, until one was enough to
 * decide.  Any thread, GIL held, no exception in flight; so with those below. */
void offsets_check(PyFrameObject *frame);

/* Has the threads' states looked for again: a new Py_Initialize() may have put them elsewhere.
 * Called as the main interpreter starts. */
void offsets_forget_tls(void);

extern atomic_bool offsets_decided;

/* Whether it still needs a frame to look at. */
static inline bool offsets_unchecked(void)
{
    return __builtin_expect(!atomic_load_explicit(&offsets_decided, memory_order_relaxed), 0);
}

static inline void offsets_check_frame(PyFrameObject *frame)
{
    if (offsets_unchecked() && frame)
        offsets_check(frame);
}

/* The same with the calling thread's innermost frame, which it then has made. */
static inline void offsets_check_current(void)
{
    if (offsets_unchecked())
        offsets_check_frame(py.PyEval_GetFrame());
}

#endif
