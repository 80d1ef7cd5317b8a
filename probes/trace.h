/*
 * Line and C-call events of CPython 3.6 to 3.11: trace and profile functions of C, one a thread.
 * Part of hook_frame, whose frame hook visits each thread.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TRACE_H
#define TRACE_H

#include "cpython.h"

/* The line and cfunction markers that are wanted, as bits.  Changed with the GIL held, by
 * trace_set() alone. */
extern unsigned trace_wanted;

/* Wants these markers from now on, on the calling thread and the main one at once and on the others
 * when they next call a Python function.  Where it can't be had in this CPython they stay off.  GIL
 * held, no exception in flight. */
void trace_set(unsigned wanted);

/* Puts the functions that are wanted onto the calling thread, in front of those of the program, if
 * they aren't there.  GIL held, no exception in flight. */
void trace_this_thread(PyThreadState *thread);

/* True while this thread sets a function: the audit event of that is our own doing. */
bool trace_setting(void);

#endif
