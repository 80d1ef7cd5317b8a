/*
 * The thread states of an interpreter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_THREADS_H
#define CPYTHON_THREADS_H

#include <stdatomic.h>

#include "cpython/symbols.h"
#include "os/thread.h"

/* ---------------------------------------------------------------- thread states */

enum walk {
    WALK_DONE,
    WALK_LATER, /* CPython is changing the list: try again */
    WALK_NEVER, /* the list's lock is not known in this CPython, or the list is stale */
};

/* Calls visit() for each thread state of the interpreter, the newest first, under the lock with
 * which CPython changes the list.  visit() may read and write memory, and calls nothing of CPython.
 * GIL held. */
enum walk tstate_for_each(PyInterpreterState *interpreter, void (*visit)(PyThreadState *, void *),
                          void *data);

/* Whether all interpreters together have no more thread states than that; false where that can't be
 * said, as in 3.6.  GIL held. */
bool tstate_count_at_most(int number);

/* In the child of a fork that CPython was not told of (PyOS_AfterFork_Child()), its list has the
 * states of threads that are not there, and they lead to stacks that are others' now: until it is
 * told, that list is not to be walked, not by CPython either.  told: it is.  Called in the child;
 * no other thread of the program is there. */
void tstate_list_after_fork(bool told);

/* So it is.  GIL held. */
bool tstate_list_is_stale(void);

/* A thread forks, from the first of our handlers on; and it has done so, in the parent, or in the
 * child, where no other thread is. */
void fork_in_progress_begin(void);
void fork_in_progress_end(void);
void fork_in_progress_clear(void);

/* Whether one does. */
bool fork_in_progress(void);

/* Whether the world may be stopped, which is free-threaded builds' alone.  Not where CPython would
 * wait for threads that are not there.  Nor while a thread forks by C: it would stop in the child,
 * for a thread that is not there to start it again.  GIL held. */
bool can_stop_the_world(void);

/* ---------------------------------------------------------------- no gil */

/*
 * Locks that stand in the GIL's place in a free-threaded build; in others, where the GIL keeps all
 * but one thread out, they do nothing.
 *
 * They are taken by threads that are attached to their interpreter, and no lock waits for its next
 * holder, as a PyMutex does: when CPython ends, a thread that is detached never attaches again
 * (Python/ceval_gil.c, PyThread_hang_thread), and what it held would be held for good.
 */

/* Not recursive.  In the child of a fork it is set to {0}. */
struct nogil_lock {
    atomic_uint taken;
};

/* For so long a thread waits before it looks again: the lock is nearly always free sooner. */
enum { NOGIL_WAIT_US = 50 };

static inline bool nogil_try_fails(struct nogil_lock *lock)
{
    return atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire);
}

/* Until it may be free; errno stays. */
static inline void nogil_wait(struct nogil_lock *lock)
{
    int error = errno;
    futex_wait_us(&lock->taken, 1, NOGIL_WAIT_US);
    errno = error;
}

/* For a moment: its holder calls nothing by which CPython could detach it, or stop it. */
static inline void nogil_lock(struct nogil_lock *lock)
{
    while (py.free_threaded && nogil_try_fails(lock))
        nogil_wait(lock);
}

/* Its holder may stop the world, or wait for who does so: so they who wait for it are detached
 * meanwhile.  GIL held. */
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

/* The same for an object, whose own lock it takes: what CPython does with the object meanwhile, on
 * other threads, it does before or after. */
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

/* Calls act() while no other thread of the interpreter runs, nor is in the middle of one of
 * CPython's functions; not where can_stop_the_world() says no.  act() runs no Python code, and
 * drops no last reference.  GIL held. */
void stop_the_world_call(void (*act)(void *), void *data);

#endif
