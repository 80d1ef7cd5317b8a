/*
 * Fills in the offsets page (shared/offsets_page.h), which the tapset reads.  All functions: any
 * thread, GIL held, no exception in flight, unless a declaration says otherwise.
 *
 * In a free-threaded build other threads may run meanwhile.  So the shim directly reads only memory
 * that they do not write: the calling thread's state and frames, constant members of code objects
 * and types, and a dict under its lock.
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

/* ---------------------------------------------------------------- checks */

/* Maps the page, with CPython's version.  Called once, by core/loader.c, under the dynamic linker's
 * lock; no GIL. */
void offsets_publish(void);

/* Compares the offsets for frames and threads with what CPython's public functions return for this
 * frame, and publishes those that are right.  Called as the main interpreter starts, or as the shim
 * is first called in a running one; then with frames that markers report, until it has decided. */
void offsets_check(PyFrameObject *frame);

/* Has the TLS slot found again: a new Py_Initialize() may have put it elsewhere.  Called as the
 * main interpreter starts. */
void offsets_forget_tls(void);

extern atomic_bool offsets_decided;

/* Whether offsets_check() has not decided yet. */
static inline bool offsets_unchecked(void)
{
    return __builtin_expect(!atomic_load_explicit(&offsets_decided, memory_order_relaxed), 0);
}

static inline void offsets_check_frame(PyFrameObject *frame)
{
    if (offsets_unchecked() && frame)
        offsets_check(frame);
}

/* With the calling thread's innermost frame, of which CPython then makes a frame object. */
static inline void offsets_check_current(void)
{
    if (offsets_unchecked())
        offsets_check_frame(py.PyEval_GetFrame());
}

/* ---------------------------------------------------------------- parts of the page */

/* Makes an offset in a struct of shared/ one in an object: see ob_base(). */
static inline uint16_t object_offset(size_t offset)
{
    return (uint16_t)(py.ob_base_offset + offset);
}

/* Whether an object has the attribute at this offset.  The attribute must be constant. */
bool has_attribute_at(PyObject *object, unsigned offset, const char *attribute);

/* Fills in the offsets of values: dicts, names of classes and functions, variables of frames.
 * frame_f_globals and frame_localsplus are 0 if these offsets are wrong for the frame.  object: its
 * PyFrameObject; frame: the frame as markers pass it. */
void offsets_fill_values(PyFrameObject *object, const void *frame, PyObject *code);

struct offsets_page;

/* Fills in the offsets of the interpreter's modules and of the GIL, by the calling thread's state;
 * those that are not found are 0.  False: not possible in a subinterpreter or at CPython's end. */
bool offsets_fill_interpreter(PyThreadState *state);

/* Fills in where the tasks of asyncio are, from 3.14 on, by the calling thread's state and its
 * interpreter, whose dict of modules the page has.  False: offsets that don't compare are 0. */
bool offsets_fill_tasks(struct offsets_page *page, const PyThreadState *state,
                        const PyInterpreterState *interpreter);

/* ---------------------------------------------------------------- TLS slot */

/* Finds CPython's thread-local variables.  Called once, under the dynamic linker's lock: a thread
 * with the GIL must not wait for that lock. */
void tls_slot_init(void);

/* The TLS slot: the distance in bytes from the thread pointer, the same in all threads, to the word
 * that PyGILState_GetThisThreadState() returns: the thread's state, with the GIL or without; NULL
 * in a thread that has none.  0: not found, for the reason *why.  The calling thread must have a
 * state. */
int32_t tls_slot_find(const char **why);

#endif
