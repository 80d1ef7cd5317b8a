/*
 * See evaluator.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "evaluator.h"

#include "cpython_layout.h"
#include "debug.h"
#include "thread_states.h"

#include <stddef.h>

static void **slot_of(PyInterpreterState *state)
{
    return (void **)((char *)state + interpreter_eval_frame_offset(py.minor));
}

void *evaluator_of(PyInterpreterState *state)
{
    return py._PyInterpreterState_GetEvalFrameFunc ? py._PyInterpreterState_GetEvalFrameFunc(state)
                                                   : *slot_of(state);
}

/* Without the GIL CPython stops the world for it. */
void evaluator_set(PyInterpreterState *state, void *evaluator)
{
    if (!thread_states_can_stop())
        return;
    if (py._PyInterpreterState_SetEvalFrameFunc)
        py._PyInterpreterState_SetEvalFrameFunc(state, evaluator);
    else
        *slot_of(state) = evaluator;
}

static bool place_known;

bool evaluator_found(PyInterpreterState *state)
{
    static bool found;
    if (found || place_known || py._PyInterpreterState_SetEvalFrameFunc)
        return true;
    found = interpreter_eval_frame_offset(py.minor) && *slot_of(state) == evaluator_default();
    if (!found)
        debug_log("this CPython keeps its frame evaluator elsewhere than the release of 3.%d",
                  py.minor);
    return found;
}

/* Whether what the public function sets is seen there. */
static bool shows(PyInterpreterState *state, void *evaluator)
{
    py._PyInterpreterState_SetEvalFrameFunc(state, evaluator);
    return *slot_of(state) == evaluator;
}

static bool is_place_known(PyInterpreterState *state, void *other)
{
    if (!interpreter_eval_frame_offset(py.minor) || !evaluator_default())
        return false;
    if (py.minor <= 8)
        return evaluator_found(state);
    if (evaluator_of(state) != evaluator_default())
        return false;
    void *before = *slot_of(state);
    bool known = shows(state, other);
    py._PyInterpreterState_SetEvalFrameFunc(state, evaluator_default());
    return known && *slot_of(state) == before;
}

void evaluator_learn_place(PyInterpreterState *state, void *other)
{
    place_known = is_place_known(state, other);
}

bool evaluator_replace_default(PyInterpreterState *state, void *evaluator)
{
    if (!place_known)
        return false;
    void **slot = slot_of(state), *now = __atomic_load_n(slot, __ATOMIC_RELAXED);
    return now == evaluator || ((!now || now == evaluator_default()) &&
                                __atomic_compare_exchange_n(slot, &now, evaluator, false,
                                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}
