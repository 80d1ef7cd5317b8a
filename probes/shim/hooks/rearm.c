/*
 * Asks interpreters to bring their hooks to what is wanted: each does so itself (arm.c).
 *
 * SPDX-License-Identifier: MIT
 */

#include "hooks/rearm.h"

#include "cpython/threads.h"
#include "hooks/frame_eval.h"
#include "hooks/hook.h"
#include "markers/filter.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- ask lock */

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

/* ---------------------------------------------------------------- ask */

/* Up to 3.11: a pending call of ours is in the main thread's queue.  That is the process's: 3.8 and
 * older make it in whatever interpreter the main thread runs just then. */
static claim_flag main_call_pending;

/* 3.12 and later: another thread was in a pending call of ours when this child was forked: it had
 * released the GIL there, in an audit hook of the program, or there is no GIL.  CPython believes it
 * there still, and makes no pending calls (Python/ceval_gil.c, make_pending_calls). */
static bool calls_stuck;

/* 3.13 and later: an interpreter has its pending calls where cpython_layout.h says, so that CPython
 * can be told. */
static atomic_bool pending_calls_layout_known;

/* In a pending call, which this thread makes. */
static void check_pending_calls_layout(void)
{
    const struct PyInterpreterState_313 *here = (const void *)cpython_interpreter();
    pending_calls_layout_known = py.minor >= 13 &&
                                 here->handling_thread == py.PyThreadState_Get() &&
                                 here->max == INTERPRETER_313_MAX_CALLS &&
                                 here->maxloop == INTERPRETER_313_MAX_CALLS_AT_ONCE;
}

/* In the child of a fork: no other thread makes pending calls. */
static void clear_foreign_pending_call(void)
{
    struct interp *interp = interp_main();
    if (!interp || interp->ended)
        return;
    struct PyInterpreterState_313 *interpreter = (void *)interp->state;
    if (interpreter->handling_thread != py.PyGILState_GetThisThreadState())
        interpreter->handling_thread = NULL;
}

void rearm_after_fork(void)
{
    if (pending_calls_layout_known)
        clear_foreign_pending_call();
    else
        calls_stuck |= py.minor >= 12 && interp_any_arming() && !thread_is_arming();
    main_call_pending = false;
    arm_after_fork();
}

/* Set by atexit's function, at the end of the main interpreter. */
static atomic_bool closed;

void rearm_stop(void)
{
    closed = true;
}

void rearm_start(void)
{
    closed = false;
}

/* What rearm_attach() was given, until it has been called. */
static void (*_Atomic pending_fn)(void);

/* On a thread of another interpreter, up to 3.11, where all have one GIL. */
static void call_in_main_interpreter(void (*meet)(void))
{
    PyInterpreterState *interpreter = cpython_main_interpreter();
    PyThreadState *here = py.PyThreadState_Get(), *made = NULL;
    PyThreadState *there = py.PyGILState_GetThisThreadState();
    if (!there || cpython_interpreter_of(there) != interpreter)
        there = made = py.PyThreadState_New(interpreter);
    if (!there)
        return;
    py.PyThreadState_Swap(there);
    meet();
    if (made)
        py.PyThreadState_Clear(made);
    py.PyThreadState_Swap(here);
    if (made)
        py.PyThreadState_Delete(made);
}

/* On a thread of the program's.  GIL held. */
static bool rearm_now(void)
{
    bool is_main = cpython_is_main();
    void (*meet)(void) = is_main || py.minor <= 11 ? atomic_exchange(&pending_fn, NULL) : NULL;
    if (meet && is_main)
        meet();
    else if (meet)
        call_in_main_interpreter(meet);
    bool done = arm_current();
    if (meet && pending_fn) /* it is to be called again */
        rearm_call_soon(pending_fn);
    return done;
}

/* A pending call.  3.12 and later: on any thread of the interpreter; before, on the main thread. */
static int rearm_pending_call(void *unused)
{
    (void)unused;
    struct interp *interp = interp_of(cpython_interpreter());
    check_pending_calls_layout();
    if (!closed) {
        rearm_now();
        if (interp && (interp->armed & hook_frame.markers))
            frame_eval_update_main_thread();
    }
    main_call_pending = false;
    if (interp)
        interp->call_pending = false;
    return 0;
}

