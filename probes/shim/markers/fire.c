/*
 * Fires the markers of functions, C functions and exceptions, and records which frames had an
 * entry.
 *
 * SPDX-License-Identifier: MIT
 */

#include "markers/fire.h"

#include "cpython/frame.h"
#include "cpython/offsets.h"
#include "markers/filter.h"
#include "markers/markers.h"
#include "os/process.h"

#include <stdint.h>

/* ---------------------------------------------------------------- replay */

enum { RETURNS = MARKER_BITS(function__return) };

atomic_uint replay_generation, tracer_plain, tracer_filtered, markers_armed;

void replay_set_markers(unsigned enabled)
{
    bool other = filter_set_armed(enabled) && (enabled & FILTERED_FUNCTION_MARKERS);
    unsigned fresh = enabled & ~atomic_exchange(&markers_armed, enabled);
    fresh &= FUNCTION_MARKERS | FILTERED_FUNCTION_MARKERS;
    if ((fresh & FUNCTION_MARKERS) && (enabled & MARKER_BIT(function__return)))
        atomic_fetch_add(&tracer_plain, 1);
    if ((fresh & FILTERED_FUNCTION_MARKERS) && (enabled & MARKER_BIT(filtered__function__return)))
        atomic_fetch_add(&tracer_filtered, 1);
    if ((fresh || other) && (enabled & RETURNS))
        atomic_fetch_add(&replay_generation, 1);
}

struct replay_request replay_begin(struct replay_state *seen)
{
    struct replay_state before = *seen;
    *seen = (struct replay_state){replay_generation, tracer_plain, filter_armed_word};
    return (struct replay_request){
        .plain = before.plain != seen->plain && MARKER_ARMED(function__entry) &&
                 MARKER_ARMED(function__return),
        .filtered = before.filter != seen->filter && MARKER_ARMED(filtered__function__entry) &&
                    MARKER_ARMED(filtered__function__return),
        .filter_replayed = before.filter,
    };
}

/* ---------------------------------------------------------------- frames that had an entry */

/* The frames whose entry was fired, and whose return was not yet: each in a slot of the bucket of
 * its address.  No other frame has the address meanwhile.  A slot is free if it is 0, or if its
 * entry was fired for an earlier tracer.  No lock: a frame's own thread claims a slot by an atomic
 * exchange, and frees it.  If a bucket had no room for a frame, all returns of the bucket's frames
 * fire, until another tracer attaches. */
enum { BUCKET_BITS = 12, PLACES = 7 };
struct bucket {
    _Alignas(64) _Atomic uint64_t places[PLACES];
    atomic_uint overflowed; /* number of the latest tracer for which there was no room */
};
static struct bucket plain_entries[1 << BUCKET_BITS], filtered_entries[1 << BUCKET_BITS];

/* Fibonacci hashing: the stacks of threads and greenlets lie at regular distances. */
static inline struct bucket *bucket_of(struct bucket *buckets, const void *frame)
{
    return &buckets[(uintptr_t)frame * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BUCKET_BITS)];
}

/* The value of a frame's slot: its address in 48 bits, as Linux uses no more unless a program
 * requests it, and 16 bits of the tracer's number. */
static inline uint64_t entry_of(const void *frame, unsigned tracer)
{
    return ((uintptr_t)frame & UINT64_C(0xffffffffffff)) | (uint64_t)tracer << 48;
}

static inline void keep(struct bucket *buckets, const void *frame, unsigned tracer)
{
    struct bucket *bucket = bucket_of(buckets, frame);
    uint64_t entry = entry_of(frame, tracer);
    for (int i = 0; i < PLACES; i++) {
        uint64_t there = atomic_load_explicit(&bucket->places[i], memory_order_relaxed);
        if (there == entry)
            return;
        if ((!there || there >> 48 != entry >> 48) &&
            atomic_compare_exchange_strong_explicit(&bucket->places[i], &there, entry,
                                                    memory_order_relaxed, memory_order_relaxed))
            return;
    }
    atomic_store_explicit(&bucket->overflowed, tracer, memory_order_relaxed);
}

/* Drops the frame.  Returns whether its entry was fired, or may have been. */
static inline bool take_out(struct bucket *buckets, const void *frame, unsigned tracer)
{
    struct bucket *bucket = bucket_of(buckets, frame);
    uint64_t entry = entry_of(frame, tracer);
    for (int i = 0; i < PLACES; i++) {
        uint64_t there = atomic_load_explicit(&bucket->places[i], memory_order_relaxed);
        if (there == entry) {
            atomic_compare_exchange_strong_explicit(&bucket->places[i], &there, 0,
                                                    memory_order_relaxed, memory_order_relaxed);
            return true;
        }
    }
    return atomic_load_explicit(&bucket->overflowed, memory_order_relaxed) == tracer;
}

