/*
 * The thread states of an interpreter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef THREAD_STATES_H
#define THREAD_STATES_H

#include "cpython.h"

enum walk {
    WALK_DONE,
    WALK_LATER, /* CPython is changing the list: try again */
    WALK_NEVER, /* the list's lock is not known in this CPython, or the list is stale */
};

/* Calls visit() for each thread state of the interpreter, the newest first, under the lock with
 * which CPython changes the list.  visit() may read and write memory, and calls nothing of CPython.
 * GIL held. */
enum walk tstate_for_each(PyInterpreterState *interpreter, void (*visit)(PyThreadState *, void *),
                          void *data);

/* Whether all interpreters together have no more thread states than that; false where that can't be
 * said, as in 3.6.  GIL held. */
bool tstate_count_at_most(int number);

/* In the child of a fork that CPython was not told of (PyOS_AfterFork_Child()), its list has the
 * states of threads that are not there, and they lead to stacks that are others' now: until it is
 * told, that list is not to be walked, not by CPython either.  told: it is.  Called in the child;
 * no other thread of the program is there. */
void tstate_list_after_fork(bool told);

/* So it is.  GIL held. */
bool tstate_list_is_stale(void);

/* A thread forks, from the first of our handlers on; and it has done so, in the parent, or in the
 * child, where no other thread is. */
void fork_in_progress_begin(void);
void fork_in_progress_end(void);
void fork_in_progress_clear(void);

/* Whether one does. */
bool fork_in_progress(void);

/* Whether the world may be stopped, which is free-threaded builds' alone.  Not where CPython would
 * wait for threads that are not there.  Nor while a thread forks by C: it would stop in the child,
 * for a thread that is not there to start it again.  GIL held. */
bool can_stop_the_world(void);

#endif