/* 3.12 and later, where each interpreter may have a GIL of its own.  Without the GIL, which is not
 * waited for. */
static bool add_call(PyInterpreterState *state)
{
    return py._PyEval_AddPendingCall &&
           py._PyEval_AddPendingCall(state, rearm_pending_call, NULL, 0) == 0;
}

/* Whether all threads of the interpreter know of the call that it was last asked for: where there
 * is no GIL, CPython tells those alone that it had then (Python/ceval_gil.c, signal_pending_calls).
 * CPython puts new ones first; their addresses are compared alone, as others may come and go. */
static bool all_threads_signalled(struct interp *interp)
{
    if (!py.free_threaded)
        return true;
    PyThreadState *newest = py.PyInterpreterState_ThreadHead(interp->state);
    bool same = newest == interp->newest_tstate;
    interp->newest_tstate = newest;
    return same || !newest;
}

/* On the watcher's thread.  An interpreter on the list that has not ended can't do so before the
 * lock is free. */
static void ask_312(unsigned wanted, bool look)
{
    interp_lock();
    for (struct interp *interp = interp_first(); interp; interp = interp->next) {
        if (interp->ended || (interp->armed_for == filter_arm_key(wanted) && !look))
            continue;
        bool heard = all_threads_signalled(interp);
        if (atomic_exchange(&interp->call_pending, true) && heard)
            continue;
        if (!add_call(interp->state))
            interp->call_pending = false;
    }
    interp_unlock();
}

/* GIL held, or no other thread. */
static bool force_rearm(struct interp *interp, bool again)
{
    if (!frame_eval_force_rearm(interp, again))
        return false;
    interp->rearm_forced = true;
    return true;
}

/* So the last knock was, after which the next one is not another yet.  On the watcher's thread. */
static bool forced_nogil;

/* GIL held, on the watcher's thread. */
static void force_rearm_one(struct interp *interp)
{
    bool again = interp->rearm_forced && !forced_nogil;
    forced_nogil = false;
    if (!force_rearm(interp, again) && !interp->is_main) /* which is asked by a pending call, too */
        interp->armed_for = filter_arm_key(markers_enabled());
}

/* GIL held.  3.8 prints a complaint if it is asked for a pending call
 * while the functions of atexit run (Python/ceval.c, _PyEval_AddPendingCall). */
static void add_main_pending_call(void)
{
    if (py.minor != 8 && !atomic_exchange(&main_call_pending, true) &&
        py.Py_AddPendingCall(rearm_pending_call, NULL) != 0)
        main_call_pending = false;
}

/* The shim was loaded into a running Python, where it does not see an interpreter start. */
static bool include_unseen;

/* Up to 3.11 all interpreters share the GIL, which is held here, and under which CPython makes and
 * ends them: so the list stays as it is meanwhile. */
static void for_each_311(void (*act)(struct interp *, unsigned), unsigned wanted)
{
    rearm_requests = 0;
    for (PyInterpreterState *state = py.PyInterpreterState_Head(); state;
         state = py.PyInterpreterState_Next(state)) {
        struct interp *interp = interp_of(state);
        if (interp)
            act(interp, wanted);
    }
}

static void ask_one_311(struct interp *interp, unsigned wanted)
{
    if (include_unseen)
        interp->started = true;
    if (!interp->started)
        return;
    if (interp->armed_for != filter_arm_key(wanted))
        force_rearm_one(interp);
    rearm_requests += interp->rearm_forced;
    /* In 3.11, while a trace or profile function is set, a Python function that another pending
     * call calls doesn't begin as long as one waits (Python/ceval.c, DO_TRACING). */
    if (interp->is_main && py.minor != 11 &&
        (wanted || interp->armed_for != filter_arm_key(wanted)))
        add_main_pending_call();
}

bool rearm_pending_calls_stuck(void)
{
    return calls_stuck;
}

bool rearm_needs_gil(void)
{
    return py.minor <= 11 || calls_stuck;
}

/* On the watcher's thread, with the GIL. */
static void rearm_stuck(unsigned wanted)
{
    struct interp *interp = interp_main();
    if (interp && interp->armed_for != filter_arm_key(wanted) &&
        force_rearm(interp, interp->rearm_forced))
        rearm_requests = 1;
}

