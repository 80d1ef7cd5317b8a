/*
 * Counts the calls of each function, and their time, within the process, and fires the sums ten
 * times a second (function__count, function__summary and the like): no marker fires for each call.
 *
 * All functions: GIL held, unless stated otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SUMS_SUMS_H
#define SUMS_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "cpython/code.h"
#include "markers/enabled.h"

/* ---------------------------------------------------------------- sums */

/* The markers of sums.  SUMS_TIMES: those for which times are measured.  SUMS_CALLS: those for
 * which starts of Python frames are counted.  SUMS_C_CALLS: those for which calls of C functions
 * are counted.  The own time of a C function excludes Python functions that it calls, so
 * cfunction__summary needs Python frames, too.  The thread that counts fires thread__runs; a flush
 * fires the others. */
enum {
    SUMS_TIMES = MARKER_BIT(function__summary) | MARKER_BIT(cfunction__summary),
    SUMS_CALLS = MARKER_BIT(function__count) | MARKER_BIT(thread__runs) | SUMS_TIMES,
    SUMS_C_CALLS = MARKER_BIT(cfunction__count) | MARKER_BIT(cfunction__summary),
    SUMS_MARKERS = SUMS_CALLS | SUMS_C_CALLS,
};

/* Those of SUMS_MARKERS that are enabled. */
extern atomic_uint sums_enabled_word
    __attribute__((visibility("hidden"))); /* read without the GOT */

/* Called by the hooks when they are set.  These markers are enabled in the process now. */
void sums_set_enabled(unsigned enabled);

static inline bool sums_enabled(unsigned what)
{
    return atomic_load_explicit(&sums_enabled_word, memory_order_relaxed) & what;
}

/* The sums of one function: of one code object, or of a C function in one interpreter. */
struct function_sums;

/* The sums of a record; NULL: there are none yet. */
static inline struct function_sums *sums_in(const struct code_record *record)
{
    return (struct function_sums *)record->sums; /* which is the first member */
}

/* The sums of a record, made if need be.  globals: those with which the code runs, or NULL.  NULL
 * if memory ran out.  No exception in flight. */
struct function_sums *sums_of_code(struct code_record *record, PyObject *globals);

/* The sums of a callable for which callable_is_builtin() holds, made if need be.  NULL: its name is
 * not that of its PyMethodDef, or the PyMethodDef is unknown, or memory ran out.  No exception in
 * flight. */
struct function_sums *sums_of_cfunction(PyObject *callable);

/* begin: a call of the function begins on the calling thread, or a frame of the function resumes.
 * end: the innermost such call returns, yields or is left by an exception.  An end whose begin was
 * not counted is ignored.  An exception in flight stays. */
void sums_call_begin(struct function_sums *sums);
void sums_call_end(struct function_sums *sums);

/* Fires the growth of all sums since the last flush.  False: another thread is flushing.  Needs no
 * GIL. */
bool sums_flush(void);

/* Flushes at every second call, while these markers include one of sums.  The watcher calls it
 * every 50 ms, without the GIL. */
void sums_flush_tick(unsigned enabled);

/* In the child of a fork, where no other thread exists: drops the parent's counts. */
void sums_after_fork(void);

/* ---------------------------------------------------------------- open calls */

/*
 * The open calls of functions whose times are counted.  Each thread has its own, which no other
 * thread reads or writes.
 */

/* A call of the function begins on the calling thread.  The address is only compared. */
void open_calls_begin(const void *function);

/* The time of a call with and without its callees, in ticks. */
struct ended_call {
    uint64_t time, own;
    bool outermost; /* no other call of the function is open in this thread */
};

/* Ends the innermost open call of the function.  is_c: of a C function, whose own time also counts
 * as own time of its caller.  False: the begin of the call was not counted. */
bool open_calls_end(const void *function, bool is_c, struct ended_call *ended);

/* Drops the open calls of all threads: their ends are ignored.  Any thread, no GIL. */
void open_calls_invalidate(void);

/* In the child of a fork, where no other thread exists: reuses the memory of the others. */
void open_calls_after_fork(void);

/* ---------------------------------------------------------------- exit flush */

/*
 * Flushes before the process executes another program, or ends at once, where CPython calls no
 * atexit function: os.execv(), os.execve(), os._exit(), by which workers of multiprocessing end.
 */

/* Finds these functions.  Called by core/loader.c; no exception in flight. */
void exit_flush_find(void);

/* Puts functions of ours in front of them, or removes ours.  Runs no code of the program. */
void exit_flush_set(bool enabled);

#endif
