/*
 * CPython 3.10.8 and later 3.10 free the main interpreter's memory while daemon threads may still
 * write to it: a thread that finds its interpreter ending withdraws its request for the GIL
 * (Python/ceval_gil.h: take_gil()).  Whether the program then crashes depends on its heap, which
 * the shim's memory changes.  From 3.11 on the main interpreter's memory is static.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/threads.h"

#include <stdatomic.h>

static PyInterpreterState *kept;
static struct cpython_allocator raw; /* the allocator that free_but_kept() calls */
static bool in_place, has_daemons;

/* Replaces free() of CPython's raw allocator until CPython frees `kept`.  For that call it frees
 * nothing, and puts the previous allocator back.  Any thread, with or without the GIL. */
static void free_but_kept(void *context, void *memory)
{
    atomic_thread_fence(memory_order_acquire); /* for kept and raw; pairs with the fence below */
    if (!memory || memory != (void *)kept) {
        raw.free(context, memory);
        return;
    }
    struct cpython_allocator now;
    py.PyMem_GetAllocator(0, &now);
    if (now.free != free_but_kept) /* another allocator was installed that calls this one */
        return;
    py.PyMem_SetAllocator(0, &raw);
    in_place = false;
}

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
    now.free = free_but_kept; /* free() alone: other threads may be in the middle of a call */
    py.PyMem_SetAllocator(0, &now);
}
