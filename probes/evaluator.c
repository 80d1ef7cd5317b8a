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

void *eval_frame_get(PyInterpreterState *state)
{
    return py._PyInterpreterState_GetEvalFrameFunc ? py._PyInterpreterState_GetEvalFrameFunc(state)
                                                   : *slot_of(state);
}

/* Without the GIL CPython stops the world for it. */
void eval_frame_set(PyInterpreterState *state, void *evaluator)
{
    if (!can_stop_the_world())
        return;
    if (py._PyInterpreterState_SetEvalFrameFunc)
        py._PyInterpreterState_SetEvalFrameFunc(state, evaluator);
    else
        *slot_of(state) = evaluator;
}

static bool place_known;

bool eval_frame_accessible(PyInterpreterState *state)
{
    static bool found;
    if (found || place_known || py._PyInterpreterState_SetEvalFrameFunc)
        return true;
    found = interpreter_eval_frame_offset(py.minor) && *slot_of(state) == eval_frame_default();
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
    if (!interpreter_eval_frame_offset(py.minor) || !eval_frame_default())
        return false;
    if (py.minor <= 8)
        return eval_frame_accessible(state);
    if (eval_frame_get(state) != eval_frame_default())
        return false;
    void *before = *slot_of(state);
    bool known = shows(state, other);
    py._PyInterpreterState_SetEvalFrameFunc(state, eval_frame_default());
    return known && *slot_of(state) == before;
}

void eval_frame_locate(PyInterpreterState *state, void *other)
{
    place_known = is_place_known(state, other);
}

bool eval_frame_replace_default(PyInterpreterState *state, void *evaluator)
{
    if (!place_known)
        return false;
    void **slot = slot_of(state), *now = __atomic_load_n(slot, __ATOMIC_RELAXED);
    return now == evaluator || ((!now || now == eval_frame_default()) &&
                                __atomic_compare_exchange_n(slot, &now, evaluator, false,
                                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}
