/*
 * The frames that markers pass, and the stand-ins for them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "shown.h"

#include "cpython_layout.h"
#include "taken.h"
#include "tracer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- stand-ins */

/* To which tracers the entry of a frame was reported: tracer_plain and tracer_filtered then. */
struct told {
    uint32_t plain, filtered;
};

/* What reads as a PyFrameObject.  It is free if it has no frame, or one that only tracers before
 * know of: one to which no return was reported. */
struct stand_in {
    struct object_head_free_threaded head; /* that of other builds is its last part */
    PyFrameObject *back;
    void *frame; /* as struct frame_object_311 has it */
    void *rest;  /* f_trace */
    struct told told;
};

/* A thread's stand-ins: hashed by frame address, PLACES slots each; when all are taken, the first
 * is evicted.  Neighbours on the stack of frames, of which none is smaller than 64 bytes, begin
 * with different ones; that stack is in pieces, whose frames may begin with the same ones, all
 * along, and so go on with places far away.  A frame has one from its entry to its return.  The
 * table is 288 KB, of which a thread uses few pages: nothing ever touches all of it.  Its last part
 * is, for each place that frames begin with, to whom those were told that have been evicted. */
enum { STAND_INS = 4096, PLACES = 32, STRIDE = 2531 };
enum { TABLE_SIZE = STAND_INS * (sizeof(struct stand_in) + sizeof(struct told)) };
static __thread struct stand_in *stand_ins;

/* The stand-ins of all threads, those that have ended too: so that the child of a fork, which has
 * one of the threads, can use the others' again. */
struct owned {
    struct owned *next;
    struct stand_in *stand_ins; /* its owner's, or of an owner that the fork left behind */
    atomic_taken has_owner;
};
static _Atomic(struct owned *) all_owned;
static pthread_key_t owned_key;
static bool has_key;

/* A fork may come between any two lines. */
static void unmap(struct owned *owned)
{
    struct stand_in *unused = owned->stand_ins;
    owned->stand_ins = NULL;
    atomic_thread_fence(memory_order_release);
    if (unused)
        munmap(unused, TABLE_SIZE);
}

/* Called by the C library on a thread that ends.  A fork may come between any two lines. */
static void disown(void *data)
{
    struct owned *owned = data;
    stand_ins = NULL;
    unmap(owned);
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
    unmap(owned);
    /* Not calloc(), which writes to all of it where it was used before. */
    void *fresh =
        mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    owned->stand_ins = fresh == MAP_FAILED ? NULL : fresh;
    if (!owned->stand_ins || pthread_setspecific(owned_key, owned) != 0) {
        disown(owned);
        return false;
    }
    stand_ins = owned->stand_ins;
    return true;
}

void shown_forked(void)
{
    struct owned *mine = has_key ? pthread_getspecific(owned_key) : NULL;
    for (struct owned *owned = all_owned; owned; owned = owned->next) {
        if (owned != mine)
            owned->has_owner = false;
    }
}

static inline size_t first_place(const void *frame)
{
    return (uintptr_t)frame / 64 % STAND_INS;
}

static inline struct told *told_of_evicted(const void *frame)
{
    return (struct told *)(stand_ins + STAND_INS) + first_place(frame);
}

static inline struct told current_tracers(void)
{
    return (struct told){atomic_load_explicit(&tracer_plain, memory_order_relaxed),
                         atomic_load_explicit(&tracer_filtered, memory_order_relaxed)};
}

static inline bool knows_one(struct told told, struct told now)
{
    return told.plain == now.plain || told.filtered == now.filtered;
}

static inline void *frame_at(const struct stand_in *place, struct told now)
{
    return knows_one(place->told, now) ? place->frame : NULL;
}

/* The frame's place, or one that is free; else the first, whose frame is evicted. */
static struct stand_in *place_of(void *frame, struct told now, enum shown_event event)
{
    size_t place = first_place(frame);
    struct stand_in *first = &stand_ins[place];
    void *there = frame_at(first, now);
    if (there == frame || (event == SHOWN_ENTRY && !there))
        return first;
    struct stand_in *free = NULL;
    for (int i = 0; i < PLACES; i++, place = (place + STRIDE) % STAND_INS) {
        there = frame_at(&stand_ins[place], now);
        if (there == frame)
            return &stand_ins[place];
        if (!free && !there)
            free = &stand_ins[place];
    }
    return free ? free : first;
}

