/*
 * The calls that are open in each thread, with their times: of functions whose times are counted
 * (tally.c).  Each thread has its own, which no other one touches.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OPEN_CALLS_H
#define OPEN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
