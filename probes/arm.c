/*
 * Puts hooks into interpreters and takes them out.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm.h"

#include "code.h"
#include "daemons.h"
#include "debug.h"
#include "hooks.h"
#include "shown.h"

#include <stddef.h>

/* Up to 3.11: a pending call of ours is in the main thread's queue.  That is the process's: 3.8 and
 * older make it in whatever interpreter the main thread runs just then. */
static atomic_bool main_asked;

/* 3.12 and later: another thread was in a pending call of ours when this child was forked, and had
 * released the GIL there, in an audit hook of the program.  CPython believes it there still, and
 * makes no pending calls (Python/ceval_gil.c, make_pending_calls). */
static bool calls_stuck;

void arm_forked(void)
{
    calls_stuck |= py.minor >= 12 && interp_arming() && !hook_busy();
    interp_forked();
    main_asked = false;
    code_forked();
    shown_forked();
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

/* The hook that interpreters are knocked at by. */
static const struct hook *knocker(void)
{
    const struct hook *const *hook = hooks;
    while (!(*hook)->knock)
        hook++;
    return *hook;
}

static bool is_knocked(const struct interp *interp, const struct hook *hook)
{
    return hook->knock && interp->knocked;
}

/* Brings one hook to these of its markers.  GIL held, no exception in flight.  False: not yet. */
static bool bring(struct interp *interp, const struct hook *hook, unsigned want)
{
    bool changed = (interp->armed & hook->markers) != want || is_knocked(interp, hook);
    enum hook_result result = set_hook(hook, interp, want);
    if (changed)
        debug_log("%s: markers %x: %s", hook->name, want, word_for(result));
    if (result == HOOK_LATER)
        return false;
    if (is_knocked(interp, hook)) {
        hook_knocks--;
        interp->knocked = false;
    }
    interp->armed &= ~hook->markers;
    if (result == HOOK_DONE)
        interp->armed |= want;
    else
        interp->never |= hook->markers;
    return true;
}

/* quiet: the quiet hooks alone.  GIL held, no exception in flight.  False: something is left to do.
 */
static bool bring_all(struct interp *interp, unsigned wanted, bool quiet)
{
    bool settled = true;
    if (!wanted) /* the next tracer may find what this one lacked */
        interp->never = 0;
    for (size_t i = 0; hooks[i]; i++) {
        const struct hook *hook = hooks[i];
        unsigned want = wanted & hook->markers & ~interp->never;
        bool changed =
            (interp->armed & hook->markers) != want || (!quiet && is_knocked(interp, hook));
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

/* Runs with the exception in flight put aside.  GIL held. */
static bool with_interp(struct interp *interp, bool (*act)(struct interp *, unsigned),
                        unsigned wanted)
{
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    bool was_busy = hook_set_busy(true);
    bool done = act(interp, wanted);
    hook_set_busy(was_busy);
    py.PyErr_Clear();
    py.PyErr_Restore(type, value, traceback);
    return done;
}

/* As armed_for: no set of markers, so that the interpreter is asked again. */
enum { NOT_ARMED = 1 << 30 };

static bool arm_by(bool (*act)(struct interp *, unsigned))
{
    struct interp *interp = interp_of(cpython_interpreter());
    if (!interp)
        return false;
    /* Calls into CPython may let another thread run, which may arm the same interpreter. */
    if (atomic_exchange(&interp->arming, true)) {
        interp->armed_for = NOT_ARMED; /* the other one may have seen another want */
        return false;
    }
    /* After interp_of(): so a later change finds the record on the list. */
    unsigned wanted = wanted_markers();
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

static void set_ended(struct interp *interp, bool ended)
{
    interp_lock();
    interp->ended = ended;
    interp_unlock();
}

/* The interpreter's dict is freed when the interpreter is cleared.  GIL held. */
static void on_end(PyObject *capsule)
{
    struct interp *interp = py.PyCapsule_GetPointer(capsule, end_name);
    for (size_t i = 0; hooks[i]; i++)
        if (hooks[i]->end)
            hooks[i]->end(interp);
    set_ended(interp, true);
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
    for (size_t i = 0; hooks[i]; i++)
        if (hooks[i]->start && hooks[i]->fits())
            hooks[i]->start(interp);
    if (!py.PyInterpreterState_GetDict) /* 3.8+ */
        return true;
    PyObject *dict = py.PyInterpreterState_GetDict(interp->state); /* borrowed */
    PyObject *capsule = dict ? py.PyCapsule_New(interp, end_name, on_end) : NULL;
    /* Not PyDict_SetItemString(), which interns the name: 3.12 keeps that for ever. */
    PyObject *name = capsule ? py.PyUnicode_FromString(end_name) : NULL;
    bool kept = name && py.PyDict_SetItem(dict, name, capsule) == 0;
    set_ended(interp, !kept);
    if (name)
        py.Py_DecRef(name);
    if (capsule)
        py.Py_DecRef(capsule);
    return true;
}

void arm_start(bool is_new)
{
    struct interp *interp = interp_of(cpython_interpreter());
    if (!interp || (interp->started && (!is_new || !interp->ended)))
        return;
    interp_lock();
    if (is_new) /* the one before Py_Finalize() lay here, and had its id */
        interp_reset(interp);
    interp->started = interp->ended = true;
    interp->is_main = cpython_is_main();
    interp_unlock();
    with_interp(interp, start, 0);
    if (wanted_markers())
        arm_here();
}

/* ---------------------------------------------------------------- asking */

/* Set by atexit's function, at the end of the main interpreter. */
static atomic_bool closed;

void arm_close(void)
{
    closed = true;
}

void arm_open(void)
{
    closed = false;
}

/* What arm_attach() was given, until it has been called. */
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
    bool done = arm_here();
    if (meet && to_meet) /* it is to be called again */
        arm_meet(to_meet);
    return done;
}

/* A pending call.  3.12 and later: on any thread of the interpreter; before, on the main thread. */
static int arm_pending(void *unused)
{
    (void)unused;
    struct interp *interp = interp_of(cpython_interpreter());
    if (!closed) {
        arm_asked();
        for (size_t i = 0; hooks[i]; i++)
            if (hooks[i]->visit && interp && (interp->armed & hooks[i]->markers))
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

/* On the watcher's thread.  An interpreter on the list that has not ended can't do so before the
 * lock is free. */
static void ask_312(unsigned wanted, bool look)
{
    interp_lock();
    for (struct interp *interp = interp_first(); interp; interp = interp->next) {
        if (interp->ended || (interp->armed_for == wanted && !look) ||
            atomic_exchange(&interp->asked, true))
            continue;
        if (!add_call(interp->state))
            interp->asked = false;
    }
    interp_unlock();
}

static bool answer(void);

/* GIL held, or no other thread. */
static bool knock_at(struct interp *interp, bool again)
{
    hook_answer = answer;
    if (knocker()->knock(interp, again) != HOOK_DONE)
        return false;
    interp->knocked = true;
    return true;
}

/* GIL held, on the watcher's thread. */
static void knock(struct interp *interp)
{
    if (!knock_at(interp, interp->knocked) &&
        !interp->is_main) /* which is asked by a pending call, too */
        interp->armed_for = wanted_markers();
}

/* GIL held, on the watcher's thread.  3.8 prints a complaint if it is asked for a pending call
 * while the functions of atexit run (Python/ceval.c, _PyEval_AddPendingCall). */
static void ask_main_thread(void)
{
    if (py.minor != 8 && !atomic_exchange(&main_asked, true) &&
        py.Py_AddPendingCall(arm_pending, NULL) != 0)
        main_asked = false;
}

/* The shim was loaded into a running Python, where it does not see an interpreter start. */
static bool starts_unseen;

/* Up to 3.11 all interpreters share the GIL, which is held here, and under which CPython makes and
 * ends them: so the list stays as it is meanwhile. */
static void for_each_311(void (*act)(struct interp *, unsigned), unsigned wanted)
{
    hook_knocks = 0;
    for (PyInterpreterState *state = py.PyInterpreterState_Head(); state;
         state = py.PyInterpreterState_Next(state)) {
        struct interp *interp = interp_of(state);
        if (interp)
            act(interp, wanted);
    }
}

static void ask_one_311(struct interp *interp, unsigned wanted)
{
    if (starts_unseen)
        interp->started = true;
    if (!interp->started)
        return;
    if (interp->armed_for != wanted)
        knock(interp);
    hook_knocks += interp->knocked;
    /* In 3.11, while a trace or profile function is set, a Python function that another pending
     * call calls doesn't begin as long as one waits (Python/ceval.c, DO_TRACING). */
    if (interp->is_main && py.minor != 11 && (wanted || interp->armed_for != wanted))
        ask_main_thread();
}

bool arm_calls_stuck(void)
{
    return calls_stuck;
}

bool arm_needs_gil(void)
{
    return py.minor <= 11 || calls_stuck;
}

/* The main interpreter's record, or NULL.  No lock: of what is on the list only the head changes.
 */
static struct interp *main_interp(void)
{
    struct interp *interp = interp_first();
    while (interp && !interp->is_main)
        interp = interp->next;
    return interp;
}

/* On the watcher's thread, with the GIL. */
static void ask_stuck(unsigned wanted)
{
    struct interp *interp = main_interp();
    if (interp && interp->armed_for != wanted && knock_at(interp, interp->knocked))
        hook_knocks = 1;
}

void arm_ask(unsigned wanted, bool look)
{
    if (py.minor >= 12) {
        if (calls_stuck)
            ask_stuck(wanted);
        else
            ask_312(wanted, look);
        return;
    }
    arm_by(set_quiet_hooks);
    for_each_311(ask_one_311, wanted);
}

bool arm_done(unsigned wanted)
{
    bool done = true;
    interp_lock();
    for (struct interp *interp = interp_first(); interp && done; interp = interp->next)
        done = !interp->started || interp->armed_for == wanted ||
               (py.minor < 8 ? !interp->is_main : interp->ended);
    interp_unlock();
    return done;
}

static void attach_one_311(struct interp *interp, unsigned unused)
{
    (void)unused;
    interp->is_main = interp->state == cpython_main_interpreter();
    knock(interp);
    hook_knocks += interp->knocked;
}

/* The watcher's thread is the main interpreter's. */
bool arm_attach(void (*meet)(void))
{
    to_meet = meet;
    if (py.minor >= 12)
        return py.PyInterpreterState_Main && add_call(py.PyInterpreterState_Main());
    for_each_311(attach_one_311, 0);
    ask_main_thread();
    return true;
}

/* The records need no lock: no other thread is there. */
void arm_meet(void (*meet)(void))
{
    struct interp *interp = main_interp();
    /* 3.13 ends the process if the frame hook is set without the GIL. */
    if (py.PyThreadState_GetUnchecked && !py.PyThreadState_GetUnchecked())
        interp = NULL;
    to_meet = interp ? meet : NULL;
    if (to_meet && knock_at(interp, false))
        hook_knocks = 1;
}

void arm_meet_others(void)
{
    starts_unseen = true;
}

/* Called by hooks, as hook_answer(). */
static bool answer(void)
{
    struct interp *interp = interp_of(cpython_interpreter());
    if (!interp)
        return false;
    if (!interp->knocked)
        return true;
    if (closed)
        return false;
    if (!knocker()->fits()) /* 3.12 and later: the hook has been taken out */
        interp->knocked = false;
    arm_asked();
    if (interp->knocked) /* another thread is at it, or it isn't ready */
        return false;
    return interp->armed & knocker()->markers;
}
