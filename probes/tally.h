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

/* The sums of one function: of one code object. */
struct tally;

/* What is to be counted: the starts of frames, and how long they run. */
static inline bool tally_counts(void)
{
    return MARKER_ON(function__count) || MARKER_ON(function__summary);
}

static inline bool tally_times(void)
{
    return MARKER_ON(function__summary);
}

/* That of a record, made if need be; globals: with which its code runs, or NULL.  NULL if memory
 * ran out.  GIL held, no exception in flight. */
struct tally *tally_of(struct code *record, PyObject *globals);

/* A frame of the function starts or resumes, and returns, yields or is left by an exception, on the
 * calling thread.  Ends the innermost call of that function; none, if the frame began before it was
 * counted.  GIL held; an exception in flight stays. */
void tally_begin(struct tally *tally);
void tally_end(struct tally *tally);

/* Fires the sums of what was counted since the last time, unless another thread is at it.  Any
 * thread, no GIL. */
void tally_tell(void);

/* The same ten times a second, while any are wanted.  Called twenty times a second by the watcher;
 * no GIL. */
void tally_watch(unsigned wanted);

/* In the child of a fork, in which no other thread is: what was counted is the parent's. */
void tally_forked(void);

#endif
