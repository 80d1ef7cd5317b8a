/*
 * The watcher: a thread that reads the semaphores twenty times a second, and has hooks set or taken
 * out when a tracer attaches or detaches.  It runs while Python runs, but not while Python forks:
 * from 3.12 on CPython warns of a fork with threads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WATCHER_H
#define WATCHER_H

#include "watcher_name.h"

#include <stdatomic.h>
#include <stdbool.h>

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
