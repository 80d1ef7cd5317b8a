/*
 * Walks the thread states of an interpreter.  The GIL does not guard that list: threads of C enter
 * and leave it without the GIL, by PyGILState_Ensure() and PyThreadState_Delete(), and
 * PyInterpreterState_ThreadHead() and PyThreadState_Next() take no lock.  What guards it is a lock
 * of CPython's, under which a thread state is complete from its first moment on the list to its
 * last (Python/pystate.c: HEAD_LOCK, new_threadstate(), tstate_delete_common()).
 *
 * From 3.12 on the shim needs no such walk, but CPython walks it.  3.6 keeps the lock to itself.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/threads.h"

#include "shared/cpython_structs.h"

#include <stdatomic.h>

/* ---------------------------------------------------------------- thread states */

/* NULL: not where the release has it. */
static void *list_lock(void)
{
    size_t offset = runtime_interpreters_offset(py.minor);
    if (!py.runtime || !offset)
        return NULL;
    const struct pyinterpreters *list = (void *)(py.runtime + offset);
    if (list->head != py.PyInterpreterState_Head() || list->main != py.PyInterpreterState_Main() ||
        list->next_id < 1)
        return NULL;
    return list->mutex;
}

static bool stale;

/* Under the list's lock, or with no other thread there. */
static int count(void)
{
    int states = 0;
    for (PyInterpreterState *interpreter = py.PyInterpreterState_Head(); interpreter;
         interpreter = py.PyInterpreterState_Next(interpreter))
        for (PyThreadState *state = py.PyInterpreterState_ThreadHead(interpreter); state;
             state = py.PyThreadState_Next(state))
            states++;
    return states;
}

bool tstate_count_at_most(int number)
{
    void *lock = list_lock();
    if (!lock || stale || !py.PyThread_acquire_lock(lock, 0))
        return false;
    bool so = count() <= number;
    py.PyThread_release_lock(lock);
    return so;
}

void tstate_list_after_fork(bool told)
{
    stale = !told && count() > 1;
}

bool tstate_list_is_stale(void)
{
    return stale;
}

static atomic_uint forks;

void fork_in_progress_begin(void)
{
    forks++;
}

void fork_in_progress_end(void)
{
    forks--;
}

void fork_in_progress_clear(void)
{
    forks = 0;
}

bool fork_in_progress(void)
{
    return forks > 0;
}

bool can_stop_the_world(void)
{
    return !py.free_threaded || (!stale && forks == 0);
}

enum walk tstate_for_each(PyInterpreterState *interpreter, void (*visit)(PyThreadState *, void *),
                          void *data)
{
    void *lock = list_lock();
    if (!lock || stale)
        return WALK_NEVER;
    /* Its holder may wait for the GIL: up to 3.8 an interpreter is cleared under it. */
    if (!py.PyThread_acquire_lock(lock, 0))
        return WALK_LATER;
    for (PyThreadState *state = py.PyInterpreterState_ThreadHead(interpreter); state;
         state = py.PyThreadState_Next(state))
        visit(state, data);
    py.PyThread_release_lock(lock);
    return WALK_DONE;
}

/* ---------------------------------------------------------------- no gil */

struct call {
    void (*act)(void *);
    void *data;
};

/* For the first object that is found; 0: no further one. */
static int on_object(PyObject *object, void *data)
{
    const struct call *call = data;
    (void)object;
    call->act(call->data);
    return 0;
}

/* CPython stops the world to show all objects that the collector knows (Python/
 * gc_free_threading.c, PyUnstable_GC_VisitObjects), which is its only exported way to do so. */
void stop_the_world_call(void (*act)(void *), void *data)
{
    if (!can_stop_the_world())
        return;
    if (py.free_threaded)
        py.PyUnstable_GC_VisitObjects(on_object, &(struct call){act, data});
    else
        act(data);
}
