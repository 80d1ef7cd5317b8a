/*
 * Puts hooks into interpreters and takes them out.  Called by the loader when an interpreter
 * starts, and by the watcher when a tracer comes or goes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm.h"

#include "code.h"
#include "daemons.h"
#include "debug.h"
#include "frame.h"
#include "native.h"
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>

static const struct hook *const hooks[] = {
    /* functions last: what the others do in Python is not the program's */
    &hook_gc, &hook_import, &hook_audit, &hook_monitoring, &hook_frame,
};
enum { HOOKS = sizeof hooks / sizeof *hooks };

bool arm_all;

/* Interpreters are never taken off the list, so a pointer to one stays good.  The lock guards the
 * list, and whether one has ended; under it no GIL is waited for. */
static struct interp *interps;
static pthread_mutex_t interps_lock = PTHREAD_MUTEX_INITIALIZER;

/* Up to 3.11: a pending call of ours is in the main thread's queue.  That is the process's: 3.8 and
 * older make it in whatever interpreter the main thread runs just then. */
static atomic_bool main_asked;

static __thread bool busy;

bool arm_busy(void)
{
    return busy;
}

atomic_uint arm_silent;
unsigned arm_knocks;

unsigned arm_wanted(void)
{
    unsigned probed = 0, silent = 0;
    for (int i = 0; i < MARKERS; i++)
        if (*marker_info[i].semaphore)
            probed |= 1u << i;
    if (probed && !arm_all)
        silent = native_probed();
    if (atomic_exchange(&arm_silent, silent) != silent)
        debug_log("markers %x: left to CPython's own", silent);
    return probed & ~silent;
}

unsigned arm_raised(void)
{
    unsigned sum = 0;
    for (int i = 0; i < MARKERS; i++)
        sum += *marker_info[i].semaphore;
    return sum;
}

/* ---------------------------------------------------------------- the list of interpreters */

/* 3.7 and later never use an id twice. */
static int64_t id_of(PyInterpreterState *state)
{
    return py.PyInterpreterState_GetID ? py.PyInterpreterState_GetID(state) : 0;
}

/* What a new interpreter begins with.  The objects that the record had went with the one before. */
static void reset(struct interp *interp)
{
    *interp = (struct interp){
        .next = interp->next, .state = interp->state, .id = id_of(interp->state), .tool = -1};
}

/* The record of an interpreter, made where there is none; NULL where memory ran out. */
static struct interp *record_of(PyInterpreterState *state)
{
    pthread_mutex_lock(&interps_lock);
    struct interp *interp = interps;
    while (interp && interp->state != state)
        interp = interp->next;
    if (!interp && (interp = calloc(1, sizeof *interp))) {
        interp->state = state;
        interp->next = interps;
        reset(interp);
        interps = interp;
    } else if (interp && interp->id != id_of(state)) {
        reset(interp); /* another one at the same address */
    }
    pthread_mutex_unlock(&interps_lock);
    return interp;
}

void arm_forked(void)
{
    pthread_mutex_init(&interps_lock, NULL);
    for (struct interp *interp = interps; interp; interp = interp->next) {
        interp->arming = false;
        interp->asked = false;
    }
    main_asked = false;
    code_forked();
    frame_forked();
}

/* ---------------------------------------------------------------- the calling interpreter */

static bool code_ready(struct interp *interp)
{
    if (interp->code == CODE_UNTRIED)
        interp->code = code_setup() ? CODE_READY : CODE_UNUSABLE;
    return interp->code == CODE_READY;
}

static bool hook_ready(const struct hook *hook, struct interp *interp)
{
    return !hook->uses_code || code_ready(interp);
}

static enum hook_result set_hook(const struct hook *hook, struct interp *interp, unsigned want)
{
    if (hook_ready(hook, interp))
        return hook->set(interp, want);
    hook->set(interp, 0);
    return HOOK_NEVER;
}

static const char *word_for(enum hook_result result)
{
    return result == HOOK_DONE ? "set" : result == HOOK_LATER ? "not yet" : "can't be had here";
}

