/*
 * Publishes which CPython this is and where its frames have what (layout_page.h).
 *
 * GIL held: in a free-threaded build the calling thread is attached, and others may be, too.  What
 * is read without CPython's functions is then what no other thread writes: this thread's state and
 * its frames, what never changes in a code object or a type, and a dict under its lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_OFFSETS_H
#define CPYTHON_OFFSETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cpython/symbols.h"
#include "shared/offsets_page.h"

/* ---------------------------------------------------------------- layout */

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

/* ---------------------------------------------------------------- layout values */

/*
 * What of the page (layout_page.h) is about values: dicts, names of classes and functions, and the
 * variables of frames.  A part of layout.c.
 */

/* An offset into an object, from one into a struct of cpython_layout.h: see ob_base(). */
static inline uint16_t object_offset(size_t offset)
{
    return (uint16_t)(py.ob_base_offset + offset);
}

/* Whether an object has that attribute at that offset, which does not change.  GIL held, no
 * exception in flight. */
bool has_attribute_at(PyObject *object, unsigned offset, const char *attribute);

/* Fills it in, as far as it's right for the frame, of which frame is what layout_page.h calls so;
 * what is not stays 0.  GIL held, no exception in flight. */
void offsets_fill_values(PyFrameObject *object, const void *frame, PyObject *code);

/* ---------------------------------------------------------------- layout interpreter */

/*
 * What of the page (layout_page.h) is about interpreters: their modules, and the GIL.  A part of
 * layout.c.
 */

struct offsets_page;

/* Fills it in by the calling thread's state, as far as it's right; what is not stays 0.  Returns
 * whether it could be tried: not in a subinterpreter, nor at the end.  GIL held. */
bool offsets_fill_interpreter(PyThreadState *state);

/* ---------------------------------------------------------------- thread slot */

/*
 * Where a thread has its PyThreadState: at the same distance from the thread pointer in each.
 */

/* Finds CPython's thread-local variables.  Once, under the dynamic linker's lock, which no thread
 * may wait for that has the GIL. */
void tls_slot_init(void);

/* The distance in bytes from the thread pointer to the word that PyGILState_GetThisThreadState()
 * returns: the calling thread's state, NULL in a thread that has none.  It stays while the thread
 * is without the GIL.  0: not found; *why says why.  GIL held, in a thread that has
 * one. */
int32_t tls_slot_find(const char **why);

#endif
