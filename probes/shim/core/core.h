/*
 * Shared by the files of core/: module definitions, the beginning and end in the main interpreter,
 * forks, and the watcher.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cpython/symbols.h"

/* ---------------------------------------------------------------- module definitions (PEP 489) */

/* Has each interpreter that initialises this built-in module of CPython call start() at the end of
 * the initialisation.  module: what the module's PyInit function returned.  False: its definition
 * is unknown, or memory ran out.  GIL held, no exception in flight. */
bool module_add_exec(PyObject *module, int (*start)(PyObject *));

/* The result of a PyInit function of ours: the definition of an empty module, whose import calls
 * exec().  With the GIL of the interpreter that imports it. */
PyObject *module_create(int (*exec)(PyObject *));

/* ---------------------------------------------------------------- the main interpreter */

/* Starts the watcher in the main interpreter, and has atexit stop the watcher.  Does nothing if
 * called again.  GIL held; an exception in flight stays. */
void setup_main_interpreter(void);

/* For a CPython that runs already, or starts: has attach_interpreter() called soon, with the GIL of
 * the main interpreter.  Any thread, with or without the GIL. */
void attach_running_python(void);

/* Arms the calling interpreter; in the main one also calls setup_main_interpreter(), and starts the
 * watcher.  Does nothing if detach was requested meanwhile.  GIL held. */
void attach_interpreter(void);

/* Attaches again after stap-python detach, or where CPython runs without a watcher: the watcher
 * starts soon, as by attach_running_python().  False: as for detach_undo(), and there is a watcher,
 * or the shim may have none.  Any thread, with or without the GIL. */
bool setup_attach_again(void);

/* ---------------------------------------------------------------- fork */

/*
 * The watcher stops before a fork, and starts again in the parent and in the child.
 */

/* Whether the C library of this process is glibc.  No GIL. */
bool fork_supported(void);

/* Has the C library call us at each fork of the process.  False: failed.  Does nothing after it has
 * succeeded.  Must be called before any watcher starts, with or without the GIL. */
bool fork_register_libc(void);

/* Whether this thread is in os.fork() and must not start a watcher.  Then attach_interpreter() is
 * called soon after.  Any thread, with or without the GIL. */
bool fork_defers_attach(void);

/* Has CPython, 3.7 and later, call us at each fork by the calling interpreter.  GIL held. */
bool fork_register_python(void);

/* ---------------------------------------------------------------- the watcher's name */

/*
 * The name of the watcher's thread tells stap-python the state of the shim: the names are in
 * shared/offsets_page.h.  /proc/PID/task/TID/comm can be read without the right to trace the
 * process.
 *
 * All functions: on the watcher's thread, no GIL.
 */

enum watcher_state { WATCHER_IS_NEW, WATCHER_IS_ACTIVE, WATCHER_IS_FILTERED, WATCHER_DETACHES };

/* Sets the first name.  is_new: the shim was loaded into a running CPython. */
void watcher_name_first(bool is_new);

/* Sets the name for the state, and publishes whether an interpreter lacks a tool id.  Makes system
 * calls only if the name changes.  Keeps the name if this thread has another number of seccomp
 * filters than at the first watcher_name_safe(): a filter may forbid prctl(). */
void watcher_name_change(enum watcher_state state);

/* Called at each check for seccomp filters: notes whether an interpreter lacks a tool id and, at
 * the first call, how many filters this thread has, for which it reads a file. */
void watcher_name_safe(void);

/* ---------------------------------------------------------------- the watcher */

/*
 * The watcher: a thread that reads the semaphores every 50 ms, and has interpreters rearm when a
 * tracer attaches or detaches.  It runs while Python runs, but not while Python forks: from 3.12 on
 * CPython warns of a fork with threads.
 */

/* A watcher may run: the main interpreter lives, and atexit will call us.  Written by loader.c, GIL
 * held. */
extern atomic_bool watcher_allowed;

/* Whether a thread other than the main one forked this process.  The process must end when that
 * thread's function returns, if no other thread lives: a watcher would keep it alive.  Set by
 * fork.c in the child; reset by watcher_start_attaching() on that thread (stap-python attach). */
extern bool watcher_forbidden;

/* Starts the watcher, unless it runs, the shim is detached, watcher_allowed is false or
 * watcher_forbidden is true.  On a thread of the program, GIL held. */
void watcher_start(void);

/* Whether no watcher runs, or attaches, where one may.  Any thread. */
bool watcher_is_missing(void);

/* Starts a watcher in a CPython that runs already, or starts, unless another one attaches.  The
 * watcher has attach_interpreter() called soon, on a thread of the program, with the GIL of the
 * main interpreter.  Any thread, with or without the GIL. */
void watcher_start_attaching(void);

/* Stops the watcher and waits for its end.  Does not wait for a watcher that waits for the GIL:
 * that one ends when it gets the GIL, without a rearm.  Called before CPython forks, GIL held.
 * Whether a watcher of watcher_start_attaching() was stopped, which may not have had
 * attach_interpreter() called yet. */
bool watcher_stop_for_fork(void);

/* Stops the watcher and waits for its end, with the GIL released if the watcher waits for the GIL.
 * Does not wait for a watcher that sleeps, is idle or has detached: that one does not read the
 * interpreter again, and a seccomp filter may forbid to wait.  Called at exit, GIL held. */
void watcher_stop_at_exit(void);

/* Lets a child notice even a fork that the C library does not know of (_Fork(), clone()).  Called
 * once, before any watcher starts; no GIL. */
void watcher_detect_children(void);

/* In the child of a fork, where neither the watcher nor another thread exists: resets the watcher's
 * state.  notified: CPython was notified of the fork, or will be. */
void watcher_after_fork(bool notified);

#endif
