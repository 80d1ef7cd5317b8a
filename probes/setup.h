/*
 * The shim's beginning and end in the main interpreter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SETUP_H
#define SETUP_H

#include <stdbool.h>

/* Starts the watcher in the main interpreter, and has atexit end it.  Called by the loader, GIL
 * held; an exception in flight stays.  Called again it does nothing. */
void setup_main_interpreter(void);

/* The same in a CPython that runs already: has attach_interpreter() called soon, with the GIL of
 * the main interpreter.  Called by the loader on any thread, with the GIL or without. */
void attach_running_python(void);

/* Begins with the calling interpreter, and if it is the main one calls setup_main_interpreter() and
 * starts the watcher; unless the shim was detached before a thread came to call it.  GIL held.
 * Defined by the loader. */
void attach_interpreter(void);

/* Attaches again after stap-python detach: the watcher starts soon, as with
 * attach_running_python().  False: the shim is not detached, or is just about to be.  Called by the
 * loader on any thread, with the GIL or without. */
bool setup_attach_again(void);

#endif
