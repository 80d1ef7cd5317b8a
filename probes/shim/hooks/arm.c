/*
 * Keeps the list of interpreters, and arms them: sets each hook while one of its markers is
 * enabled, and takes it out afterwards.
 *
 * GIL held, unless hook.h says otherwise.  CPython's functions may hand the GIL to another thread
 * meanwhile: `arming` of the record keeps that thread from setting hooks in the same interpreter.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/code.h"
#include "cpython/threads.h"
#include "hooks/frame_eval.h"
#include "hooks/hook.h"
#include "markers/filter.h"
#include "os/process.h"
#include "sums/sums.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---------------------------------------------------------------- the list of interpreters */

static struct interp *_Atomic interps;
static pthread_mutex_t interps_lock = PTHREAD_MUTEX_INITIALIZER;

void interp_lock(void)
{
    pthread_mutex_lock(&interps_lock);
}

void interp_unlock(void)
{
    pthread_mutex_unlock(&interps_lock);
}

struct interp *interp_first(void)
{
    return interps;
}

/* 3.7 and later reuse no id between Py_Initialize() and Py_Finalize(). */
static int64_t id_of(PyInterpreterState *state)
{
    return py.PyInterpreterState_GetID ? py.PyInterpreterState_GetID(state) : 0;
}

enum { NO_ID = -1 };

/* Makes it the record of no interpreter, until interp_of() is called for an interpreter at the same
 * address.  Reads no memory of the interpreter that had the record, and drops no references: its
 * objects ended with it.  Under the list's lock. */
static void forget(struct interp *interp)
{
    interp->is_main = interp->lacks_id = interp->rearm_forced = false;
    interp->arming = false;
    interp->calls_pending = 0;
    interp->armed = 0;
    interp->armed_for = 0;
    memset(&interp->id, 0, sizeof *interp - offsetof(struct interp, id));
    interp->id = NO_ID;
    interp->tool_id = -1;
}

/* Sets the initial values of a new interpreter.  Under the list's lock. */
static void reset(struct interp *interp)
{
    forget(interp);
    interp->id = id_of(interp->state);
}

struct interp *interp_of(PyInterpreterState *state)
{
    interp_lock();
    struct interp *interp = interps;
    while (interp && interp->state != state)
        interp = interp->next;
    if (!interp && (interp = calloc(1, sizeof *interp))) {
        interp->state = state;
        interp->next = interps;
        reset(interp);
        interps = interp;
    } else if (interp && interp->id != id_of(state)) {
        reset(interp); /* another interpreter at the same address */
    }
    interp_unlock();
    return interp;
}

struct interp *interp_main(void)
{
    struct interp *interp = interps;
    while (interp && !interp->is_main)
        interp = interp->next;
    return interp;
}

/* What interp_keep() keeps, or NULL. */
static struct interp *_Atomic kept_interp;

bool interp_keep(struct interp *interp)
{
    interp_lock();
    kept_interp = interp->started && !interp->ended ? interp : NULL;
    interp_unlock();
    return kept_interp;
}

void interp_let_go(void)
{
    kept_interp = NULL;
}

static void set_ended(struct interp *interp, bool ended)
{
    struct timespec pause = {0, 100000};
    interp_lock();
    interp->ended = ended;
    interp_unlock();
    while (ended && kept_interp == interp)
        nanosleep(&pause, NULL);
}

bool interp_forget_ended(void)
{
    interp_lock();
    struct interp *main = interp_main();
    bool has_ended = !main || main->ended;
    for (struct interp *interp = interps; has_ended && interp; interp = interp->next)
        forget(interp);
    interp_unlock();
    return has_ended;
}

bool interp_lacks_id(void)
{
    struct interp *interp = interps;
    while (interp && !interp->lacks_id)
        interp = interp->next;
    return interp;
}

bool interp_any_arming(void)
{
    struct interp *interp = interps;
    while (interp && !interp->arming)
        interp = interp->next;
    return interp;
}

void interp_after_fork(void)
{
    pthread_mutex_init(&interps_lock, NULL);
    kept_interp = NULL;
    for (struct interp *interp = interps; interp; interp = interp->next) {
        interp->arming = false;
        interp->calls_pending = 0;
    }
}

