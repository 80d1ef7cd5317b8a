/*
 * Has each interpreter arm or disarm itself, on a thread of the program.  From 3.12 on pending
 * calls do so; up to 3.11 a rearm is forced.
 *
 * The watcher's thread requests rearms, and holds rearm_mutex meanwhile; threads of the program
 * rearm, with the GIL held.
 *
 * SPDX-License-Identifier: MIT
 */

#include "hooks/rearm.h"

#include "cpython/threads.h"
#include "hooks/frame_eval.h"
#include "hooks/hook.h"
#include "markers/filter.h"
#include "os/process.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the rearm lock */

enum { FORK_WAIT_MS = 100, GIL_WAS_UNLOCKED = 1 /* PyGILState_UNLOCKED */ };

/* Held by the watcher while it rearms interpreters, and while it waits for the GIL to do so; or by
 * a thread that forks.  The watcher only tries it. */
static pthread_mutex_t rearm_mutex = PTHREAD_MUTEX_INITIALIZER;

/* This thread holds rearm_mutex for a fork. */
static __thread bool holds_rearm_mutex;

/* The watcher's thread state while it holds the GIL; else NULL. */
static PyThreadState *_Atomic watcher_tstate;

/* The watcher is in PyThreadState_New(), or about to call it. */
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

/* NULL: not known yet, as in a 3.6 that ran before the shim was loaded. */
static PyInterpreterState *main_interpreter(void)
{
    struct interp *interp = interp_main();
    if (py.PyInterpreterState_Main) /* 3.7+ */
        return py.PyInterpreterState_Main();
    return interp ? interp->state : NULL;
}

/* The two steps of PyGILState_Ensure() (Python/pystate.c), one by one.  PyThreadState_New() holds
 * HEAD_LOCK without the GIL.  The child of a fork at that moment would wait for HEAD_LOCK forever,
 * so a fork waits for the end of this step.  A fork can't wait for the second step, which waits for
 * the GIL. */
bool rearm_take_gil(void)
{
    PyInterpreterState *interpreter = main_interpreter();
    if (!interpreter) {
        py.PyGILState_Ensure();
        watcher_tstate = py.PyGILState_GetThisThreadState();
        return true;
    }
    creating_tstate = true;
    PyThreadState *state = !fork_in_progress() ? tstate_new(interpreter) : NULL;
    creating_tstate = false;
    if (!state)
        return false;
    py.PyEval_RestoreThread(state);
    watcher_tstate = state;
    return true;
}

/* Waits FORK_WAIT_MS at most: an allocator of the program may wait for the GIL in
 * PyThreadState_New(), outside HEAD_LOCK (tracemalloc's does). */
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

/* The thread state that holds the GIL; NULL: none, or unknown. */
static PyThreadState *gil_owner(void)
{
    return py._PyThreadState_UncheckedGet ? py._PyThreadState_UncheckedGet() : NULL;
}

bool gil_is_free(void)
{
    return !gil_owner();
}

/* Up to 3.11, where all interpreters share one GIL.  False also for a thread that holds the GIL in
 * a subinterpreter. */
static bool has_gil(void)
{
    PyThreadState *state = gil_owner();
    return state && state == py.PyGILState_GetThisThreadState();
}

/* Waits, without the GIL, until the watcher releases the lock.  Gives up if another thread holds
 * the GIL: the child then inherits the GIL locked, whatever the watcher does. */
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

/* Whether no thread of the program but this one runs Python if this one releases the GIL.  Where
 * HEAD_LOCK is, is unknown in 3.6: a thread that runs no Python counts there, too.  GIL held, on
 * the thread that forks, while the watcher waits for the GIL. */
static bool only_watcher_waits(void)
{
    enum { BOTH = 2 }; /* this one's, and the watcher's */
    return py.minor == 6 ? thread_count() == BOTH : tstate_count_at_most(BOTH);
}

static void lock_detached(void)
{
    PyThreadState *state = py.PyEval_SaveThread();
    holds_rearm_mutex = pthread_mutex_lock(&rearm_mutex) == 0;
    py.PyEval_RestoreThread(state);
}

