/*
 * Frame objects: their code, globals and callers, and the markers of a frame.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame.h"

#include "arm.h"
#include "code.h"
#include "debug.h"
#include "layout.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- one frame */

/* Include/frameobject.h (3.6-3.8), Include/cpython/frameobject.h (3.9, 3.10).  There is a public
 * function for the code from 3.9 on, for the caller too, and for the globals from 3.11 on. */
struct frame_310 {
    void *head[3]; /* PyObject_VAR_HEAD */
    PyFrameObject *back;
    PyObject *code, *builtins, *globals;
};

static PyObject *borrowed(PyObject *object)
{
    if (object)
        py.Py_DecRef(object);
    else
        py.PyErr_Clear();
    return object;
}

/* An attribute that the frame keeps.  f_code is an audited one from 3.8 on. */
static PyObject *attribute(PyFrameObject *frame, const char *name)
{
    return borrowed(py.PyObject_GetAttrString((PyObject *)frame, name));
}

static PyObject *public_code(PyFrameObject *frame)
{
    return py.PyFrame_GetCode ? borrowed(py.PyFrame_GetCode(frame)) : attribute(frame, "f_code");
}

/* Whether struct frame_310 is right, found out on the first frame that comes. */
static bool layout_is_known(PyFrameObject *object)
{
    static enum { UNTRIED, KNOWN, UNKNOWN } layout;
    struct frame_310 *frame = (struct frame_310 *)object;
    if (py.minor > 10)
        return false;
    if (layout == UNTRIED) {
        layout = frame->globals == attribute(object, "f_globals") &&
                         frame->builtins == attribute(object, "f_builtins") &&
                         (!py.PyFrame_GetCode || frame->code == public_code(object))
                     ? KNOWN
                     : UNKNOWN;
        if (layout == UNKNOWN)
            debug_log("the frames of this CPython are not those of the release: slower access");
    }
    return layout == KNOWN;
}

PyObject *frame_code(PyFrameObject *frame)
{
    return layout_is_known(frame) ? ((struct frame_310 *)frame)->code : public_code(frame);
}

PyObject *frame_globals(PyFrameObject *frame)
{
    if (py.PyFrame_GetGlobals)
        return borrowed(py.PyFrame_GetGlobals(frame));
    return layout_is_known(frame) ? ((struct frame_310 *)frame)->globals
                                  : attribute(frame, "f_globals");
}

PyFrameObject *frame_back(PyFrameObject *frame)
{
    if (py.PyFrame_GetBack)
        return py.PyFrame_GetBack(frame);
    PyObject *back = layout_is_known(frame) ? (PyObject *)((struct frame_310 *)frame)->back
                                            : attribute(frame, "f_back");
    if (!back || back == py.none)
        return NULL;
    py.Py_IncRef(back);
    return (PyFrameObject *)back;
}

PyFrameObject *frame_current(void)
{
    PyFrameObject *frame = py.PyEval_GetFrame();
    if (frame)
        py.Py_IncRef((PyObject *)frame);
    return frame;
}

/* ---------------------------------------------------------------- 3.11 and later */

/* What is known of _PyInterpreterFrame from 3.12 on (pycore_interpframe_structs.h in 3.14). */
struct frame_312 {
    uintptr_t code; /* from 3.14 on with a tag */
    void *previous, *function;
    PyObject *globals;
};

/* A thread's stand-ins, by the frame's address: of the places that a frame may have the first that
 * is free, or the first of all where none is.  Neighbours on the stack of frames, of which none is
 * smaller than 64 bytes, begin with different ones; that stack is in pieces, whose frames may begin
 * with the same ones, all along, and so go on with places far away.  A frame has one from its entry
 * to its return. */
enum { STAND_INS = 4096, PLACES = 32, STRIDE = 2531 };
static __thread struct frame_object_311 *stand_ins;
static __thread unsigned stand_ins_tracer; /* whose they are (frame_tracer) */
static PyObject *frame_type;

/* The stand-ins of all threads, those that have ended too: so that the child of a fork, which has
 * one of the threads, can use the others' again. */
struct owned {
    struct owned *next;
    struct frame_object_311 *stand_ins; /* its owner's, or of an owner that the fork left behind */
    atomic_bool has_owner;
};
static _Atomic(struct owned *) all_owned;
static pthread_key_t owned_key;
static bool has_key;

