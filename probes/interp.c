/*
 * The list of interpreters.
 *
 * SPDX-License-Identifier: MIT
 */
#include "interp.h"

#include <pthread.h>
#include <stdlib.h>

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

/* 3.7 and later never use an id twice. */
static int64_t id_of(PyInterpreterState *state)
{
    return py.PyInterpreterState_GetID ? py.PyInterpreterState_GetID(state) : 0;
}

void interp_reset(struct interp *interp)
{
    *interp = (struct interp){
        .next = interp->next, .state = interp->state, .id = id_of(interp->state), .tool_id = -1};
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
        interp_reset(interp);
        interps = interp;
    } else if (interp && interp->id != id_of(state)) {
        interp_reset(interp); /* another one at the same address */
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
    for (struct interp *interp = interps; interp; interp = interp->next) {
        interp->arming = false;
        interp->call_pending = false;
    }
}
