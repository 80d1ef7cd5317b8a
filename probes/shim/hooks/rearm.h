/*
 * Rearms interpreters: each arms or disarms itself, on a thread of the program.  The rearm lock
 * keeps forks and rearming apart.
 *
 * All functions: on the watcher's thread, unless their comment says otherwise; the GIL as they say.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOOKS_REARM_H
#define HOOKS_REARM_H

#include <stdbool.h>

/* ---------------------------------------------------------------- the rearm lock */

/* Up to 3.11: whether no thread holds the GIL; true if unknown.  Any thread, no lock. */
bool gil_is_free(void);

/* Takes the lock if it is free; the watcher never waits for it.  No GIL. */
bool rearm_trylock(void);

/* Takes the main interpreter's GIL, with the lock held; rearm_release() releases both.  False: a
 * thread is forking, or memory ran out. */
bool rearm_take_gil(void);
void rearm_release(void);

/* Releases the lock where the GIL was not taken. */
void rearm_unlock(void);

/* Waits, with the GIL released, until the watcher does not hold the lock.  At exit, GIL held. */
void rearm_wait_idle(void);

/* Keeps the watcher from rearming until rearm_unlock_after_fork().  If the watcher held the GIL or
 * the lock of the pending calls, that would stay locked in the child, which has no watcher.  Up to
 * 3.11, the watcher must not wait for the GIL, either.  A thread that releases the GIL may wait
 * until the waiter has taken it (Python/ceval_gil.h: drop_gil()).
 *
 * notified: CPython was notified of the fork and reinitialises both, so the rearm lock is only
 * tried.  Not notified: waits for the lock and, if the watcher may be waiting for the GIL, releases
 * the GIL meanwhile.  Gives up if a third thread has the GIL or could take it meanwhile.  That
 * thread might wait, with the GIL, for a lock that is held for the fork.  On the thread that forks,
 * with the GIL or without. */
void rearm_lock_for_fork(bool notified);
void rearm_unlock_after_fork(void);

/* In the child of a fork, which has no other thread. */
void rearm_lock_reset(void);

/* ---------------------------------------------------------------- rearming */

/* Requests a rearm of each interpreter that is armed for other markers: the first thread that runs
 * Python there arms it.  look: 3.12 and later, of the others, too, as the program may have taken
 * hooks out.  Up to 3.11, each call has the watcher check the main interpreter's hooks.  Runs no
 * code of the program: a fork waits for the watcher, while fork handlers of the program may hold
 * locks.
 *
 * 3.12 and later: by a pending call, which any thread of the interpreter makes; no GIL.  Up to
 * 3.11, with the main interpreter's GIL: sets the frame hook at once, for all threads, also those
 * that wait in C.  The frame hook then arms the interpreter, when any thread next calls a Python
 * function.  So does a profile function, at the next call of a C function (not in 3.6), and a
 * pending call of the main thread (not in 3.8 and 3.11). */
void rearm_all(unsigned enabled, bool look);

/* Up to 3.11, before rearm_all(): forces the rearm of the main interpreter without the GIL, if
 * there is no other interpreter.  False: not possible. */
bool rearm_main_nogil(void);

/* Whether a thread of the program has rearmed the interpreter since rearm_main_nogil().  No GIL. */
bool rearm_main_nogil_done(void);

/* Whether all interpreters are armed for these markers.  No GIL; takes the list's lock. */
bool rearm_all_done(unsigned enabled);

/* Whether no interpreter has a hook of the shim, is arming, or is forced to rearm.  No GIL; takes
 * the list's lock. */
bool ask_is_clear(void);

/* Has function() called soon, by a thread of the main interpreter in a CPython that already runs;
 * function() is to call arm_interpreter_started().  Threads and GIL are as for rearm_all().  False:
 * try again. */
bool rearm_attach(void (*function)(void));

/* Has function() called when a thread of the main interpreter next calls a Python function;
 * function() may call rearm_call_soon() again.  NULL: cancels the call.  function() is a parameter,
 * as it is a function of core/, which this folder must not include.  GIL held, or in the child of a
 * fork by C, which has no other thread. */
void rearm_call_soon(void (*function)(void));

/* The main interpreter ends, or begins: nothing is armed from then on, or again.  GIL held. */
void rearm_stop(void);
void rearm_start(void);

/* Up to 3.11, if the shim was loaded into a running CPython: rearms also interpreters that it has
 * not seen start.  Any thread, GIL held. */
void rearm_include_unseen(void);

/* 3.12 and later: whether CPython makes no pending calls any more, as in some forked children.  Any
 * thread. */
bool rearm_pending_calls_stuck(void);

/* Whether rearm_all() and rearm_attach() need the main interpreter's GIL: up to 3.11, and if
 * pending calls are stuck.  Any thread. */
bool rearm_needs_gil(void);

/* Arms the calling interpreter if its rearm is forced.  False: the hook must do nothing, as none of
 * its markers is armed there, or arming has not finished.  For the frame hook, and for profile
 * functions while rearm_is_requested(): any thread, GIL held; an exception in flight stays. */
bool rearm_current(void);

/* In the child of a fork, which has no other thread. */
void rearm_after_fork(void);

#endif