/* Of a thread that ends.  A fork may come between any two lines. */
static void disown(void *data)
{
    struct owned *owned = data;
    stand_ins = NULL;
    struct frame_object_311 *unused = owned->stand_ins;
    owned->stand_ins = NULL;
    atomic_thread_fence(memory_order_release);
    free(unused);
    owned->has_owner = false;
}

static void make_key(void)
{
    has_key = pthread_key_create(&owned_key, disown) == 0;
}

static struct owned *own(void)
{
    for (struct owned *owned = all_owned; owned; owned = owned->next) {
        if (!owned->has_owner && !atomic_exchange(&owned->has_owner, true))
            return owned;
    }
    struct owned *owned = calloc(1, sizeof *owned);
    if (!owned)
        return NULL;
    owned->has_owner = true;
    owned->next = all_owned;
    while (!atomic_compare_exchange_weak(&all_owned, &owned->next, owned))
        ;
    return owned;
}

static bool make_stand_ins(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    struct owned *owned = has_key ? own() : NULL;
    if (!owned)
        return false;
    if (owned->stand_ins)
        memset(owned->stand_ins, 0, STAND_INS * sizeof *stand_ins);
    else
        owned->stand_ins = calloc(STAND_INS, sizeof *stand_ins);
    if (!owned->stand_ins || pthread_setspecific(owned_key, owned) != 0) {
        disown(owned);
        return false;
    }
    stand_ins = owned->stand_ins;
    return true;
}

void frame_forked(void)
{
    struct owned *mine = has_key ? pthread_getspecific(owned_key) : NULL;
    for (struct owned *owned = all_owned; owned; owned = owned->next) {
        if (owned != mine)
            owned->has_owner = false;
    }
}

static struct frame_object_311 *place_of(void *frame, enum frame_event event)
{
    size_t place = (uintptr_t)frame / 64 % STAND_INS;
    struct frame_object_311 *first = &stand_ins[place];
    if (first->frame == frame || (event == FRAME_ENTRY && !first->frame))
        return first;
    struct frame_object_311 *free = NULL;
    for (int i = 0; i < PLACES; i++, place = (place + STRIDE) % STAND_INS) {
        if (stand_ins[place].frame == frame)
            return &stand_ins[place];
        if (!free && !stand_ins[place].frame)
            free = &stand_ins[place];
    }
    return free ? free : first;
}

PyFrameObject *frame_stand_in(void *frame, enum frame_event event)
{
    if (__builtin_expect(!stand_ins, 0) && !make_stand_ins())
        return NULL;
    /* Of tracers before, that were told of no returns, or left before them. */
    if (__builtin_expect(stand_ins_tracer != frame_tracer, 0)) {
        memset(stand_ins, 0, STAND_INS * sizeof *stand_ins);
        stand_ins_tracer = frame_tracer;
    }
    struct frame_object_311 *object = place_of(frame, event);
    object->references = 1;
    object->type = frame_type;
    object->frame = frame;
    return (PyFrameObject *)object;
}

void frame_returned(PyFrameObject *shown)
{
    struct frame_object_311 *object = (struct frame_object_311 *)shown;
    if (stand_ins && object >= stand_ins && object < stand_ins + STAND_INS)
        object->frame = NULL;
}

static atomic_int objects_known; /* 1: they are where the release has them, -1: not */

static bool is_frame_of(PyFrameObject *object, void *frame)
{
    if (py.minor == 11) {
        const struct frame_311 *known = frame;
        return known->object == object && known->code == frame_code(object) &&
               known->globals == frame_globals(object);
    }
    const struct frame_312 *known = frame;
    return (known->code & ~(uintptr_t)7) == (uintptr_t)frame_code(object) &&
           known->globals == frame_globals(object);
}

void *frame_inside(PyFrameObject *object)
{
    void *frame = ((struct frame_object_311 *)object)->frame;
    if (objects_known)
        return objects_known > 0 ? frame : NULL;
    /* Py_TRACE_REFS: another PyObject_HEAD */
    bool right = !(py.minor == 11 && py.PySys_GetObject("getobjects")) && frame &&
                 (uintptr_t)frame % sizeof(void *) == 0 && is_frame_of(object, frame);
    frame_type = cpython_type((PyObject *)object);
    objects_known = right ? 1 : -1;
    if (!right)
        debug_log("the frames of this CPython are not those of the release: slower access");
    return right ? frame : NULL;
}

