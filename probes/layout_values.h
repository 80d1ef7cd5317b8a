/*
 * What of the page (layout_page.h) is about values: dicts, names of classes and functions, and the
 * variables of frames.  A part of layout.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LAYOUT_VALUES_H
#define LAYOUT_VALUES_H

#include "cpython.h"

#include <stdint.h>

#include "layout_page.h"

/* What other threads may be writing, as it is looked at to see whether it is what is looked for. */
#define LOOK_AT(variable) __atomic_load_n(&(variable), __ATOMIC_RELAXED)

static inline char *word(const void *object, unsigned offset)
{
    return LOOK_AT(*(char **)((char *)object + offset));
}

/* An offset into an object, from one into a struct of cpython_layout.h: see cpython_plain(). */
static inline uint16_t shifted(size_t offset)
{
    return (uint16_t)(py.head_shift + offset);
}

/* Whether an object has that attribute at that offset, which does not change.  GIL held, no
 * exception in flight. */
bool layout_has(PyObject *object, unsigned offset, const char *attribute);

/* Fills it in, as far as it's right for the frame, of which frame is what layout_page.h calls so;
 * what is not stays 0.  GIL held, no exception in flight. */
void layout_fill_in_values(struct layout_page *page, PyFrameObject *object, const void *frame,
                           PyObject *code);

#endif
