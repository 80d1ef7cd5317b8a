/*
 * Counts the calls of each function, and their time, within the process: for tracers that ask for
 * sums, ten times a second, and not for each event (function__count, function__summary).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TALLY_H
#define TALLY_H

#include "code.h"
#include "wanted.h"

/* The markers by which the sums are told (thread__runs: by each thread that counts, itself), and
 * those for which starts and ends of Python frames, and calls of C functions, are to be counted.
 * The own time of a C function is without that of Python functions which it calls. */
enum {
    TALLY_TIMES = MARKER_BIT(function__summary) | MARKER_BIT(cfunction__summary),
    TALLY_CALLS = MARKER_BIT(function__count) | MARKER_BIT(thread__runs) | TALLY_TIMES,
    TALLY_C_CALLS = MARKER_BIT(cfunction__count) | MARKER_BIT(cfunction__summary),
    TALLY_MARKERS = TALLY_CALLS | TALLY_C_CALLS,
};

/* Those of them that are wanted. */
extern atomic_uint tally_wanted __attribute__((visibility("hidden"))); /* read without the GOT */

/* Called by the hooks when they are set: these markers are wanted in the process now.  GIL held. */
void tally_wants(unsigned wanted);

static inline bool tally_counts(unsigned what)
{
    return atomic_load_explicit(&tally_wanted, memory_order_relaxed) & what;
}

/* The sums of one function: of one code object, or of a function in C in one interpreter. */
struct tally;

/* That of a record; NULL: there is none yet.  GIL held. */
static inline struct tally *tally_in(const struct code *record)
{
    return (struct tally *)record->sums; /* its first member */
}

/* That of a record, made if need be; globals: with which its code runs, or NULL.  NULL if memory
 * ran out.  GIL held, no exception in flight. */
struct tally *tally_of(struct code *record, PyObject *globals);

/* That of a callable for which callable_of_c() holds, made if need be.  NULL: it has none.  GIL
 * held, no exception in flight. */
struct tally *tally_of_c(PyObject *callable);

/* A call of the function begins on the calling thread, or a frame of it resumes; it returns, yields
 * or is left by an exception.  The end is that of the innermost such call; none, if it began before
 * it was counted.  GIL held; an exception in flight stays. */
void tally_begin(struct tally *tally);
void tally_end(struct tally *tally);

/* Fires the sums of what was counted since the last time.  False: another thread is at it.  Any
 * thread, no GIL. */
bool tally_tell(void);

/* The same ten times a second, while any are wanted.  Called twenty times a second by the watcher;
 * no GIL. */
void tally_watch(unsigned wanted);

/* In the child of a fork, in which no other thread is: what was counted is the parent's. */
void tally_forked(void);

#endif