static PyFrameObject *shown(PyFrameObject *object, enum frame_event event)
{
    void *frame = object && py.minor >= 11 ? frame_inside(object) : NULL;
    return frame ? frame_stand_in(frame, event) : object;
}

/* Where the thread state has its current frame, in words: found by looking for it, twice. */
static atomic_int current_at;

static struct frame_312 *current(PyThreadState *thread, int at)
{
    void **word = (void **)thread + at;
    return py.minor == 12 ? *(void **)*word : *word; /* 3.12: cframe->current_frame */
}

static void find_current(void *frame)
{
    enum { CFRAME_312 = 7, WORDS = 24 };
    static _Atomic(void *) first;
    static atomic_int first_at;
    PyThreadState *thread = py.PyThreadState_Get();
    int at = 3; /* behind next, previous and interp */
    if (py.minor == 12)
        at = CFRAME_312;
    while (at < WORDS && current(thread, at) != frame)
        at = py.minor == 12 ? WORDS : at + 1;
    if (at == WORDS)
        first = NULL;
    else if (!first || at != first_at) {
        first_at = at;
        first = frame;
    } else if (first != frame) {
        current_at = at;
    }
}

static struct frame_now frame_now_by_object(PyObject *code, enum frame_event event)
{
    PyFrameObject *object = py.PyEval_GetFrame();
    void *frame = object ? frame_inside(object) : NULL;
    if (frame && !current_at)
        find_current(frame);
    return (struct frame_now){shown(object, event), py.PyEval_GetGlobals(),
                              object && frame_code(object) == code};
}

struct frame_now frame_now(PyObject *code, enum frame_event event)
{
    int at = atomic_load_explicit(&current_at, memory_order_relaxed);
    if (__builtin_expect(!at, 0))
        return frame_now_by_object(code, event);
    struct frame_312 *frame = current(py.PyThreadState_Get(), at);
    if (__builtin_expect(!frame || (frame->code & ~(uintptr_t)7) != (uintptr_t)code, 0))
        return frame_now_by_object(code, event);
    return (struct frame_now){frame_stand_in(frame, event), frame->globals, true};
}

/* ---------------------------------------------------------------- a frame's markers */

void frame_fire_entry(PyFrameObject *frame, int line)
{
    layout_meet(frame);
    struct code *record = code_of(frame_code(frame));
    marker_function__entry(code_text(&record->filename), code_text(&record->funcname), line,
                           shown(frame, FRAME_ENTRY), code_module(record, frame_globals(frame)));
}

void frame_fire_return(PyFrameObject *frame, int line)
{
    layout_meet(frame);
    struct code *record = code_of(frame_code(frame));
    PyFrameObject *object = shown(frame, FRAME_RETURN);
    marker_function__return(code_text(&record->filename), code_text(&record->funcname), line,
                            object, code_module(record, frame_globals(frame)));
    frame_returned(object);
}

/* ---------------------------------------------------------------- frames that run already */

enum { BOTH = MARKER_BIT(function__entry) | MARKER_BIT(function__return) };

atomic_uint frame_tracer;

/* What the hooks are set for; the semaphores may already say more. */
static atomic_uint known;

void frame_wanted(unsigned wanted)
{
    wanted &= BOTH;
    unsigned before = atomic_exchange(&known, wanted);
    if ((wanted & MARKER_BIT(function__return)) && (wanted & ~before))
        atomic_fetch_add(&frame_tracer, 1);
}

bool frame_enters_stack(void)
{
    return known == BOTH && MARKER_ON(function__entry) && MARKER_ON(function__return);
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

void frame_release(PyFrameObject **frames, size_t depth)
{
    while (depth > 0)
        py.Py_DecRef((PyObject *)frames[--depth]);
    free(frames);
}

void frame_enter_stack(PyFrameObject *const *frames, size_t depth)
{
    while (depth > 0) {
        PyFrameObject *frame = frames[--depth];
        frame_fire_entry(frame, py.PyFrame_GetLineNumber(frame));
    }
}