void rearm_lock_for_fork(bool notified)
{
    wait_for_tstate_creation();
    holds_rearm_mutex = pthread_mutex_trylock(&rearm_mutex) == 0;
    if (holds_rearm_mutex || notified)
        return;
    /* The lock's holder, the watcher, may wait for an attached thread to stop: see ask_312(). */
    if (py.free_threaded && py.PyThreadState_GetUnchecked())
        lock_detached();
    else if (!rearm_needs_gil()) /* the watcher waits for nothing */
        holds_rearm_mutex = pthread_mutex_lock(&rearm_mutex) == 0;
    else if (!has_gil())
        lock_without_gil();
    else if (only_watcher_waits())
        lock_detached();
}

void rearm_unlock_after_fork(void)
{
    if (holds_rearm_mutex)
        pthread_mutex_unlock(&rearm_mutex);
    holds_rearm_mutex = false;
    fork_in_progress_end();
}

/* ---------------------------------------------------------------- pending calls and forks */

/* Up to 3.11: a pending call of the shim is in the main thread's queue.  Up to 3.8 the queue is the
 * process's: the main thread makes the call in whichever interpreter it runs. */
static claim_flag main_call_pending;

/* 3.12 and later: when this child was forked, another thread was in a pending call of the shim.
 * (An audit hook of the program had released the GIL there, or there is no GIL.) CPython takes that
 * call for unfinished, and makes no other (Python/ceval_gil.c: make_pending_calls()). */
static bool calls_stuck;

/* 3.13 and later: struct PyInterpreterState_313 is right, so clear_foreign_pending_call() may
 * write. */
static atomic_bool pending_calls_layout_known;

/* In a pending call: handling_thread must be the calling thread. */
static void check_pending_calls_layout(void)
{
    const struct PyInterpreterState_313 *here = (const void *)cpython_interpreter();
    pending_calls_layout_known = py.minor >= 13 &&
                                 here->handling_thread == py.PyThreadState_Get() &&
                                 here->max == INTERPRETER_313_MAX_CALLS &&
                                 here->maxloop == INTERPRETER_313_MAX_CALLS_AT_ONCE;
}

/* In the child of a fork: a handling_thread other than this thread exists only in the parent. */
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

/* The main interpreter is ending, or has ended: set by the function of atexit. */
static atomic_bool closed;

void rearm_stop(void)
{
    closed = true;
}

void rearm_start(void)
{
    closed = false;
}

/* The function of rearm_attach() or rearm_call_soon(), until it is called. */
static void (*_Atomic pending_fn)(void);

/* Up to 3.11, where all interpreters share one GIL.  On a thread that runs another interpreter. */
static void call_in_main_interpreter(void (*function)(void))
{
    PyInterpreterState *interpreter = cpython_main_interpreter();
    PyThreadState *here = py.PyThreadState_Get(), *made = NULL;
    PyThreadState *there = py.PyGILState_GetThisThreadState();
    if (!there || cpython_interpreter_of(there) != interpreter)
        there = made = tstate_new(interpreter);
    if (!there)
        return;
    py.PyThreadState_Swap(there);
    function();
    if (made)
        py.PyThreadState_Clear(made);
    py.PyThreadState_Swap(here);
    if (made)
        py.PyThreadState_Delete(made);
}

/* On a thread of the program, GIL held. */
static bool rearm_now(void)
{
    bool is_main = cpython_is_main();
    void (*function)(void) = is_main || py.minor <= 11 ? atomic_exchange(&pending_fn, NULL) : NULL;
    if (function && is_main)
        function();
    else if (function)
        call_in_main_interpreter(function);
    bool done = arm_current();
    /* function() has called rearm_call_soon(), and arm_current() has undone the forced rearm. */
    if (function && pending_fn)
        rearm_call_soon(pending_fn);
    return done;
}

/* 3.12 and later, in place of a number of calls in the interpreter's queue: the last one rearms,
 * and none may be added.  A free-threaded CPython that ends makes pending calls until there are
 * none, without a pause in which the world can stop (Python/ceval_gil.c: _Py_FinishPendingCalls()).
 * So it would never end if a call that stops the world were made on another thread meanwhile, and
 * one more were in the queue. */
enum { LAST_CALL_REARMS = -1 };

/* In a pending call: whether the queue has no other one of the shim. */
static bool is_last_call(struct interp *interp)
{
    int pending = interp->calls_pending;
    while (!atomic_compare_exchange_weak(&interp->calls_pending, &pending,
                                         pending > 1 ? pending - 1 : LAST_CALL_REARMS))
        ;
    return pending <= 1;
}

