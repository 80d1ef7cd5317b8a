/*
 * Each event reads a frame, so frames are read directly if their structs compare as in the release,
 * and by CPython's public functions if not.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/frame.h"

#include "os/process.h"
#include "shared/cpython_structs.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- one frame object */

/* Drops the reference that a public function returned, as the frame keeps the object.  NULL: clears
 * the exception. */
static PyObject *borrowed(PyObject *object)
{
    if (object)
        py.Py_DecRef(object);
    else
        py.PyErr_Clear();
    return object;
}

/* Used where CPython has no public function: for code and caller up to 3.8, for globals up to 3.10.
 * Borrowed: the frame keeps the attribute.  From 3.8 on reading f_code raises an audit event. */
static PyObject *attribute(PyFrameObject *frame, const char *name)
{
    return borrowed(py.PyObject_GetAttrString((PyObject *)frame, name));
}

static PyObject *public_code(PyFrameObject *frame)
{
    return py.PyFrame_GetCode ? borrowed(py.PyFrame_GetCode(frame)) : attribute(frame, "f_code");
}

bool frame_layout_known;

/* Whether struct PyFrameObject_36 is right; compared with the first frame.  Up to 3.10 the members
 * that this file reads are at the same offsets. */
static bool layout_is_known(PyFrameObject *object)
{
    static bool tried;
    struct PyFrameObject_36 *frame = (struct PyFrameObject_36 *)object;
    if (py.minor > 10 || tried)
        return frame_layout_known;
    tried = true;
    frame_layout_known = frame->f_globals == attribute(object, "f_globals") &&
                         frame->f_builtins == attribute(object, "f_builtins") &&
                         (!py.PyFrame_GetCode || frame->f_code == public_code(object));
    if (!frame_layout_known)
        debug_log("frames in this CPython are not as in the release: they are read by public "
                  "functions, which is slower");
    return frame_layout_known;
}

PyObject *frame_code_by_api(PyFrameObject *frame)
{
    return layout_is_known(frame) ? ((struct PyFrameObject_36 *)frame)->f_code : public_code(frame);
}

PyObject *frame_globals_by_api(PyFrameObject *frame)
{
    if (py.PyFrame_GetGlobals)
        return borrowed(py.PyFrame_GetGlobals(frame));
    return layout_is_known(frame) ? ((struct PyFrameObject_36 *)frame)->f_globals
                                  : attribute(frame, "f_globals");
}

PyFrameObject *frame_back(PyFrameObject *frame)
{
    if (py.PyFrame_GetBack)
        return py.PyFrame_GetBack(frame);
    PyObject *back = layout_is_known(frame) ? (PyObject *)((struct PyFrameObject_36 *)frame)->f_back
                                            : attribute(frame, "f_back");
    if (!back || back == py.none)
        return NULL;
    py.Py_IncRef(back);
    return (PyFrameObject *)back;
}

/* ---------------------------------------------------------------- interpreter frames, 3.11+ */

/* Whether struct PyFrameObject_311 is right: 1 yes, -1 no, 0 not compared yet. */
static atomic_int objects_known;

static PyObject *code_of(const void *frame)
{
    uintptr_t code = *(const uintptr_t *)((const char *)frame + py.frame->executable);
    return (PyObject *)(code & ~CODE_TAG);
}

static bool is_frame_of(PyFrameObject *object, const void *frame)
{
    return code_of(frame) == frame_code(object) &&
           read_word(frame, py.frame->f_globals) == (char *)frame_globals(object) &&
           (py.minor > 11 || read_word(frame, py.frame->frame_obj) == (char *)object);
}

void *frame_interpreter_frame(PyFrameObject *object)
{
    void *frame = ((struct PyFrameObject_311 *)ob_base(object))->f_frame;
    if (objects_known)
        return objects_known > 0 ? frame : NULL;
    /* With Py_TRACE_REFS, where sys has getobjects(), objects have another head. */
    bool right = !(py.minor == 11 && py.PySys_GetObject("getobjects")) && frame &&
                 (uintptr_t)frame % sizeof(void *) == 0 && is_frame_of(object, frame);
    objects_known = right ? 1 : -1;
    if (!right)
        debug_log("frames in this CPython are not as in the release: they are read by public "
                  "functions, which is slower");
    return right ? frame : NULL;
}

