/*
 * What a marker passes for a frame: up to 3.10 its PyFrameObject.  From 3.11 on CPython makes that
 * only on demand, at more than the cost of the rest of a marker: so there a stand-in is passed,
 * which reads as the object would, from the frame's entry to its return.
 *
 * All functions but shown_forked(): any thread that runs Python, GIL held, no exception in flight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHOWN_H
#define SHOWN_H

#include "frame.h"

struct shown {
    PyFrameObject *frame; /* the object or its stand-in; NULL if memory ran out */
    PyObject *globals;    /* borrowed; may be NULL */
    bool runs; /* the code; else the event is a C library's own, without a frame (3.13+) */
};

enum shown_event {
    SHOWN_ENTRY,
    SHOWN_LATE_ENTRY, /* of a frame that runs already: it may have a stand-in */
    SHOWN_RETURN
};

/* Which markers of an event fire: its own, and the filtered one.
 *
 * The functions that are given them keep, of an entry, to which tracers it is reported; of a return
 * they take out those which the frame's entry was not reported to, as it began before they came, on
 * a stack that the thread did not have then: a greenlet's, another interpreter's.  (Up to 3.10 the
 * frame hook knows.)  NULL: a C library's own event. */
struct fires {
    bool plain, filtered;
};

/* The stand-in of a _PyInterpreterFrame.  3.11 and later. */
PyFrameObject *shown_stand_in(void *frame, enum shown_event event, struct fires *fires);

/* The same by its PyFrameObject, which may be NULL. */
PyFrameObject *shown_stand_in_of(PyFrameObject *object, enum shown_event event,
                                 struct fires *fires);

/* By a PyFrameObject. */
static inline struct shown shown_by_object(PyFrameObject *object, enum shown_event event,
                                           struct fires *fires)
{
    PyFrameObject *frame = py.minor >= 11 ? shown_stand_in_of(object, event, fires) : object;
    return (struct shown){frame, frame_globals(object), true};
}

/* The calling thread's innermost frame, for an event of this code.  3.12 and later. */
struct shown shown_now(PyObject *code, enum shown_event event, struct fires *fires);

/* The marker of the return has fired with this one: its stand-in is free for another frame. */
void shown_returned(PyFrameObject *frame);

/* In the child of a fork, whatever its other threads were doing: takes no lock, frees nothing. */
void shown_forked(void);

#endif
