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
#include "thread_states.h"

/* Include/internal/pystate.h (3.7), pycore_pystate.h (3.8), pycore_runtime.h (3.9-3.11):
 * _PyRuntimeState.interpreters. */
struct interpreters {
    void *mutex;
    PyInterpreterState *head, *main;
    int64_t next_id;
};

/* NULL: not where the release has it. */
static void *list_lock(void)
{
    size_t offset = py.minor == 7 ? 16 : py.minor == 11 ? 32 : 24;
    if (!py.runtime || py.minor < 7 || py.minor > 11 || sizeof(void *) != 8)
        return NULL;
    const struct interpreters *list = (void *)(py.runtime + offset);
    if (list->head != py.PyInterpreterState_Head() || list->main != py.PyInterpreterState_Main() ||
        list->next_id < 1)
        return NULL;
    return list->mutex;
}

static bool stale;

static bool is_alone(void)
{
    int states = 0;
    for (PyInterpreterState *interpreter = py.PyInterpreterState_Head(); interpreter;
         interpreter = py.PyInterpreterState_Next(interpreter))
        for (PyThreadState *state = py.PyInterpreterState_ThreadHead(interpreter); state;
             state = py.PyThreadState_Next(state))
            states++;
    return states <= 1;
}

void thread_states_forked(bool told)
{
    stale = !told && !is_alone();
}

bool thread_states_are_stale(void)
{
    return stale;
}

enum walk thread_states_walk(PyInterpreterState *interpreter,
                             void (*visit)(PyThreadState *, void *), void *data)
{
    void *lock = list_lock();
    if (!lock || stale)
        return WALK_NEVER;
    /* Who has it may wait for the GIL: up to 3.8 an interpreter is cleared under it. */
    if (!py.PyThread_acquire_lock(lock, 0))
        return WALK_LATER;
    for (PyThreadState *state = py.PyInterpreterState_ThreadHead(interpreter); state;
         state = py.PyThreadState_Next(state))
        visit(state, data);
    py.PyThread_release_lock(lock);
    return WALKED;
}
