/*
 * See ask_lock.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ask_lock.h"

#include "ask.h"
#include "interp.h"
#include "thread_states.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { FORK_WAIT_MS = 100, GIL_WAS_UNLOCKED = 1 /* PyGILState_UNLOCKED */ };

/* Held by the watcher while it asks interpreters, and while it waits for the GIL for that; or by a
 * thread that forks.  The watcher only tries it. */
static pthread_mutex_t rearm_mutex = PTHREAD_MUTEX_INITIALIZER;

/* This thread holds it while it forks. */
static __thread bool holds_rearm_mutex;

/* The watcher's, while it has the GIL. */
static PyThreadState *_Atomic watcher_tstate;

/* The watcher is about to make itself a thread state, or makes it. */
static atomic_bool creating_tstate;

void rearm_release(void)
{
    if (rearm_needs_gil()) {
        watcher_tstate = NULL;
        py.PyGILState_Release(GIL_WAS_UNLOCKED);
    }
    pthread_mutex_unlock(&rearm_mutex);
}

bool rearm_trylock(void)
{
    return pthread_mutex_trylock(&rearm_mutex) == 0;
}

void rearm_unlock(void)
{
    pthread_mutex_unlock(&rearm_mutex);
}

/* NULL: it is not known yet; in 3.6 that was attached to. */
static PyInterpreterState *main_interpreter(void)
{
    struct interp *interp = interp_main();
    if (py.PyInterpreterState_Main) /* 3.7+ */
        return py.PyInterpreterState_Main();
    return interp ? interp->state : NULL;
}

/* In two steps, as PyGILState_Ensure() (Python/pystate.c) has them: PyThreadState_New() holds
 * HEAD_LOCK, without the GIL, and the child of a fork waits for that lock, so a fork keeps out of
 * it; then the GIL is waited for, and a fork can't wait for that. */
bool rearm_take_gil(void)
{
    PyInterpreterState *interpreter = main_interpreter();
    if (!interpreter) {
        py.PyGILState_Ensure();
        watcher_tstate = py.PyGILState_GetThisThreadState();
        return true;
    }
    creating_tstate = true;
    PyThreadState *state = !fork_in_progress() ? py.PyThreadState_New(interpreter) : NULL;
    creating_tstate = false;
    if (!state)
        return false;
    py.PyEval_RestoreThread(state);
    watcher_tstate = state;
    return true;
}

/* An allocator that a program has put in CPython's place may wait for the GIL (tracemalloc's does),
 * and not under HEAD_LOCK; so this does not wait for long. */
static void wait_for_tstate_creation(void)
{
    struct timespec pause = {0, 100000};
    fork_in_progress_begin();
    for (int i = 0; i < 10 * FORK_WAIT_MS && creating_tstate; i++)
        nanosleep(&pause, NULL);
}

void rearm_wait_idle(void)
{
    PyThreadState *state = py.PyEval_SaveThread();
    pthread_mutex_lock(&rearm_mutex);
    pthread_mutex_unlock(&rearm_mutex);
    py.PyEval_RestoreThread(state);
}

void rearm_lock_reset(void)
{
    creating_tstate = false;
    fork_in_progress_clear();
    holds_rearm_mutex = false;
    watcher_tstate = NULL;
    pthread_mutex_init(&rearm_mutex, NULL);
}

/* The thread state that has the GIL; NULL: none, or it is not known. */
static PyThreadState *gil_owner(void)
{
    return py._PyThreadState_UncheckedGet ? py._PyThreadState_UncheckedGet() : NULL;
}

bool gil_is_free(void)
{
    return !gil_owner();
}

/* Up to 3.11, where all interpreters share one GIL.  False also for a thread of a subinterpreter
 * that holds it. */
static bool has_gil(void)
{
    PyThreadState *state = gil_owner();
    return state && state == py.PyGILState_GetThisThreadState();
}

/* Without the GIL: until the watcher has it no more.  While it waits for another thread, that one
 * keeps the GIL in the child, whatever the watcher does. */
static void lock_without_gil(void)
{
    struct timespec pause = {0, 1000000};
    for (int i = 0; i < FORK_WAIT_MS && !holds_rearm_mutex; i++) {
        PyThreadState *state = gil_owner();
        if (state && state != watcher_tstate)
            return;
        nanosleep(&pause, NULL);
        holds_rearm_mutex = pthread_mutex_trylock(&rearm_mutex) == 0;
    }
}

void rearm_lock_for_fork(bool told)
{
    wait_for_tstate_creation();
    holds_rearm_mutex = pthread_mutex_trylock(&rearm_mutex) == 0;
    if (holds_rearm_mutex || told)
        return;
    if (!rearm_needs_gil()) /* it waits for nothing */
        holds_rearm_mutex = pthread_mutex_lock(&rearm_mutex) == 0;
    else if (!has_gil())
        lock_without_gil();
    else if (tstate_count_at_most(2)) { /* this one's, and the watcher's */
        PyThreadState *state = py.PyEval_SaveThread();
        holds_rearm_mutex = pthread_mutex_lock(&rearm_mutex) == 0;
        py.PyEval_RestoreThread(state);
    }
}

void rearm_unlock_after_fork(void)
{
    if (holds_rearm_mutex)
        pthread_mutex_unlock(&rearm_mutex);
    holds_rearm_mutex = false;
    fork_in_progress_end();
}
