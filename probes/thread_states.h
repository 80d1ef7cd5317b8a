/*
 * The thread states of an interpreter, up to CPython 3.11.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef THREAD_STATES_H
#define THREAD_STATES_H

#include "cpython.h"

enum walk {
    WALKED,
    WALK_LATER, /* CPython is changing the list: try again */
    WALK_NEVER, /* the list's lock is not to be had in this CPython */
};

/* Calls visit() for each thread state of the interpreter, the newest first, under the lock with
 * which CPython changes the list.  visit() may read and write memory, and calls nothing of CPython.
 * GIL held. */
enum walk thread_states_walk(PyInterpreterState *interpreter,
                             void (*visit)(PyThreadState *, void *), void *data);

/* In the child of a fork of which CPython was not told, its list has the states of threads that are
 * not there, and they lead to stacks that are others' now: until it is told, that list is not to be
 * walked, not by CPython either.  Called in the child; no other thread of the program is there. */
void thread_states_forked(bool told);
bool thread_states_are_stale(void);

#endif
