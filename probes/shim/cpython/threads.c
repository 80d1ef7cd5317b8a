/*
 * The GIL does not protect an interpreter's list of thread states: threads of C change it without
 * the GIL, by PyGILState_Ensure() and PyThreadState_Delete(), and PyInterpreterState_ThreadHead()
 * and PyThreadState_Next() take no lock.  HEAD_LOCK protects the list: a thread that holds it finds
 * only complete thread states there (Python/pystate.c: new_threadstate(), tstate_delete_common()).
 *
 * From 3.12 on the shim does not walk the list, but CPython does.  3.6 does not export HEAD_LOCK.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/threads.h"

#include "shared/cpython_structs.h"

#include <stdatomic.h>

/* ---------------------------------------------------------------- thread states */

/* PyThreadState_New() of 3.11 ends the process when memory runs out: it does not look at what its
 * first step returns (Python/pystate.c). */
PyThreadState *tstate_new(PyInterpreterState *interpreter)
{
    if (py.minor != 11 || !py._PyThreadState_Prealloc || !py._PyThreadState_SetCurrent)
        return py.PyThreadState_New(interpreter);
    PyThreadState *state = py._PyThreadState_Prealloc(interpreter);
    if (state)
        py._PyThreadState_SetCurrent(state);
    return state;
}

/* HEAD_LOCK; NULL: it is not where the release of this version has it. */
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

/* Called under HEAD_LOCK, or in a process without another thread. */
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

void tstate_list_after_fork(bool notified)
{
    stale = !notified && count() > 1;
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
    /* Must not wait: up to 3.8 an interpreter is cleared under HEAD_LOCK, whose holder may then
     * wait for the GIL. */
    if (!py.PyThread_acquire_lock(lock, 0))
        return WALK_LATER;
    for (PyThreadState *state = py.PyInterpreterState_ThreadHead(interpreter); state;
         state = py.PyThreadState_Next(state))
        visit(state, data);
    py.PyThread_release_lock(lock);
    return WALK_DONE;
}

/* ---------------------------------------------------------------- free-threaded builds */

struct call {
    void (*act)(void *);
    void *data;
};

/* Called for the first object.  0: for no further one. */
static int on_object(PyObject *object, void *data)
{
    const struct call *call = data;
    (void)object;
    call->act(call->data);
    return 0;
}

/* CPython exports only one way to stop the world: PyUnstable_GC_VisitObjects(), which does so while
 * it visits all objects of the garbage collector (Python/gc_free_threading.c). */
void stop_the_world_call(void (*act)(void *), void *data)
{
    if (!can_stop_the_world())
        return;
    if (py.free_threaded)
        py.PyUnstable_GC_VisitObjects(on_object, &(struct call){act, data});
    else
        act(data);
}
