/*
 * The lock under which the watcher asks interpreters to change their hooks, and the GIL for that,
 * which asking needs up to 3.11 (rearm_needs_gil()).  It keeps forks apart from asking.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOOKS_REARM_H
#define HOOKS_REARM_H

#include <stdbool.h>

/* ---------------------------------------------------------------- ask lock */

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

/* ---------------------------------------------------------------- ask */

/*
 * Asking: has the interpreters of the process arm themselves (arm.h), on threads of the program's.
 * Called by the watcher when a tracer attaches or detaches, and where a fork or a start of Python
 * has something called soon.
 */

/* Asks the interpreters of the process to bring their hooks to what is wanted: each does so itself,
 * on the first thread that runs Python there.  look: those too that have done it, as the program
 * may have taken hooks out.  Called on the watcher's thread, where no code of the program may run:
 * a fork waits for it, with whatever locks the program's own fork handlers hold.
 *
 * 3.12 and later: without the GIL, by a pending call, which any thread of the interpreter makes. Up
 * to 3.11 with the main interpreter's GIL: the frame hook is set at once, for all threads, also
 * those that wait in C.  What remains is done by the frame hook, which any thread calls when it
 * next calls a function; by a profile function (not on 3.6), called at the next call of a C
 * function; and (not on 3.8 and 3.11) by a pending call of the main thread. */
void rearm_all(unsigned wanted, bool look);

/* Up to 3.11, before rearm_all(): has the threads of the main interpreter do so without the
 * GIL, if there is no other one: the first that calls a Python function.  False: that can't be.
 * Called as rearm_all() is. */
bool rearm_main_nogil(void);

/* After that: whether a thread has done it since.  Called on the watcher's thread, no GIL. */
bool rearm_main_nogil_done(void);

/* Whether all interpreters have done so.  Called on the watcher's thread; no GIL, takes the list's
 * lock. */
bool rearm_all_done(unsigned wanted);

/* Whether no interpreter has a hook of ours, or is about to bring its hooks to what is wanted.
 * Called as rearm_all_done() is. */
bool ask_is_clear(void);

/* Has a thread of the main interpreter's call this soon, in a CPython that runs already; it is to
 * call arm_interpreter_started().  As rearm_all() for threads and GIL.  False: try again. */
bool rearm_attach(void (*meet)(void));

/* The same when a thread of the main interpreter next calls a Python function; meet() may call this
 * again.  NULL: no longer.  GIL held, or in the child of a fork by C, where no other thread is. */
void rearm_call_soon(void (*meet)(void));

/* The main interpreter ends, or begins: nothing is armed from then on, or again.  On the main
 * thread, GIL held. */
void rearm_stop(void);
void rearm_start(void);

/* The shim was loaded into a running CPython: up to 3.11, interpreters that were there before, and
 * those that start later, are to be knocked at, too.  GIL held. */
void rearm_include_unseen(void);

/* Whether CPython makes no pending calls any more: 3.12 and later, in some children.  Any thread,
 * no GIL. */
bool rearm_pending_calls_stuck(void);

/* Whether rearm_all() and rearm_attach() need the GIL of the main interpreter: up to 3.11, and
 * if calls are stuck.  Any thread, no GIL. */
bool rearm_needs_gil(void);

/* Arms the calling interpreter if it was knocked at.  False: its markers can't be had, and the hook
 * is to do nothing.  Called by the frame hook, and by profile functions, while rearm_requests is
 * not 0.  GIL held; an exception in flight stays. */
bool rearm_current(void);

/* In the child of a fork, in which no other thread is. */
void rearm_after_fork(void);

#endif
