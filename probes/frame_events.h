/*
 * The events of a frame that is evaluated, up to 3.11: fires and counts them.  What the evaluator
 * is given is a PyFrameObject up to 3.10, and in 3.11 what such an object stands for.
 *
 * All functions: on the thread that runs the frame, GIL held, no exception in flight unless that is
 * said.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_EVENTS_H
#define FRAME_EVENTS_H

#include "fire.h"
#include "frame.h"
#include "tally.h"

/* A frame starts or resumes; ends; and its start is counted. */
void fire_entry_310(void *frame);
void fire_return_310(void *frame, struct outcome outcome);
void count_entry_310(void *frame);
void fire_entry_311(void *frame);
void fire_return_311(void *frame, struct outcome outcome);
void count_entry_311(void *frame);

/* Whether the layouts of 3.11 are those of the release. */
extern enum layout_311 { LAYOUT_311_UNTRIED, LAYOUT_311_KNOWN, LAYOUT_311_UNKNOWN } layout_311;

/* Finds that out, on the first frame.  Whether they are. */
bool check_layout_311(void *frame);

/* offsetof(PyCodeObject, co_code_adaptive), which is the code type's basicsize. */
extern long co_code_adaptive_311;

/* Borrowed; an exception may be in flight. */
static inline PyObject *f_code_311(const void *frame)
{
    return ((const struct PyInterpreterFrame_311 *)frame)->f_code;
}

static inline uint16_t *first_instr_311(const struct PyInterpreterFrame_311 *frame)
{
    return (uint16_t *)((char *)frame->f_code + co_code_adaptive_311);
}

/* In 3.11 a call of a generator function evaluates the frame as far as its RETURN_GENERATOR, which
 * no other version calls a start of the frame. */
static inline bool is_return_generator_311(struct PyInterpreterFrame_311 *frame)
{
    return frame->prev_instr < first_instr_311(frame) &&
           code_is_generator(frame->f_code, code_record_of(frame->f_code));
}

#endif