/* ---------------------------------------------------------------- a thread's frames */

PyFrameObject *frame_current(void)
{
    PyFrameObject *frame = py.PyEval_GetFrame();
    if (frame)
        py.Py_IncRef((PyObject *)frame);
    return frame;
}

unsigned frame_executor_offset(void)
{
    if (py.minor < 15 || !py.has_debug_offsets)
        return 0;
    uint64_t exc_state =
        debug_offset(0, 0, offsetof(struct _Py_DebugOffsets_315, thread_state.exc_state));
    return word_offset(exc_state + EXC_STATE_TO_EXECUTOR, EXECUTOR_WORDS);
}

bool frame_repeats_resume(PyFrameObject *frame)
{
    unsigned at = frame_executor_offset();
    if (!at || !read_word(py.PyThreadState_Get(), at) || !py.PyFrame_GetLasti)
        return false;
    const void *interpreter_frame = frame_interpreter_frame(frame);
    if (!interpreter_frame)
        return false;
    const unsigned char *instruction = (void *)read_word(interpreter_frame, py.frame->instr_ptr);
    return py.PyFrame_GetLasti(frame) <= 0 || *instruction == OPCODE_RESUME_315 ||
           *instruction == OPCODE_INSTRUMENTED_RESUME_315;
}

size_t frame_stack(PyFrameObject *innermost, PyFrameObject ***frames)
{
    size_t depth = 0, room = 0;
    *frames = NULL;
    for (PyFrameObject *frame = innermost; frame; frame = frame_back(frame)) {
        if (depth == room) {
            size_t more = room ? 2 * room : 64;
            PyFrameObject **grown = realloc(*frames, more * sizeof *grown);
            if (!grown) {
                py.Py_DecRef((PyObject *)frame);
                break;
            }
            *frames = grown;
            room = more;
        }
        (*frames)[depth++] = frame;
    }
    return depth;
}

void frame_stack_release(PyFrameObject **frames, size_t depth)
{
    while (depth > 0)
        py.Py_DecRef((PyObject *)frames[--depth]);
    free(frames);
}

/* ---------------------------------------------------------------- event frames, 3.12+ */

/* The offset in a thread state of the current frame, in 3.12 of the address of the CFrame that has
 * it; 0: not compared yet. */
static atomic_uint current_at;

static void *current(PyThreadState *thread, unsigned at)
{
    char *word = read_word(thread, at);
    return py.minor == 12 ? ((struct PyCFrame_312 *)(void *)word)->current_frame : (void *)word;
}

static void compare_current(void *frame)
{
    unsigned at = py.minor == 12
                      ? offsetof(struct PyThreadState_312, cframe)
                      : word_offset(DEBUG_OFFSET(thread_state.current_frame), THREAD_WORDS);
    if (at && current(py.PyThreadState_Get(), at) == frame)
        current_at = at;
}

static struct event_frame now_by_object(PyObject *code)
{
    PyFrameObject *object = py.PyEval_GetFrame();
    void *frame = object ? frame_interpreter_frame(object) : NULL;
    if (frame && !current_at)
        compare_current(frame);
    return (struct event_frame){frame ? frame : object, py.PyEval_GetGlobals(),
                                object && frame_code(object) == code};
}

struct event_frame event_frame_now(PyObject *code)
{
    unsigned at = atomic_load_explicit(&current_at, memory_order_relaxed);
    if (__builtin_expect(!at, 0))
        return now_by_object(code);
    const char *frame = current(py.PyThreadState_Get(), at);
    if (__builtin_expect(!frame || code_of(frame) != code, 0))
        return now_by_object(code);
    return (struct event_frame){(void *)frame, *(PyObject **)(frame + py.frame->f_globals), true};
}
