/*
 * Locks that stand in the GIL's place in a free-threaded build; in others, where the GIL keeps all
 * but one thread out, they do nothing.
 *
 * They are taken by threads that are attached to their interpreter, and no lock waits for its next
 * holder, as a PyMutex does: when CPython ends, a thread that is detached never attaches again
 * (Python/ceval_gil.c, PyThread_hang_thread), and what it held would be held for good.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NO_GIL_H
#define NO_GIL_H

#include "cpython.h"
#include "futex.h"

#include <stdatomic.h>

/* Not recursive.  In the child of a fork it is set to {0}. */
struct no_gil_lock {
    atomic_uint taken;
};

/* For so long a thread waits before it looks again: the lock is nearly always free sooner. */
enum { NO_GIL_MOMENT_US = 50 };

static inline bool no_gil_taken(struct no_gil_lock *lock)
{
    return atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire);
}

/* Until it may be free; errno stays. */
static inline void no_gil_wait(struct no_gil_lock *lock)
{
    int error = errno;
    futex_wait_us(&lock->taken, 1, NO_GIL_MOMENT_US);
    errno = error;
}

/* For a moment: its holder calls nothing by which CPython could detach it, or stop it. */
static inline void no_gil_lock(struct no_gil_lock *lock)
{
    while (py.free_threaded && no_gil_taken(lock))
        no_gil_wait(lock);
}

/* Its holder may stop the world, or wait for who does so: so they who wait for it are detached
 * meanwhile.  GIL held. */
static inline void no_gil_lock_long(struct no_gil_lock *lock)
{
    while (py.free_threaded && no_gil_taken(lock)) {
        PyThreadState *state = py.PyEval_SaveThread();
        no_gil_wait(lock);
        py.PyEval_RestoreThread(state);
    }
}

static inline void no_gil_unlock(struct no_gil_lock *lock)
{
    if (py.free_threaded)
        atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

/* The same for an object, whose own lock it takes: what CPython does with the object meanwhile, on
 * other threads, it does before or after. */
static inline void no_gil_lock_object(struct cpython_section *section, PyObject *object)
{
    if (py.free_threaded)
        py.PyCriticalSection_Begin(section, object);
}

static inline void no_gil_unlock_object(struct cpython_section *section)
{
    if (py.free_threaded)
        py.PyCriticalSection_End(section);
}

/* Calls act() while no other thread of the interpreter runs, nor is in the middle of one of
 * CPython's functions; not where thread_states_can_stop() says no.  act() runs no Python code, and
 * drops no last reference.  GIL held. */
void no_gil_alone(void (*act)(void *), void *data);

#endif