/* ---------------------------------------------------------------- state that hooks read */

static __thread bool is_arming;

bool thread_is_arming(void)
{
    return is_arming;
}

bool set_thread_is_arming(bool arming)
{
    bool before = is_arming;
    is_arming = arming;
    return before;
}

atomic_uint rearm_requests;

/* ---------------------------------------------------------------- the table of hooks */

/* A new hook is one line here. */

extern const struct hook hook_gc, hook_import, hook_audit, hook_memory, hook_monitoring;

const struct hook *const hooks[] = {
    &hook_gc,
    &hook_import,
    &hook_audit,
    &hook_memory,
    /* functions last: Python code that the other hooks run is not the program's */
    &hook_monitoring,
    &hook_frame,
    NULL,
};

/* ---------------------------------------------------------------- after a fork */

void arm_after_fork(void)
{
    interp_after_fork();
    memory_after_fork();
    code_reset_pending();
    sums_after_fork();
    filter_after_fork();
}

/* ---------------------------------------------------------------- the calling interpreter */

static bool code_ready(struct interp *interp)
{
    if (interp->code == CODE_EXTRA_UNTRIED)
        interp->code = code_extra_setup() ? CODE_EXTRA_READY : CODE_EXTRA_UNUSABLE;
    return interp->code == CODE_EXTRA_READY;
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

static void log_result(const struct hook *hook, unsigned want, enum hook_result result)
{
    char names[MARKERS_TEXT];
    if (!debug_on)
        return;
    markers_to_text(want, names);
    if (result == HOOK_NEVER)
        debug_log("%s: can't be installed here, which leaves out: %s", hook->name, names);
    else if (result == HOOK_LACKS)
        return;
    else if (result == HOOK_LATER)
        debug_log("%s: CPython is not ready for it yet; enabled for: %s", hook->name, names);
    else if (want)
        debug_log("%s: installed for: %s", hook->name, names);
    else
        debug_log("%s: removed", hook->name);
}

static bool rearm_is_forced(const struct interp *interp, const struct hook *hook)
{
    return hook == &hook_frame && interp->rearm_forced;
}

/* Whether the hook was last set for other markers, or for other patterns. */
static bool hook_is_outdated(const struct interp *interp, const struct hook *hook, unsigned want)
{
    return (interp->armed & hook->markers) != want ||
           ((want & FILTERED_MARKERS) && interp->filter != filter_revision());
}

/* Sets one hook for these of its markers; 0: takes it out.  No exception in flight.  False: not
 * ready. */
static bool update_hook(struct interp *interp, const struct hook *hook, unsigned want)
{
    bool changed = hook_is_outdated(interp, hook, want) || rearm_is_forced(interp, hook);
    unsigned filter = filter_revision(); /* before set(): a newer revision may come meanwhile */
    enum hook_result result = set_hook(hook, interp, want);
    if (changed)
        log_result(hook, want, result);
    if (result == HOOK_LATER)
        return false;
    if (rearm_is_forced(interp, hook)) {
        rearm_requests--;
        interp->rearm_forced = false;
    }
    interp->armed &= ~hook->markers;
    if (want & FILTERED_MARKERS)
        interp->filter = filter;
    if (result == HOOK_DONE)
        interp->armed |= want;
    else if (result == HOOK_NEVER)
        interp->unavailable |= hook->markers;
    return true;
}

/* from_watcher: only the hooks that the watcher may set.  No exception in flight.  False: a hook is
 * left to set. */
static bool update_hooks(struct interp *interp, unsigned enabled, bool from_watcher)
{
    bool settled = true;
    for (size_t i = 0; hooks[i]; i++) {
        const struct hook *hook = hooks[i];
        unsigned requested = enabled & hook->markers, want = requested & ~interp->unavailable;
        bool changed = hook_is_outdated(interp, hook, want) ||
                       (!requested && (interp->unavailable & hook->markers)) ||
                       (!from_watcher && rearm_is_forced(interp, hook));
        if (!(changed || (want && hook->must_recheck)) || !hook->is_supported())
            continue;
        bool may_update =
            !from_watcher || hook->watcher_may_set || (!changed && hook->watcher_may_reset);
        bool done = may_update ? update_hook(interp, hook, want) : !changed;
        if (done && !requested) /* the next tracer may have what this one could not */
            interp->unavailable &= ~hook->markers;
        settled = done && settled;
    }
    return settled;
}

/* The thread's state before it sets hooks: the exception in flight, and whether it was setting
 * hooks already. */
struct before {
    PyObject *type, *value, *traceback;
    bool arming;
};

static struct before begin_setting(void)
{
    struct before before;
    py.PyErr_Fetch(&before.type, &before.value, &before.traceback);
    before.arming = set_thread_is_arming(true);
    return before;
}

static void end_setting(struct before before)
{
    set_thread_is_arming(before.arming);
    py.PyErr_Clear();
    py.PyErr_Restore(before.type, before.value, before.traceback);
}

/* A value of armed_for that no filter_arm_key() equals: the watcher rearms the interpreter
 * again. */
enum { ARMED_FOR_NOTHING = 1 << 30 };

static claim_flag has_armed;

bool arm_since_last_look(void)
{
    return atomic_exchange(&has_armed, false);
}

/* from_watcher: only the hooks that the watcher may set. */
static bool arm(bool from_watcher)
{
    struct interp *interp = interp_of(cpython_interpreter());
    if (!interp)
        return false;
    /* Calls into CPython may let another thread run, which may arm the same interpreter. */
    if (atomic_exchange(&interp->arming, true)) {
        if (!thread_is_arming()) /* else code of the program called this, while this thread arms */
            interp->armed_for = ARMED_FOR_NOTHING; /* the other may have read old semaphores */
        has_armed = true;
        return false;
    }
    /* After interp_of(): the watcher that sees a later change finds the record on the list. */
    unsigned enabled = markers_enabled();
    filter_refresh(enabled);
    uint64_t want = filter_arm_key(enabled);
    interp->armed_for = want;
    struct before before = begin_setting();
    bool settled = update_hooks(interp, enabled, from_watcher);
    end_setting(before);
    if (!settled)
        interp->armed_for = ARMED_FOR_NOTHING;
    atomic_store(&interp->arming, false);
    if (enabled || !settled)
        has_armed = true;
    return settled;
}

bool arm_current(void)
{
    return arm(false);
}

bool arm_current_from_watcher(void)
{
    return arm(true);
}

/* ---------------------------------------------------------------- interpreters: start and end */

static const char end_name[] = "python-stap";

/* Destructor of a capsule in the interpreter's dict, which CPython frees when it clears the
 * interpreter. */
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

static void start(struct interp *interp)
{
    /* Code objects with records may be left from before Py_Finalize().  Up to 3.7, freeing one
     * calls a function pointer of the interpreter that is uninitialised until it has requested an
     * index (Objects/codeobject.c: code_dealloc(); Python/pystate.c: PyInterpreterState_New()). */
    if (code_extra_in_use())
        code_ready(interp);
    for (size_t i = 0; hooks[i]; i++)
        if (hooks[i]->start && hooks[i]->is_supported())
            hooks[i]->start(interp);
    if (!py.PyInterpreterState_GetDict) /* 3.8+ */
        return;
    PyObject *dict = py.PyInterpreterState_GetDict(interp->state); /* borrowed */
    PyObject *capsule = dict ? py.PyCapsule_New(interp, end_name, on_end) : NULL;
    /* Not PyDict_SetItemString(): it interns the name, which 3.12 then keeps forever. */
    PyObject *name = capsule ? py.PyUnicode_FromString(end_name) : NULL;
    bool kept = name && py.PyDict_SetItem(dict, name, capsule) == 0;
    set_ended(interp, !kept);
    if (name)
        py.Py_DecRef(name);
    if (capsule)
        py.Py_DecRef(capsule);
}

void arm_interpreter_started(bool is_new)
{
    struct interp *interp = interp_of(cpython_interpreter());
    if (!interp || (interp->started && (!is_new || !interp->ended)))
        return;
    bool is_main = cpython_is_main();
    interp_lock();
    if (is_new) /* an interpreter that has ended had this address and id */
        reset(interp);
    interp->started = interp->ended = true;
    interp->is_main = is_main;
    interp_unlock();
    struct before before = begin_setting();
    start(interp);
    end_setting(before);
    if (markers_enabled())
        arm_current();
}
