/*
 * Puts hooks into interpreters and takes them out.  Called by the loader when an interpreter
 * starts, and by the watcher when a tracer comes or goes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm.h"

#include "code.h"
#include "debug.h"
#include "native.h"

#include <pthread.h>
#include <stdlib.h>

static const struct hook *const hooks[] = {
    /* functions last: what the others do in Python is not the program's */
    &hook_gc, &hook_import, &hook_audit, &hook_monitoring, &hook_frame,
};

bool arm_all;

/* Interpreters are never taken off the list, so a pointer to one stays good.  The lock guards the
 * list alone, and no call into CPython is made under it. */
static struct interp *interps;
static pthread_mutex_t interps_lock = PTHREAD_MUTEX_INITIALIZER;

static __thread bool busy;

bool arm_busy(void)
{
    return busy;
}

/* Markers that stay silent because CPython's own are live. */
static unsigned silent;

static void find_silent(void)
{
    silent = native_markers();
}

unsigned arm_wanted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned wanted = 0;
    for (int i = 0; i < MARKERS; i++)
        if (*marker_info[i].semaphore)
            wanted |= 1u << i;
    if (wanted && !arm_all)
        pthread_once(&once, find_silent);
    return wanted & ~silent;
}

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

/* The record of the calling interpreter, made where there is none; NULL where memory ran out. */
static struct interp *interp_here(void)
{
    PyInterpreterState *state = cpython_interpreter();
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

void arm_new_interpreter(void)
{
    struct interp *interp = interp_here();
    if (interp)
        reset(interp);
}

static bool hook_ready(const struct hook *hook, struct interp *interp)
{
    if (!hook->uses_code)
        return true;
    if (interp->code == CODE_UNTRIED)
        interp->code = code_setup() ? CODE_READY : CODE_UNUSABLE;
    return interp->code == CODE_READY;
}

static bool set_hooks(struct interp *interp, unsigned wanted)
{
    bool settled = true;
    if (!wanted) /* the next tracer may find what this one lacked */
        interp->never = 0;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        const struct hook *hook = hooks[i];
        unsigned want = wanted & hook->markers & ~interp->never;
        if ((interp->armed & hook->markers) == want || !hook->fits())
            continue;
        enum hook_result result = hook_ready(hook, interp) ? hook->set(interp, want) : HOOK_NEVER;
        debug_log("%s: markers %x: %s", hook->name, want,
                  result == HOOK_DONE    ? "set"
                  : result == HOOK_LATER ? "not yet"
                                         : "can't be had here");
        if (result == HOOK_DONE)
            interp->armed = (interp->armed & ~hook->markers) | want;
        else if (result == HOOK_NEVER)
            interp->never |= hook->markers;
        else
            settled = false;
    }
    return settled;
}

bool arm_here(unsigned wanted)
{
    struct interp *interp = interp_here();
    if (!interp)
        return false;
    /* Calls into CPython may let another thread run, which may come here for the same
     * interpreter. */
    if (atomic_exchange(&interp->arming, true))
        return false;
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    bool was_busy = busy;
    busy = true;
    bool settled = set_hooks(interp, wanted);
    busy = was_busy;
    py.PyErr_Clear();
    py.PyErr_Restore(type, value, traceback);
    atomic_store(&interp->arming, false);
    return settled;
}