/* A pending call: on any thread of the interpreter from 3.12 on, before on the main thread. */
static int rearm_pending_call(void *unused)
{
    (void)unused;
    struct interp *interp = interp_of(cpython_interpreter());
    check_pending_calls_layout();
    if (interp && !is_last_call(interp)) {
        main_call_pending = false;
        return 0;
    }
    if (!closed) {
        rearm_now();
        if (interp && (interp->armed & hook_frame.markers))
            frame_eval_update_main_thread();
    }
    main_call_pending = false;
    if (interp)
        interp->calls_pending = 0;
    return 0;
}

/* 3.12 and later: needs no GIL, and waits for none. */
static bool add_call(PyInterpreterState *state)
{
    return py._PyEval_AddPendingCall &&
           py._PyEval_AddPendingCall(state, rearm_pending_call, NULL, 0) == 0;
}

/* Whether CPython has signalled the last pending call to all threads of the interpreter.  A
 * free-threaded build signals only the threads of that moment (Python/ceval_gil.c:
 * signal_pending_calls()).  CPython puts new thread states first.  Their addresses are only
 * compared, as threads may end meanwhile. */
static bool all_threads_signalled(struct interp *interp)
{
    if (!py.free_threaded)
        return true;
    PyThreadState *newest = py.PyInterpreterState_ThreadHead(interp->state);
    bool same = newest == interp->newest_tstate;
    interp->newest_tstate = newest;
    return same || !newest;
}

/* The interpreter is kept (interp_keep()).  A call that is counted before it is in the queue may at
 * worst leave the rearming to the next request. */
static void request_rearm(struct interp *interp)
{
    bool heard = all_threads_signalled(interp);
    int pending = interp->calls_pending;
    do {
        if (pending == LAST_CALL_REARMS || (pending > 0 && heard))
            return;
    } while (!atomic_compare_exchange_weak(&interp->calls_pending, &pending, pending + 1));
    if (add_call(interp->state))
        return;
    /* A call that is not counted, as rearm_attach()'s, may have rearmed meanwhile. */
    pending = interp->calls_pending;
    while (pending > 0 &&
           !atomic_compare_exchange_weak(&interp->calls_pending, &pending, pending - 1))
        ;
}

/* Not under the list's lock, for which attached threads wait.  A thread that ends an interpreter
 * holds the lock of its pending calls until all attached threads have stopped (3.15, free-threaded,
 * Python/pylifecycle.c: make_pre_finalization_calls()); add_call() waits for that lock. */
static void ask_312(unsigned enabled, bool look)
{
    for (struct interp *interp = interp_first(); interp; interp = interp->next) {
        if (!interp_keep(interp))
            continue;
        if (look || interp->armed_for != filter_arm_key(enabled))
            request_rearm(interp);
        interp_let_go();
    }
}

/* GIL held, or no other thread in the process. */
static bool force_rearm(struct interp *interp, bool again)
{
    if (!frame_eval_force_rearm(interp, again))
        return false;
    interp->rearm_forced = true;
    return true;
}

/* The last rearm was forced by rearm_main_nogil(): the next one does not count as a second. */
static bool forced_nogil;

/* On the watcher's thread, GIL held. */
static void force_rearm_one(struct interp *interp)
{
    bool again = interp->rearm_forced && !forced_nogil;
    forced_nogil = false;
    if (!force_rearm(interp, again) && !interp->is_main) /* the main one gets a pending call, too */
        interp->armed_for = filter_arm_key(markers_enabled());
}

/* GIL held.  Not in 3.8, which prints an error if a pending call is added while the functions of
 * atexit run (Python/ceval.c: _PyEval_AddPendingCall()). */
static void add_main_pending_call(void)
{
    if (py.minor != 8 && !atomic_exchange(&main_call_pending, true) &&
        py.Py_AddPendingCall(rearm_pending_call, NULL) != 0)
        main_call_pending = false;
}

/* The shim was loaded into a running CPython, where it may not have seen an interpreter start. */
static bool include_unseen;

/* Up to 3.11.  With the GIL held, which all interpreters share, CPython's list does not change:
 * CPython creates and ends interpreters under it. */
