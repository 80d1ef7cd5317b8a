/*
 * The lock under which the watcher asks interpreters to change their hooks, and the GIL for that,
 * which asking needs up to 3.11 (rearm_needs_gil()).  It keeps forks apart from asking.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ASK_LOCK_H
#define ASK_LOCK_H

#include <stdbool.h>

/* Whether no thread has the GIL, up to 3.11; true if that is not known.  Any thread, no lock. */
bool gil_is_free(void);

/* Takes the lock, if it is free.  The watcher never waits for it.  Called on its thread, no GIL. */
bool rearm_trylock(void);

/* Takes the GIL of the main interpreter, with the lock held; rearm_release() releases both.  False:
 * not now, as a thread forks or memory ran out.  Called on the watcher's thread. */
bool rearm_take_gil(void);
void rearm_release(void);

/* Releases the lock, where the GIL was not taken.  Called on the watcher's thread. */
void rearm_unlock(void);

/* Waits until the watcher does not ask, with the GIL released.  Called at exit, GIL held. */
void rearm_wait_idle(void);

/* Takes the lock for a fork, until rearm_unlock_after_fork().  In the child the watcher is not
 * there, and what it held would be held for good: the GIL, which CPython up to 3.11 also hands over
 * to a thread that waits for it, until that takes it; and the lock of the pending calls.  told:
 * CPython knows of the fork, and makes these anew.  The lock is not taken if this thread has the
 * GIL, for which the watcher waits, and others could run: one of them may wait, with the GIL, for a
 * lock that is held for the fork.  Called by fork.c on the thread that forks, with the GIL or
 * without.
 */
void rearm_lock_for_fork(bool told);
void rearm_unlock_after_fork(void);

/* In the child of a fork, where no other thread is. */
void rearm_lock_reset(void);

#endif