/* Another frame is to have its place. */
static void evict(struct stand_in *place, struct told now)
{
    struct told *told = told_of_evicted(place->frame);
    if (place->told.plain == now.plain)
        told->plain = now.plain;
    if (place->told.filtered == now.filtered)
        told->filtered = now.filtered;
}

/* Takes out those that were not told of the entry; all are told of a return if entries are not
 * wanted.  What the hooks are set for decides, not the semaphores, which a tracer that detaches
 * lowers one after the other. */
static inline void leave_out_untold(struct fires *fires, struct told told, struct told now)
{
    if (told.plain != now.plain && tracer_is_set(MARKER_BIT(function__entry)))
        fires->plain = false;
    if (told.filtered != now.filtered && tracer_is_set(MARKER_BIT(filtered__function__entry)))
        fires->filtered = false;
}

PyFrameObject *shown_stand_in(void *frame, enum shown_event event, struct fires *fires)
{
    if (__builtin_expect(!stand_ins, 0) && !make_stand_ins())
        return NULL;
    struct told now = current_tracers();
    struct stand_in *place = place_of(frame, now, event);
    void *there = frame_at(place, now);
    if (there != frame) {
        if (__builtin_expect(event == SHOWN_RETURN, 0) && fires)
            leave_out_untold(fires, *told_of_evicted(frame), now);
        if (__builtin_expect(there != NULL, 0))
            evict(place, now);
        place->told = (struct told){~now.plain, ~now.filtered};
    } else if (event == SHOWN_RETURN && fires) {
        leave_out_untold(fires, place->told, now);
    }
    if (event != SHOWN_RETURN && fires) {
        if (fires->plain)
            place->told.plain = now.plain;
        if (fires->filtered)
            place->told.filtered = now.filtered;
    }
    place->head.local_references = UINT32_MAX;
    place->head.head.references = 1;
    place->head.head.type = atomic_load_explicit(&frame_type, memory_order_relaxed);
    place->frame = frame;
    return (PyFrameObject *)((char *)&place->head.head - py.head_shift);
}

PyFrameObject *shown_stand_in_of(PyFrameObject *object, enum shown_event event, struct fires *fires)
{
    void *frame = object ? frame_inside(object) : NULL;
    return frame ? shown_stand_in(frame, event, fires) : object;
}

void shown_returned(PyFrameObject *frame)
{
    char *place = (char *)cpython_plain(frame) - offsetof(struct stand_in, head.head);
    if (stand_ins && place >= (char *)stand_ins && place < (char *)(stand_ins + STAND_INS))
        ((struct stand_in *)place)->frame = NULL;
}

/* ---------------------------------------------------------------- the innermost frame */

/* Where the thread state has its current frame, in words: found by looking for it, twice. */
static atomic_int current_at;

static struct inner_frame_312 *current(PyThreadState *thread, int at)
{
    /* another thread may be writing to what is no frame */
    void *word = __atomic_load_n((void **)thread + at, __ATOMIC_RELAXED);
    return py.minor == 12 ? ((struct cframe_312 *)word)->current_frame : word;
}

static void find_current(void *frame)
{
    enum { CFRAME = offsetof(struct thread_312, cframe) / sizeof(void *) };
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

static struct shown now_by_object(PyObject *code, enum shown_event event, struct fires *fires)
{
    PyFrameObject *object = py.PyEval_GetFrame();
    void *frame = object ? frame_inside(object) : NULL;
    if (frame && !current_at)
        find_current(frame);
    bool runs = object && frame_code(object) == code;
    return (struct shown){shown_stand_in_of(object, event, runs ? fires : NULL),
                          py.PyEval_GetGlobals(), runs};
}

struct shown shown_now(PyObject *code, enum shown_event event, struct fires *fires)
{
    int at = atomic_load_explicit(&current_at, memory_order_relaxed);
    if (__builtin_expect(!at, 0))
        return now_by_object(code, event, fires);
    struct inner_frame_312 *frame = current(py.PyThreadState_Get(), at);
    if (__builtin_expect(!frame || (frame->code & ~CODE_TAG) != (uintptr_t)code, 0))
        return now_by_object(code, event, fires);
    return (struct shown){shown_stand_in(frame, event, fires), frame->globals, true};
}
