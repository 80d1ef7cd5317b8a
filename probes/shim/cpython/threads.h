/*
 * Thread states, forks in progress, and what a free-threaded build needs: locks in the GIL's place
 * and stopping the world.  GIL held in all functions, unless a declaration says otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_THREADS_H
#define CPYTHON_THREADS_H

#include <stdatomic.h>

#include "cpython/symbols.h"
#include "os/thread.h"

/* ---------------------------------------------------------------- thread states */

/* PyThreadState_New(), with or without the GIL.  NULL: memory ran out. */
PyThreadState *tstate_new(PyInterpreterState *interpreter);

enum walk {
    WALK_DONE,
    WALK_LATER, /* the list's lock is in use: try again */
    WALK_NEVER, /* the list's lock is unknown in this CPython, or the list is stale */
};

/* Calls visit() for each thread state of the interpreter, the newest first, under the lock with
 * which CPython changes the list (HEAD_LOCK).  visit() must not call CPython's functions. */
enum walk tstate_for_each(PyInterpreterState *interpreter, void (*visit)(PyThreadState *, void *),
                          void *data);

/* Whether all interpreters together have at most that many thread states.  False if the number is
 * unknown: in 3.6 and from 3.12 on, if the list's lock is in use, or if the list is stale. */
bool tstate_count_at_most(int number);

/* Called in the child of a fork, which has no other thread of the program.  notified: CPython was
 * notified of the fork (PyOS_AfterFork_Child()).  If not, its list is stale: it has the states of
 * threads that do not exist here, which point to stacks in use by others.  Until CPython is
 * notified, the list must not be walked, neither by the shim nor by CPython. */
void tstate_list_after_fork(bool notified);

bool tstate_list_is_stale(void);

/* ---------------------------------------------------------------- forks in progress */

/* begin: called by the thread that forks, in the first of the shim's handlers.  end: in the parent.
 * clear: in the child, which has no other thread.  With or without the GIL. */
void fork_in_progress_begin(void);
void fork_in_progress_end(void);
void fork_in_progress_clear(void);

/* Any thread, with or without the GIL. */
bool fork_in_progress(void);

/* ---------------------------------------------------------------- free-threaded builds */

/* Whether CPython may be made to stop the world; always true in builds with a GIL.  False if the
 * list of thread states is stale: CPython would wait for threads that do not exist.  False while a
 * thread forks: a child that C code forks would begin with a stopped world, and no thread would
 * start it again. */
bool can_stop_the_world(void);

/* In a free-threaded build, these locks protect data that the GIL protects in other builds.  In a
 * build with a GIL they do nothing.
 *
 * Only threads that are attached to their interpreter may take them.  A free lock is never handed
 * over to a waiter, as a PyMutex may be: when CPython ends, a detached thread never attaches again
 * (Python/ceval_gil.c: PyThread_hang_thread()), and a lock handed over to it would stay locked.
 *
 * A lock is not recursive.  In the child of a fork it must be set to {0}. */
struct nogil_lock {
    atomic_uint taken;
};

/* How long a thread waits before it tries again: the lock is nearly always free sooner. */
enum { NOGIL_WAIT_US = 50 };

static inline bool nogil_try_fails(struct nogil_lock *lock)
{
    return atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire);
}

/* Waits until the lock may be free; errno stays. */
static inline void nogil_wait(struct nogil_lock *lock)
{
    int error = errno;
    futex_wait_us(&lock->taken, 1, NOGIL_WAIT_US);
    errno = error;
}

/* Takes a lock that is held only for a moment.  Its holder must not call functions in which CPython
 * may detach or stop the thread. */
static inline void nogil_lock(struct nogil_lock *lock)
{
    while (py.free_threaded && nogil_try_fails(lock))
        nogil_wait(lock);
}

/* Takes a lock whose holder may stop the world, or wait for a thread that does.  So a thread that
 * waits for the lock is detached meanwhile. */
static inline void nogil_lock_detached(struct nogil_lock *lock)
{
    while (py.free_threaded && nogil_try_fails(lock)) {
        PyThreadState *state = py.PyEval_SaveThread();
        nogil_wait(lock);
        py.PyEval_RestoreThread(state);
    }
}

static inline void nogil_unlock(struct nogil_lock *lock)
{
    if (py.free_threaded)
        atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

/* Takes the object's own lock.  Until nogil_unlock_object(), no other thread is in an operation of
 * CPython's that takes this lock. */
static inline void nogil_lock_object(struct PyCriticalSection *section, PyObject *object)
{
    if (py.free_threaded)
        py.PyCriticalSection_Begin(section, object);
}

static inline void nogil_unlock_object(struct PyCriticalSection *section)
{
    if (py.free_threaded)
        py.PyCriticalSection_End(section);
}

/* Calls act() while no other thread of the interpreter runs or is in the middle of one of CPython's
 * functions; does nothing if can_stop_the_world() is false.  act() must not run Python code, nor
 * drop an object's last reference. */
void stop_the_world_call(void (*act)(void *), void *data);

/* ---------------------------------------------------------------- daemons.c: daemon threads */

/* Called by core/loader.c, as a function of atexit, GIL held: later CPython no longer has the
 * states of its other threads. */
void daemons_at_exit(void);

/* Called by hooks/arm.c while the main interpreter is cleared, GIL held.  Keeps CPython from
 * freeing the interpreter's memory if daemon threads may still use it. */
void daemons_keep_memory(PyInterpreterState *state);

#endif
