/*
 * Asking: has the interpreters of the process arm themselves (arm.h), on threads of the program's.
 * Called by the watcher when a tracer attaches or detaches, and where a fork or a start of Python
 * has something called soon.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ASK_H
#define ASK_H

#include <stdbool.h>

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
