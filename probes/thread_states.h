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
 * not there, and they lead to stacks that are others' now: it is not walked, until CPython was. */
void thread_states_forked(bool told);

#endif