static void for_each_311(void (*act)(struct interp *, unsigned), unsigned enabled)
{
    rearm_requests = 0;
    for (PyInterpreterState *state = py.PyInterpreterState_Head(); state;
         state = py.PyInterpreterState_Next(state)) {
        struct interp *interp = interp_of(state);
        if (interp)
            act(interp, enabled);
    }
}

static void ask_one_311(struct interp *interp, unsigned enabled)
{
    if (include_unseen)
        interp->started = true;
    if (!interp->started)
        return;
    if (interp->armed_for != filter_arm_key(enabled))
        force_rearm_one(interp);
    rearm_requests += interp->rearm_forced;
    /* Not in 3.11: while a trace or profile function is set there, a Python function that a pending
     * call calls does not begin as long as another pending call waits (Python/ceval.c:
     * DO_TRACING()). */
    if (interp->is_main && py.minor != 11 &&
        (enabled || interp->armed_for != filter_arm_key(enabled)))
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

/* 3.12 and later, with pending calls stuck.  On the watcher's thread, GIL held. */
static void rearm_stuck(unsigned enabled)
{
    struct interp *interp = interp_main();
    if (interp && interp->armed_for != filter_arm_key(enabled) &&
        force_rearm(interp, interp->rearm_forced))
        rearm_requests = 1;
}

/* The record of the only interpreter; NULL: there are more, or CPython has ended.  CPython puts new
 * interpreters first, so the main one is first only if alone.  An interpreter that ends waits for
 * the list's lock (3.8 and later), or for the watcher. */
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

/* The interpreter that rearm_main_nogil() last forced to rearm. */
static struct interp *forced_interp;

bool rearm_main_nogil(void)
{
    if (py.minor >= 12)
        return false;
    bool forced = false;
    interp_lock();
    struct interp *interp = only_interp();
    if (interp && !closed && !interp->rearm_forced && !atomic_exchange(&interp->arming, true)) {
        rearm_requests = 1;
        interp->rearm_forced = forced = true;
        if (!frame_eval_force_rearm_nogil(interp)) {
            interp->rearm_forced = forced = false;
            rearm_requests = 0;
        }
        interp->arming = false;
        forced_interp = interp;
    }
    interp_unlock();
    forced_nogil = forced;
    return forced;
}

bool rearm_main_nogil_done(void)
{
    return !forced_interp->rearm_forced;
}

void rearm_all(unsigned enabled, bool look)
{
    if (py.minor >= 12) {
        if (calls_stuck)
            rearm_stuck(enabled);
        else
            ask_312(enabled, look);
        return;
    }
    arm_current_from_watcher();
    for_each_311(ask_one_311, enabled);
}

/* Under the list's lock.  Up to 3.7 the end of a subinterpreter is not noticed. */
static bool may_be_gone(const struct interp *interp)
{
    return py.minor < 8 ? !interp->is_main : interp->ended;
}

bool rearm_all_done(unsigned enabled)
{
    bool done = true;
    interp_lock();
    for (struct interp *interp = interp_first(); interp && done; interp = interp->next)
        done =
            !interp->started || interp->armed_for == filter_arm_key(enabled) || may_be_gone(interp);
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

/* The watcher's thread state is the main interpreter's, and so is its pending call. */
bool rearm_attach(void (*function)(void))
{
    pending_fn = function;
    if (py.minor >= 12)
        return py.PyInterpreterState_Main && add_call(py.PyInterpreterState_Main());
    for_each_311(attach_one_311, 0);
    add_main_pending_call();
    return true;
}

void rearm_call_soon(void (*function)(void))
{
    struct interp *interp = interp_main();
    /* 3.13 and later end the process if an eval frame function is set without the GIL. */
    if (py.PyThreadState_GetUnchecked && !py.PyThreadState_GetUnchecked())
        interp = NULL;
    pending_fn = interp ? function : NULL;
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
    if (!hook_frame.is_supported()) /* 3.12 and later: hook_312() has taken itself out */
        interp->rearm_forced = false;
    rearm_now();
    if (interp->is_main && interp->armed && py.minor != 11 && gettid() != getpid())
        add_main_pending_call(); /* for its trace and profile functions */
    if (interp->rearm_forced)    /* another thread is arming, or a hook is not ready */
        return false;
    return interp->armed & hook_frame.markers;
}
