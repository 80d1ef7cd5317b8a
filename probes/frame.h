/*
 * What the hooks ask of a PyFrameObject, the same for every CPython.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_H
#define FRAME_H

#include "cpython.h"

#include <stdatomic.h>
#include <stddef.h>

/* GIL held, no exception in flight, in each.  What is borrowed is kept by the frame; the globals
 * are NULL where CPython doesn't tell. */
PyObject *frame_code(PyFrameObject *frame);      /* borrowed */
PyObject *frame_globals(PyFrameObject *frame);   /* borrowed */
PyFrameObject *frame_back(PyFrameObject *frame); /* a new reference, or NULL */
void frame_fire_entry(PyFrameObject *frame, int line);
void frame_fire_return(PyFrameObject *frame, int line);

/* PyFrameObject from 3.11 on, Include/internal/pycore_frame.h. */
struct frame_object_311 {
    Py_ssize_t references;
    PyObject *type;
    PyFrameObject *back;
    void *frame;   /* a _PyInterpreterFrame */
    void *rest[4]; /* f_trace, f_lineno and so on */
};

/* What a marker passes for a frame.  Up to 3.10 its PyFrameObject.  From 3.11 on CPython makes that
 * only for who asks, at more than the cost of the rest of a marker: so there it is a stand-in,
 * which reads as the object would, from the frame's entry to its return.  NULL where memory runs
 * out. */
enum frame_event { FRAME_ENTRY, FRAME_RETURN };
PyFrameObject *frame_stand_in(void *frame, enum frame_event event); /* of a _PyInterpreterFrame */

/* _PyInterpreterFrame of 3.11, Include/internal/pycore_frame.h. */
struct frame_311 {
    PyObject *function, *globals, *builtins, *locals, *code;
    PyFrameObject *object; /* NULL until somebody asks for it */
    struct frame_311 *previous;
    uint16_t *previous_instruction;
};

/* 3.11 and later: the _PyInterpreterFrame of an object, or NULL if that is not where the release
 * has it. */
void *frame_inside(PyFrameObject *object);

/* The marker of the return has fired, with this one. */
void frame_returned(PyFrameObject *shown);

/* In the child of a fork, whatever its other threads were doing: takes no lock, frees nothing. */
void frame_forked(void);

/* The calling thread's innermost frame as a marker of the code shows it, and its globals.  3.12
 * and later. */
struct frame_now {
    PyFrameObject *shown;
    PyObject *globals; /* borrowed */
    bool runs;         /* the code; else a C library tells of an event that is no frame's (3.13+) */
};
struct frame_now frame_now(PyObject *code, enum frame_event event);

/* The calling thread's innermost frame: a new reference, or NULL where it runs no Python. */
PyFrameObject *frame_current(void);

/* The frames from innermost outwards, in *frames (malloc()ed): the innermost first, each a new
 * reference.  Takes over the reference to innermost, which may be NULL.  Returns how many there
 * are; where memory runs out, the outermost are missing. */
size_t frame_stack(PyFrameObject *innermost, PyFrameObject ***frames);
void frame_release(PyFrameObject **frames, size_t depth);

/* Which tracer of returns it is that has come, counted.  Frames that began under another one, or
 * under none, are reported to it as they are found: their entries at once, so that every return
 * has its entry and what a tracer indents comes out even. */
extern atomic_uint frame_tracer;

/* Tells what is wanted now, in any interpreter: counts frame_tracer. */
void frame_wanted(unsigned wanted);

/* Whether the frames that run already are to be entered: somebody probes entries and returns. */
bool frame_enters_stack(void);

/* Fires the entries of the frames of frame_stack(), the outermost first, each with the line at
 * which it stands. */
void frame_enter_stack(PyFrameObject *const *frames, size_t depth);

#endif
