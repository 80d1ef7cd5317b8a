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
void arm_interpreter_started(bool is_new);

/* Brings the calling interpreter's hooks to what is wanted, on a thread of the program's that runs
 * Python in it.  GIL held; an exception in flight stays.  False: something was not ready, the
 * interpreter is to be asked again. */
bool arm_current(void);

/* The same for the quiet hooks alone.  On the watcher's thread, with the main interpreter's GIL. */
bool arm_current_from_watcher(void);

/* In the child of a fork, in which no other thread is. */
void arm_after_fork(void);

#endif
