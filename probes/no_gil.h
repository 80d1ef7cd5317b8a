/*
 * Locks that stand in the GIL's place in a free-threaded build; in others, where the GIL keeps all
 * but one thread out, they do nothing.
 *
 * A thread that waits for one is detached from its interpreter (PyMutex, Include/cpython/lock.h):
 * so it is in the way of none that stops the world, which the lock's holder may do, or wait for.
 * Who waited for a lock of the C library would stay attached, and both would wait for ever.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NO_GIL_H
#define NO_GIL_H

#include "cpython.h"

/* Not recursive.  In the child of a fork it is set to {0}. */
struct no_gil_lock {
    uint8_t mutex;
};

static inline void no_gil_lock(struct no_gil_lock *lock)
{
    if (py.free_threaded)
        py.PyMutex_Lock(&lock->mutex);
}

static inline void no_gil_unlock(struct no_gil_lock *lock)
{
    if (py.free_threaded)
        py.PyMutex_Unlock(&lock->mutex);
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