/* False: not yet. */
static bool bring(struct interp *interp, const struct hook *hook, unsigned want)
{
    bool changed = (interp->armed & hook->markers) != want;
    enum hook_result result = set_hook(hook, interp, want);
    if (changed)
        debug_log("%s: markers %x: %s", hook->name, want, word_for(result));
    if (result == HOOK_LATER)
        return false;
    if (interp->armed & hook->markers & ARM_KNOCKED)
        arm_knocks--;
    interp->armed &= ~hook->markers;
    if (result == HOOK_DONE)
        interp->armed |= want;
    else
        interp->never |= hook->markers;
    return true;
}

/* quiet: those hooks alone that are.  False: something is left to do. */
static bool bring_all(struct interp *interp, unsigned wanted, bool quiet)
{
    bool settled = true;
    if (!wanted) /* the next tracer may find what this one lacked */
        interp->never = 0;
    for (size_t i = 0; i < HOOKS; i++) {
        const struct hook *hook = hooks[i];
        unsigned want = wanted & hook->markers & ~interp->never;
        unsigned armed = interp->armed & hook->markers & ~(quiet ? ARM_KNOCKED : 0);
        bool changed = armed != want;
        if (!(changed || (want && hook->can_be_lost)) || !hook->fits())
            continue;
        if (quiet && !hook->quiet && (changed || !hook->quiet_again))
            settled = settled && !changed;
        else
            settled = bring(interp, hook, want) && settled;
    }
    return settled;
}

static bool set_hooks(struct interp *interp, unsigned wanted)
{
    return bring_all(interp, wanted, false);
}

static bool set_quiet_hooks(struct interp *interp, unsigned wanted)
{
    return bring_all(interp, wanted, true);
}

/* Runs with the exception in flight put aside. */
static bool with_interp(struct interp *interp, bool (*act)(struct interp *, unsigned),
                        unsigned wanted)
{
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    bool was_busy = busy;
    busy = true;
    bool done = act(interp, wanted);
    busy = was_busy;
    py.PyErr_Clear();
    py.PyErr_Restore(type, value, traceback);
    return done;
}

/* For which no interpreter is armed, so that it is asked again. */
enum { NOT_ARMED = 1 << 30 };

static bool arm_by(bool (*act)(struct interp *, unsigned))
{
    struct interp *interp = record_of(cpython_interpreter());
    if (!interp)
        return false;
    /* Calls into CPython may let another thread run, which may come here for the same
     * interpreter. */
    if (atomic_exchange(&interp->arming, true)) {
        interp->armed_for = NOT_ARMED; /* the other one may have seen another want */
        return false;
    }
    /* After record_of(): so a change that comes later finds the record on the list. */
    unsigned wanted = arm_wanted();
    interp->armed_for = wanted;
    bool settled = with_interp(interp, act, wanted);
    if (!settled)
        interp->armed_for = NOT_ARMED;
    atomic_store(&interp->arming, false);
    return settled;
}

bool arm_here(void)
{
    return arm_by(set_hooks);
}

/* ---------------------------------------------------------------- the start of one */

static const char end_name[] = "python-stap";

static void drop(PyObject **object)
{
    if (*object)
        py.Py_DecRef(*object);
    *object = NULL;
}

/* The interpreter's dict goes when the interpreter does.  GIL held. */
static void on_end(PyObject *capsule)
{
    struct interp *interp = py.PyCapsule_GetPointer(capsule, end_name);
    drop(&interp->gc_callback);
    drop(&interp->gc_callbacks);
    drop(&interp->find_wrapper);
    drop(&interp->find_original);
    drop(&interp->tool_name);
    pthread_mutex_lock(&interps_lock);
    interp->ended = true;
    pthread_mutex_unlock(&interps_lock);
    if (interp->id == 0)
        daemons_keep_memory(interp->state);
}

