/*
 * Module definitions (PEP 489).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cpython/symbols.h"

/* ---------------------------------------------------------------- module */

/* Has each interpreter that initialises a built-in module of CPython call start() at the end of it.
 * module is what the module's PyInit function returned.  False: its definition is of an unknown
 * kind.  Called by the loader; GIL held, no exception in flight. */
bool module_add_exec(PyObject *module, int (*start)(PyObject *));

/* What PyInit_python_stap() is to return: an empty module, which has exec() called when it is
 * imported.  Called by the loader, with the GIL of the interpreter that imports it. */
PyObject *module_create(int (*exec)(PyObject *));

/* ---------------------------------------------------------------- setup */

/*
 * The shim's beginning and end in the main interpreter.
 */

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

/* ---------------------------------------------------------------- fork */

/*
 * Forks: the watcher ends before them, and starts again in the parent and in the child.
 */

/* Whether this process has the C library that the shim is made for, which is glibc.  Called by the
 * loader, as soon as it has found CPython; no GIL. */
bool fork_supported(void);

/* Has the C library call us at each fork of the process.  Called by setup.c before any watcher
 * starts, with the GIL or without; called again it does nothing. */
bool fork_register_libc(void);

/* The same for CPython, 3.7 and later, in the calling interpreter.  Called by setup.c; GIL held. */
bool fork_register_python(void);

/* ---------------------------------------------------------------- watcher name */

/*
 * The watcher's name, in /proc/PID/task/TID/comm, which may be read without the right to trace the
 * process: it says what the shim can do in it.  stap-python reads it.
 */

enum watcher_state { WATCHER_IS_NEW, WATCHER_IS_ACTIVE, WATCHER_IS_FILTERED, WATCHER_DETACHES };

/* Gives the calling thread, the watcher, its first name. */
void watcher_name_first(bool is_new);

/* Gives it the name of another state, if that is another one, and notes in the page whether an id
 * is lacking.  Only then it makes system calls, of which prctl() only if this thread has no more
 * filters than at watcher_name_safe().  No GIL. */
void watcher_name_change(enum watcher_state state);

/* Called at each look, of which the first is to remember.  It looks at a file. */
void watcher_name_safe(void);

/* ---------------------------------------------------------------- watcher */

/*
 * The watcher: a thread that reads the semaphores twenty times a second, and has hooks set or taken
 * out when a tracer attaches or detaches.  It runs while Python runs, but not while Python forks:
 * from 3.12 on CPython warns of a fork with threads.
 */

/* The main interpreter lives, and atexit will call us: a watcher may run.  Written by setup.c, GIL
 * held. */
extern atomic_bool watcher_allowed;

/* This process was forked by a thread other than the main one.  When that thread's function returns
 * the process ends, unless another thread lives: ours must not be it.  Written by fork.c, in the
 * child, and by watcher_start_attaching(), by which stap-python attach makes it active there. */
extern bool watcher_forbidden;

/* Starts the watcher, unless it runs, watcher_allowed is false or watcher_forbidden is true. Called
 * by setup.c and fork.c, on a thread of the program's, GIL held. */
void watcher_start(void);

/* Starts it in a CPython that runs already: it has attach_interpreter() called soon, on a thread of
 * the program's with the GIL of the main interpreter.  Called by setup.c on any thread, with the
 * GIL or without. */
void watcher_start_attaching(void);

/* Ends it and waits for that, unless it waits for the GIL: then it ends when it has that, and asks
 * for nothing.  Called by fork.c before CPython forks, GIL held. */
void watcher_stop_for_fork(void);

/* Ends it and waits for that, with the GIL released if it waits for the GIL; lets one that sleeps
 * do so: it does not look at the interpreter again.  Called by setup.c at exit, GIL held. */
void watcher_stop_at_exit(void);

/* Lets a child know itself for one even if the C library does not know of the fork.  Called by
 * fork.c once, before any watcher; no lock, no GIL. */
void watcher_detect_children(void);

/* In the child of a fork, where the thread is not: forgets it.  told: CPython knows of the fork, or
 * will.  Called by fork.c; no other thread is there. */
void watcher_after_fork(bool told);

#endif
