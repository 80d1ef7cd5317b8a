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