static bool start(struct interp *interp, unsigned unused)
{
    (void)unused;
    /* Code objects with records may be left from before Py_Finalize().  Up to 3.7 an interpreter
     * that frees one, and has handed out no index, calls what lay in its memory
     * (Objects/codeobject.c, code_dealloc; Python/pystate.c, PyInterpreterState_New). */
    if (code_kept())
        code_ready(interp);
    for (size_t i = 0; i < HOOKS; i++)
        if (hooks[i]->start && hooks[i]->fits())
            hooks[i]->start(interp);
    if (!py.PyInterpreterState_GetDict) /* 3.8+ */
        return true;
    PyObject *dict = py.PyInterpreterState_GetDict(interp->state); /* borrowed */
    PyObject *capsule = dict ? py.PyCapsule_New(interp, end_name, on_end) : NULL;
    /* Not PyDict_SetItemString(), which interns the name: 3.12 keeps that for ever. */
    PyObject *name = capsule ? py.PyUnicode_FromString(end_name) : NULL;
    bool told = name && py.PyDict_SetItem(dict, name, capsule) == 0;
    pthread_mutex_lock(&interps_lock);
    interp->ended = !told;
    pthread_mutex_unlock(&interps_lock);
    if (name)
        py.Py_DecRef(name);
    if (capsule)
        py.Py_DecRef(capsule);
    return true;
}

void arm_start(bool is_new)
{
    struct interp *interp = record_of(cpython_interpreter());
    if (!interp || (interp->started && (!is_new || !interp->ended)))
        return;
    pthread_mutex_lock(&interps_lock);
    if (is_new) /* the one before Py_Finalize() lay here, and had its id */
        reset(interp);
    interp->started = interp->ended = true;
    interp->is_main = cpython_is_main();
    pthread_mutex_unlock(&interps_lock);
    with_interp(interp, start, 0);
    if (arm_wanted())
        arm_here();
}

/* ---------------------------------------------------------------- asking */

/* atexit has ended the main interpreter's part. */
static atomic_bool closed;

void arm_close(void)
{
    closed = true;
}

void arm_open(void)
{
    closed = false;
}

/* Of arm_attach(), until it has been called. */
static void (*_Atomic to_meet)(void);

/* On a thread of another interpreter, up to 3.11, where all have one GIL. */
static void meet_in_main(void (*meet)(void))
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
static bool arm_asked(void)
{
    bool is_main = cpython_is_main();
    void (*meet)(void) = is_main || py.minor <= 11 ? atomic_exchange(&to_meet, NULL) : NULL;
    if (meet && is_main)
        meet();
    else if (meet)
        meet_in_main(meet);
    return arm_here();
}

/* A pending call.  3.12 and later: on any thread of the interpreter; before, on the main thread. */
static int arm_pending(void *unused)
{
    (void)unused;
    struct interp *interp = record_of(cpython_interpreter());
    if (!closed) {
        arm_asked();
        for (size_t i = 0; i < HOOKS; i++)
            if (hooks[i]->visit && interp && (interp->armed & hooks[i]->markers & ~ARM_KNOCKED))
                hooks[i]->visit();
    }
    main_asked = false;
    if (interp)
        interp->asked = false;
    return 0;
}

/* 3.12 and later, where each interpreter may have a GIL of its own.  Without the GIL, which is not
 * waited for. */
static bool add_call(PyInterpreterState *state)
{
    return py._PyEval_AddPendingCall && py._PyEval_AddPendingCall(state, arm_pending, NULL, 0) == 0;
}

/* One that is on the list, and not ended, can't go away before the lock is free. */
static void ask_312(unsigned wanted, bool look)
{
    pthread_mutex_lock(&interps_lock);
    for (struct interp *interp = interps; interp; interp = interp->next) {
        if (interp->ended || (interp->armed_for == wanted && !look) ||
            atomic_exchange(&interp->asked, true))
            continue;
        if (!add_call(interp->state))
            interp->asked = false;
    }
    pthread_mutex_unlock(&interps_lock);
}

/* At a thread that calls no Python function for a while, as it is in a long loop of one frame, by a
 * profile function too: not at once, as the program would find in its own profile function's events
 * that another one was there before.  GIL held. */
static void knock(struct interp *interp)
{
    bool again = interp->armed & ARM_KNOCKED;
    if (frame_knock(interp) == HOOK_DONE) {
        interp->armed |= ARM_KNOCKED;
        if (again)
            trace_knock(interp->state);
    } else if (!interp->is_main) { /* which is asked by a pending call, too */
        interp->armed_for = arm_wanted();
    }
}

