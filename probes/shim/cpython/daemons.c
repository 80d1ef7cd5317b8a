/*
 * CPython 3.10.8 and later 3.10 free the main interpreter's memory while daemon threads may still
 * write to it: a thread that finds its interpreter ending withdraws its request for the GIL
 * (Python/ceval_gil.h, take_gil).  Whether that crashes the program depends on what lies before it
 * on the heap, which may be memory of the shim.  In 3.11 and later that memory is static.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/daemons.h"

#include "cpython/threads.h"

#include <stdatomic.h>

static PyInterpreterState *kept;
static struct cpython_allocator raw; /* what is behind free_but_kept(), while that is in place */
static bool in_place, has_daemons;

/* CPython's allocator, until it has kept the memory.  Any thread, with the GIL or without. */
static void free_but_kept(void *context, void *memory)
{
    atomic_thread_fence(memory_order_acquire); /* of kept and raw, with the fence below */
    if (!memory || memory != (void *)kept) {
        raw.free(context, memory);
        return;
    }
    struct cpython_allocator now;
    py.PyMem_GetAllocator(0, &now);
    if (now.free != free_but_kept) /* another allocator was put in front of it */
        return;
    py.PyMem_SetAllocator(0, &raw);
    in_place = false;
}

/* GIL held, and the lock of the list of thread states. */
static void count(PyThreadState *state, void *states)
{
    (void)state;
    ++*(int *)states;
}

void daemons_at_exit(void)
{
    int states = 0;
    has_daemons =
        py.minor == 10 &&
        (tstate_for_each(cpython_interpreter(), count, &states) != WALK_DONE || states > 1);
}

void daemons_keep_memory(PyInterpreterState *state)
{
    if (!has_daemons || !py.PyMem_GetAllocator || !py.PyMem_SetAllocator)
        return;
    kept = state;
    if (in_place)
        return;
    struct cpython_allocator now;
    py.PyMem_GetAllocator(0, &now);
    raw = now;
    in_place = true;
    atomic_thread_fence(memory_order_release);
    now.free = free_but_kept; /* the rest as it is: other threads may be in the middle of a call */
    py.PyMem_SetAllocator(0, &now);
}
