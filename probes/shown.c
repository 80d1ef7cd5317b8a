/*
 * The innermost frame of a thread, which the events of sys.monitoring are of.
 *
 * SPDX-License-Identifier: MIT
 */
#include "shown.h"

#include "cpython_layout.h"

#include <stdatomic.h>
#include <stddef.h>

/* Where the thread state has its current frame, in words: found by looking for it, twice. */
static atomic_int current_at;

static struct PyInterpreterFrame_312 *current(PyThreadState *thread, int at)
{
    /* another thread may be writing to what is no frame */
    void *word = __atomic_load_n((void **)thread + at, __ATOMIC_RELAXED);
    return py.minor == 12 ? ((struct PyCFrame_312 *)word)->current_frame : word;
}

static void find_current(void *frame)
{
    enum { CFRAME = offsetof(struct PyThreadState_312, cframe) / sizeof(void *) };
    static _Atomic(void *) first;
    static atomic_int first_at;
    PyThreadState *thread = py.PyThreadState_Get();
    int at = THREAD_FIRST_WORD;
    if (py.minor == 12)
        at = CFRAME;
    while (at < THREAD_WORDS && current(thread, at) != frame)
        at = py.minor == 12 ? THREAD_WORDS : at + 1;
    if (at == THREAD_WORDS)
        first = NULL;
    else if (!first || at != first_at) {
        first_at = at;
        first = frame;
    } else if (first != frame) {
        current_at = at;
    }
}

static struct event_frame now_by_object(PyObject *code)
{
    PyFrameObject *object = py.PyEval_GetFrame();
    void *frame = object ? frame_interpreter_frame(object) : NULL;
    if (frame && !current_at)
        find_current(frame);
    return (struct event_frame){frame ? frame : object, py.PyEval_GetGlobals(),
                                object && frame_code(object) == code};
}

struct event_frame event_frame_now(PyObject *code)
{
    int at = atomic_load_explicit(&current_at, memory_order_relaxed);
    if (__builtin_expect(!at, 0))
        return now_by_object(code);
    struct PyInterpreterFrame_312 *frame = current(py.PyThreadState_Get(), at);
    if (__builtin_expect(!frame || (frame->f_executable & ~CODE_TAG) != (uintptr_t)code, 0))
        return now_by_object(code);
    return (struct event_frame){frame, frame->f_globals, true};
}