static inline unsigned number_of(atomic_uint *tracer)
{
    return atomic_load_explicit(tracer, memory_order_relaxed);
}

void tracer_keep_entry(const void *frame, struct markers_due fires)
{
    if (fires.plain && marker_is_armed(MARKER_BIT(function__return)))
        keep(plain_entries, frame, number_of(&tracer_plain));
    if (fires.filtered && marker_is_armed(MARKER_BIT(filtered__function__return)))
        keep(filtered_entries, frame, number_of(&tracer_filtered));
}

/* Tests markers_armed, not the semaphores: a tracer that detaches lowers these one after the
 * other. */
struct markers_due tracer_with_entry(const void *frame, struct markers_due fires)
{
    if (fires.plain && marker_is_armed(MARKER_BIT(function__entry)))
        fires.plain = take_out(plain_entries, frame, number_of(&tracer_plain));
    if (fires.filtered && marker_is_armed(MARKER_BIT(filtered__function__entry)))
        fires.filtered = take_out(filtered_entries, frame, number_of(&tracer_filtered));
    return fires;
}

/* ---------------------------------------------------------------- exceptions */

/* The frame that an exception left last on this thread, and its caller.  Only compared. */
static __thread PyFrameObject *left, *left_to;

void raise_left_frame(PyFrameObject *frame)
{
    left = frame;
    left_to = frame_back(frame);
    if (left_to)
        py.Py_DecRef((PyObject *)left_to);
}

/* Whether struct PyTracebackObject is right for this CPython. */
static bool is_known(PyObject *traceback)
{
    enum { UNTRIED, KNOWN, UNKNOWN };
    static atomic_int layout; /* each thread finds the same */
    if (layout == UNTRIED) {
        long size = cpython_int_attr(cpython_type(traceback), "__basicsize__");
        layout =
            size == (long)(py.ob_base_offset + sizeof(struct PyTracebackObject)) ? KNOWN : UNKNOWN;
        if (layout == UNKNOWN)
            debug_log("tracebacks in this CPython are not as in the release");
    }
    return layout == KNOWN;
}

/* The next entry, a new reference; NULL: this is the last one.  In a free-threaded build by
 * CPython's own getter, as another thread may be setting tb_next. */
static PyObject *next_of(PyObject *traceback)
{
    PyObject *next;
    if (py.free_threaded) {
        next = py.PyObject_GetAttrString(traceback, "tb_next");
        py.PyErr_Clear();
        if (next == py.none)
            cpython_clear_ref(&next);
        return next;
    }
    next = ((const struct PyTracebackObject *)traceback)->tb_next;
    if (next)
        py.Py_IncRef(next);
    return next;
}

/* The entry's frame, which never changes.  Only compared.  The attribute would be audited. */
static PyFrameObject *frame_in(PyObject *traceback)
{
    return ((const struct PyTracebackObject *)ob_base(traceback))->tb_frame;
}

/* Whether the frame raised the exception.  Up to 3.11 CPython also reports an iterator's end to the
 * frame of the loop, which then has no entry in the traceback. */
static bool begins_in(PyFrameObject *frame, PyObject *traceback)
{
    if (!traceback || traceback == py.none || !is_known(traceback) || frame_in(traceback) != frame)
        return false;
    PyObject *next = left_to == frame ? next_of(traceback) : NULL;
    bool begins = !next || frame_in(next) != left;
    cpython_clear_ref(&next);
    return begins;
}

/* The name of an exception's type, a new reference; NULL: it has none.  Leaves no exception in
 * flight.  Runs no code of the program, even if the type has a metaclass. */
static PyObject *name_of(PyObject *type)
{
    PyObject *name = NULL;
    if (py.PyType_GetName) {
        name = py.PyType_GetName(type);
    } else {
        PyObject *attributes =
            py.PyObject_GetAttrString(cpython_type(py.tuple_type), "__dict__"); /* of `type` */
        PyObject *attribute =
            attributes ? py.PyObject_CallMethod(attributes, "__getitem__", "s", "__name__") : NULL;
        if (attribute)
            name = py.PyObject_CallMethod(attribute, "__get__", "O", type);
        cpython_clear_ref(&attributes);
        cpython_clear_ref(&attribute);
    }
    py.PyErr_Clear();
    return name;
}

void raise_reached_frame(struct code_record *record, int line, PyFrameObject *frame,
                         PyObject *exception, PyObject *traceback)
{
    bool begins = begins_in(frame, traceback);
    left = left_to = NULL;
    bool filtered = begins && MARKER_ARMED(filtered__exception__raise) &&
                    filter_matches_code(record, frame_globals(frame));
    if (!begins || !(filtered || MARKER_ON(exception__raise)))
        return;
    offsets_check_frame(frame);
    PyObject *name = name_of(cpython_type(exception));
    Py_ssize_t length = 0;
    const char *type = name ? py.PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    py.PyErr_Clear();
    probe_string(type, length);
    const char *filename = probe_text(&record->filename), *funcname = probe_text(&record->funcname);
    if (MARKER_ON(exception__raise))
        marker_exception__raise(filename, funcname, line, exception, type);
    if (filtered)
        marker_filtered__exception__raise(filename, funcname, line, exception, type,
                                          code_first_module(record));
    cpython_clear_ref(&name);
}