/* The record of the only interpreter; NULL if there are more, or CPython has ended.  CPython puts
 * new ones first.  An interpreter that ends waits for the lock (3.8 and later), or for the watcher.
 */
static struct interp *only_interp(void)
{
    struct interp *interp = interp_first();
    PyInterpreterState *newest = py.PyInterpreterState_Head();
    while (interp && interp->state != newest)
        interp = interp->next;
    return interp && interp->is_main && interp->started && !(py.minor >= 8 && interp->ended)
               ? interp
               : NULL;
}

/* What rearm_main_nogil() knocked at. */
static struct interp *forced_interp;

bool rearm_main_nogil(void)
{
    if (py.minor >= 12)
        return false;
    bool knocked = false;
    interp_lock();
    struct interp *interp = only_interp();
    if (interp && !closed && !interp->rearm_forced && !atomic_exchange(&interp->arming, true)) {
        rearm_requests = 1;
        interp->rearm_forced = knocked = true;
        if (!frame_eval_force_rearm_nogil(interp)) {
            interp->rearm_forced = knocked = false;
            rearm_requests = 0;
        }
        interp->arming = false;
        forced_interp = interp;
    }
    interp_unlock();
    forced_nogil = knocked;
    return knocked;
}

bool rearm_main_nogil_done(void)
{
    return !forced_interp->rearm_forced;
}

void rearm_all(unsigned wanted, bool look)
{
    if (py.minor >= 12) {
        if (calls_stuck)
            rearm_stuck(wanted);
        else
            ask_312(wanted, look);
        return;
    }
    arm_current_from_watcher();
    for_each_311(ask_one_311, wanted);
}

/* Whether the interpreter may have ended.  Under the list's lock. */
static bool may_be_gone(const struct interp *interp)
{
    return py.minor < 8 ? !interp->is_main : interp->ended;
}

bool rearm_all_done(unsigned wanted)
{
    bool done = true;
    interp_lock();
    for (struct interp *interp = interp_first(); interp && done; interp = interp->next)
        done =
            !interp->started || interp->armed_for == filter_arm_key(wanted) || may_be_gone(interp);
    interp_unlock();
    return done;
}

bool ask_is_clear(void)
{
    bool clear = true;
    interp_lock();
    for (struct interp *interp = interp_first(); interp && clear; interp = interp->next)
        clear = may_be_gone(interp) || !(interp->armed || interp->arming || interp->rearm_forced);
    interp_unlock();
    return clear;
}

static void attach_one_311(struct interp *interp, unsigned unused)
{
    (void)unused;
    interp->is_main = interp->state == cpython_main_interpreter();
    force_rearm_one(interp);
    rearm_requests += interp->rearm_forced;
}

/* The watcher's thread is the main interpreter's. */
bool rearm_attach(void (*meet)(void))
{
    pending_fn = meet;
    if (py.minor >= 12)
        return py.PyInterpreterState_Main && add_call(py.PyInterpreterState_Main());
    for_each_311(attach_one_311, 0);
    add_main_pending_call();
    return true;
}

/* The records need no lock: no other thread is there. */
void rearm_call_soon(void (*meet)(void))
{
    struct interp *interp = interp_main();
    /* 3.13 ends the process if the frame hook is set without the GIL. */
    if (py.PyThreadState_GetUnchecked && !py.PyThreadState_GetUnchecked())
        interp = NULL;
    pending_fn = interp ? meet : NULL;
    if (pending_fn && force_rearm(interp, false))
        rearm_requests = 1;
}

void rearm_include_unseen(void)
{
    include_unseen = true;
}

bool rearm_current(void)
{
    struct interp *interp = interp_of(cpython_interpreter());
    if (!interp)
        return false;
    if (!interp->rearm_forced)
        return true;
    if (closed)
        return false;
    if (!hook_frame.is_supported()) /* 3.12 and later: the hook has been taken out */
        interp->rearm_forced = false;
    rearm_now();
    if (interp->is_main && interp->armed && py.minor != 11 && gettid() != getpid())
        add_main_pending_call(); /* for what that thread lacks */
    if (interp->rearm_forced)    /* another thread is at it, or it isn't ready */
        return false;
    return interp->armed & hook_frame.markers;
}
