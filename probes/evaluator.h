/*
 * Where CPython keeps an interpreter's frame evaluator (PEP 523).  Up to 3.8 it exports no function
 * for that, and never one that changes it only if it is still the same.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef EVALUATOR_H
#define EVALUATOR_H

#include "cpython.h"

/* CPython's own. */
static inline void *eval_frame_default(void)
{
    return (void *)py._PyEval_EvalFrameDefault;
}

/* Whether it can be read and set: called first.  GIL held. */
bool eval_frame_accessible(PyInterpreterState *state);

/* GIL held. */
void *eval_frame_get(PyInterpreterState *state);
void eval_frame_set(PyInterpreterState *state, void *evaluator);

/* Puts this one in place of CPython's own, by one instruction; false: there was another one, or the
 * place is not known.  Up to 3.11; any thread, no GIL.  CPython reads the place once for each call
 * up to 3.10; 3.11's _PyEval_EvalFrame() compares it with NULL first, which it does not become
 * here. */
bool eval_frame_replace_default(PyInterpreterState *state, void *evaluator);

/* Finds out whether that can be done, before it first is; 3.9 and later by setting the other
 * evaluator for a moment.  GIL held. */
void eval_frame_locate(PyInterpreterState *state, void *other);

#endif