/* ---------------------------------------------------------------- functions and lines */

void fire_entry_by_object(PyFrameObject *frame, int line)
{
    struct code_record *record = code_record_of(frame_code(frame));
    struct markers_due fires = markers_due_at_entry(record, frame_globals(frame));
    if (!fires.plain && !fires.filtered)
        return;
    offsets_check_frame(frame);
    fire_entry(record, line, event_frame_of(frame), fires);
}

void fire_return_by_object(PyFrameObject *frame, int line, struct outcome outcome)
{
    struct code_record *record = code_record_of(frame_code(frame));
    struct markers_due fires = markers_due_at_return(record, frame_globals(frame));
    if (!fires.plain && !fires.filtered)
        return;
    offsets_check_frame(frame);
    fire_return(record, line, event_frame_of(frame), outcome, fires);
}

void fire_entry_now(PyObject *code, struct code_record *record, int line, struct markers_due fires)
{
    offsets_check_current();
    struct event_frame event = event_frame_now(code);
    if (event.is_current)
        tracer_keep_entry(event.frame, fires);
    fire_entry(record, line, event, fires);
}

void fire_return_now(PyObject *code, struct code_record *record, int line, struct outcome outcome,
                     struct markers_due fires)
{
    offsets_check_current();
    struct event_frame event = event_frame_now(code);
    if (event.is_current)
        fires = tracer_with_entry(event.frame, fires);
    fire_return(record, line, event, outcome, fires);
}

void fire_cfunction_entry(struct code_record *caller, PyObject *globals, int line,
                          PyObject *callable)
{
    bool filtered =
        MARKER_ARMED(filtered__cfunction__entry) && filter_matches_code(caller, globals);
    if (!filtered && !MARKER_ON(cfunction__entry))
        return;
    const char *filename = probe_text(&caller->filename);
    struct callable_names names = callable_names_get(callable);
    if (MARKER_ON(cfunction__entry))
        marker_cfunction__entry(filename, names.name, line, names.module);
    if (filtered)
        marker_filtered__cfunction__entry(filename, names.name, line, names.module,
                                          probe_text(&caller->funcname), code_first_module(caller));
    callable_names_release(&names);
}

void fire_cfunction_return(struct code_record *caller, PyObject *globals, int line,
                           PyObject *callable)
{
    bool filtered =
        MARKER_ARMED(filtered__cfunction__return) && filter_matches_code(caller, globals);
    if (!filtered && !MARKER_ON(cfunction__return))
        return;
    const char *filename = probe_text(&caller->filename);
    struct callable_names names = callable_names_get(callable);
    if (MARKER_ON(cfunction__return))
        marker_cfunction__return(filename, names.name, line, names.module);
    if (filtered)
        marker_filtered__cfunction__return(filename, names.name, line, names.module,
                                           probe_text(&caller->funcname),
                                           code_first_module(caller));
    callable_names_release(&names);
}

PyObject *exception_argument(PyObject *type, PyObject *value, struct exception_pair *room)
{
    if (!type || (value && py.PyType_IsSubtype(cpython_type(value), type)))
        return value;
    *room = (struct exception_pair){{{1, py.tuple_type}, value ? 2 : 1}, {type, value}};
    return (PyObject *)room;
}

/* Whether the function's filtered entries were fired by the patterns of filter_before, and filtered
 * markers have been enabled ever since. */
static bool is_entered(struct code_record *record, PyObject *globals, unsigned filter_before)
{
    return filter_before && filter_matched_at(record, globals, filter_before);
}

void fire_running_frames(PyFrameObject *const *frames, size_t depth, struct replay_request enters)
{
    while (depth > 0) {
        PyFrameObject *frame = frames[--depth];
        struct code_record *record = code_record_of(frame_code(frame));
        PyObject *globals = frame_globals(frame);
        struct markers_due fires = {enters.plain,
                                    enters.filtered && filter_matches_code(record, globals) &&
                                        !is_entered(record, globals, enters.filter_replayed)};
        if (!fires.plain && !fires.filtered)
            continue;
        offsets_check_frame(frame);
        struct event_frame event = event_frame_of(frame);
        if (py.minor >= 12)
            tracer_keep_entry(event.frame, fires);
        fire_entry(record, py.PyFrame_GetLineNumber(frame), event, fires);
    }
}
