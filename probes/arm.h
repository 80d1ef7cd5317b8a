/*
 * Arming: puts hooks into interpreters while their markers are wanted, and takes them out after.
 * Called by the loader when an interpreter starts, and by the watcher when a tracer attaches or
 * detaches.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARM_H
#define ARM_H

#include <stdbool.h>

/* Begins with the calling interpreter, unless that has been done: brings its hooks to what is
 * wanted.  is_new: it has just been made, and what is known of it is of one before it.  Called by
 * the loader, on the thread that starts the interpreter or first runs Python in it.  GIL held; an
 * exception in flight stays. */
void arm_start(bool is_new);

/* Brings the calling interpreter's hooks to what is wanted, on a thread of the program's that runs
 * Python in it.  GIL held; an exception in flight stays.  False: something was not ready, the
 * interpreter is to be asked again. */
bool arm_here(void);

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
void arm_ask(unsigned wanted, bool look);

/* Whether all interpreters have done so.  Called on the watcher's thread; no GIL, takes the list's
 * lock. */
bool arm_done(unsigned wanted);

/* Has a thread of the main interpreter's call this soon, in a CPython that runs already; it is to
 * call arm_start().  As arm_ask() for threads and GIL.  False: try again. */
bool arm_attach(void (*meet)(void));

/* The same when a thread of the main interpreter next calls a Python function; meet() may call this
 * again.  NULL: no longer.  GIL held, or in the child of a fork by C, where no other thread is. */
void arm_meet(void (*meet)(void));

/* The main interpreter ends, or begins: nothing is armed from then on, or again.  On the main
 * thread, GIL held. */
void arm_close(void);
void arm_open(void);

/* The shim was loaded into a running CPython: up to 3.11, interpreters that were there before, and
 * those that start later, are to be knocked at, too.  GIL held. */
void arm_meet_others(void);

/* Whether CPython makes no pending calls any more: 3.12 and later, in some children.  Any thread,
 * no GIL. */
bool arm_calls_stuck(void);

/* Whether arm_ask() and arm_attach() need the GIL of the main interpreter: up to 3.11, and if calls
 * are stuck.  Any thread, no GIL. */
bool arm_needs_gil(void);

/* In the child of a fork, in which no other thread is. */
void arm_forked(void);

#endif