/* GIL held, on the watcher's thread.  3.8 prints a complaint where it is asked for a pending call
 * while the functions of atexit run (Python/ceval.c, _PyEval_AddPendingCall). */
static void ask_main_thread(void)
{
    if (py.minor != 8 && !atomic_exchange(&main_asked, true) &&
        py.Py_AddPendingCall(arm_pending, NULL) != 0)
        main_asked = false;
}

/* In a Python that ran already, where no interpreter tells that it starts. */
static bool starts_unseen;

/* All interpreters share the GIL, which we hold, and under which CPython makes and ends them: so
 * none comes or goes meanwhile. */
static void ask_311(unsigned wanted)
{
    arm_by(set_quiet_hooks);
    arm_knocks = 0;
    for (PyInterpreterState *state = py.PyInterpreterState_Head(); state;
         state = py.PyInterpreterState_Next(state)) {
        struct interp *interp = record_of(state);
        if (interp && starts_unseen)
            interp->started = true;
        if (!interp || !interp->started)
            continue;
        if (interp->armed_for != wanted)
            knock(interp);
        if (interp->armed & ARM_KNOCKED)
            arm_knocks++;
        /* In 3.11, while a trace or profile function is set, a Python function that another pending
         * call calls doesn't begin as long as one waits (Python/ceval.c, DO_TRACING). */
        if (interp->is_main && py.minor != 11 && (wanted || interp->armed_for != wanted))
            ask_main_thread();
    }
}

void arm_ask(unsigned wanted, bool look)
{
    if (py.minor >= 12)
        ask_312(wanted, look);
    else
        ask_311(wanted);
}

bool arm_done(unsigned wanted)
{
    bool done = true;
    pthread_mutex_lock(&interps_lock);
    for (struct interp *interp = interps; interp && done; interp = interp->next)
        done = !interp->started || interp->armed_for == wanted ||
               (py.minor < 8 ? !interp->is_main : interp->ended);
    pthread_mutex_unlock(&interps_lock);
    return done;
}

bool arm_goes_on(void)
{
    bool found = false;
    pthread_mutex_lock(&interps_lock);
    for (struct interp *interp = interps; interp && !found; interp = interp->next)
        found = interp->arming;
    pthread_mutex_unlock(&interps_lock);
    return found;
}

/* The watcher's thread is the main interpreter's. */
bool arm_attach(void (*meet)(void))
{
    to_meet = meet;
    if (py.minor >= 12)
        return py.PyInterpreterState_Main && add_call(py.PyInterpreterState_Main());
    arm_knocks = 0;
    for (PyInterpreterState *state = py.PyInterpreterState_Head(); state;
         state = py.PyInterpreterState_Next(state)) {
        struct interp *interp = record_of(state);
        if (!interp)
            continue;
        interp->is_main = state == cpython_main_interpreter();
        knock(interp);
        arm_knocks += interp->armed & ARM_KNOCKED ? 1 : 0;
    }
    ask_main_thread();
    return true;
}

/* The records need no lock: no other thread is there. */
void arm_meet_child(void (*meet)(void))
{
    struct interp *interp = interps;
    while (interp && !interp->is_main)
        interp = interp->next;
    /* 3.13 ends the process where the frame hook is set without the GIL. */
    if (py.PyThreadState_GetUnchecked && !py.PyThreadState_GetUnchecked())
        interp = NULL;
    to_meet = interp ? meet : NULL;
    if (to_meet && frame_knock(interp) == HOOK_DONE) {
        interp->armed |= ARM_KNOCKED;
        arm_knocks = 1;
    }
}

void arm_meet_others(void)
{
    starts_unseen = true;
}

bool arm_answer(void)
{
    struct interp *interp = record_of(cpython_interpreter());
    if (!interp)
        return false;
    if (!(interp->armed & ARM_KNOCKED))
        return true;
    if (closed)
        return false;
    if (!hook_frame.fits()) /* 3.12 and later: the hook has gone */
        interp->armed &= ~ARM_KNOCKED;
    arm_asked();
    if (interp->armed & ARM_KNOCKED) /* another thread is at it, or it isn't ready */
        return false;
    return interp->armed & hook_frame.markers;
}
