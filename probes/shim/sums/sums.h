/*
 * Counts the calls of each function, and their time, within the process: for tracers that ask for
 * sums, ten times a second, and not for each event (function__count, function__summary).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SUMS_SUMS_H
#define SUMS_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "cpython/code.h"
#include "markers/enabled.h"

/* ---------------------------------------------------------------- tally */

/* The markers by which the sums are told (thread__runs: by each thread that counts, itself), and
 * those for which starts and ends of Python frames, and calls of C functions, are to be counted.
 * The own time of a C function is without that of Python functions which it calls. */
enum {
    SUMS_TIMES = MARKER_BIT(function__summary) | MARKER_BIT(cfunction__summary),
    SUMS_CALLS = MARKER_BIT(function__count) | MARKER_BIT(thread__runs) | SUMS_TIMES,
    SUMS_C_CALLS = MARKER_BIT(cfunction__count) | MARKER_BIT(cfunction__summary),
    SUMS_MARKERS = SUMS_CALLS | SUMS_C_CALLS,
};

/* Those of them that are wanted. */
extern atomic_uint sums_enabled_word
    __attribute__((visibility("hidden"))); /* read without the GOT */

/* Called by the hooks when they are set: these markers are wanted in the process now.  GIL held. */
void sums_set_enabled(unsigned wanted);

static inline bool sums_enabled(unsigned what)
{
    return atomic_load_explicit(&sums_enabled_word, memory_order_relaxed) & what;
}

/* The sums of one function: of one code object, or of a function in C in one interpreter. */
struct function_sums;

/* That of a record; NULL: there is none yet.  GIL held. */
static inline struct function_sums *tally_in(const struct code_record *record)
{
    return (struct function_sums *)record->sums; /* its first member */
}

/* That of a record, made if need be; globals: with which its code runs, or NULL.  NULL if memory
 * ran out.  GIL held, no exception in flight. */
struct function_sums *sums_of_code(struct code_record *record, PyObject *globals);

/* That of a callable for which callable_is_builtin() holds, made if need be.  NULL: it has none.
 * GIL held, no exception in flight. */
struct function_sums *sums_of_cfunction(PyObject *callable);

/* A call of the function begins on the calling thread, or a frame of it resumes; it returns, yields
 * or is left by an exception.  The end is that of the innermost such call; none, if it began before
 * it was counted.  GIL held; an exception in flight stays. */
void sums_call_begin(struct function_sums *tally);
void sums_call_end(struct function_sums *tally);

/* Fires the sums of what was counted since the last time.  False: another thread is at it.  Any
 * thread, no GIL. */
bool sums_flush(void);

/* The same ten times a second, while any are wanted.  Called twenty times a second by the watcher;
 * no GIL. */
void sums_flush_tick(unsigned wanted);

/* In the child of a fork, in which no other thread is: what was counted is the parent's. */
void sums_after_fork(void);

/* ---------------------------------------------------------------- open calls */

/*
 * The calls that are open in each thread, with their times: of functions whose times are counted
 * (tally.c).  Each thread has its own, which no other one touches.
 */

/* A call of the function begins on the calling thread.  The address is only compared. */
void open_calls_begin(const void *function);

/* Its time, and that without what it called, in ticks. */
struct ended_call {
    uint64_t time, own;
    bool outermost; /* no other call of it is open in this thread */
};

/* The innermost call of it ends.  is_c: the calls in it count for its caller as well.  False: it
 * began before it was counted. */
bool open_calls_end(const void *function, bool is_c, struct ended_call *ended);

/* What is open now, in all threads, will not be seen to end.  Any thread. */
void open_calls_invalidate(void);

/* In the child of a fork, in which no other thread is: what they had is used again. */
void open_calls_after_fork(void);

/* ---------------------------------------------------------------- parting */

/*
 * Has what was counted told before the process executes another program, or ends at once: where no
 * atexit function is called (os._exit(), as a worker of multiprocessing ends; os.execv(),
 * os.execve()).
 */

/* Finds these functions.  Called by setup.c on a thread that runs Python, GIL held, no exception in
 * flight. */
void exit_flush_find(void);

/* Puts ours before them, or takes them away.  Any thread, GIL held; runs no code of the program. */
void exit_flush_set(bool wanted);

#endif
