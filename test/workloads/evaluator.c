/*
 * A program's own frame evaluator, which calls the one before it, and is set again whenever another
 * one is set (as in torch/csrc/dynamo/eval_frame.c).  CPython 3.9 and later.
 *
 * SPDX-License-Identifier: MIT
 */
typedef void *(*evaluator)(void *, void *, int);
extern evaluator _PyInterpreterState_GetEvalFrameFunc(void *);
extern void _PyInterpreterState_SetEvalFrameFunc(void *, evaluator);
extern void *PyInterpreterState_Get(void);
extern void *_PyEval_EvalFrameDefault(void *, void *, int);

static evaluator previous;

static void *evaluate(void *thread, void *frame, int throw)
{
    return (previous ? previous : _PyEval_EvalFrameDefault)(thread, frame, throw);
}

int in_front(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == evaluate;
}

void put_back_the_default(void)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault);
}

int is_the_default(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == _PyEval_EvalFrameDefault;
}

void put_in_front(void)
{
    if (in_front())
        return;
    previous = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
}
