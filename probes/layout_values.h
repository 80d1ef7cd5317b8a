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
#define LOAD_RELAXED(variable) __atomic_load_n(&(variable), __ATOMIC_RELAXED)

static inline char *read_word(const void *object, unsigned offset)
{
    return LOAD_RELAXED(*(char **)((char *)object + offset));
}

/* An offset into an object, from one into a struct of cpython_layout.h: see ob_base(). */
static inline uint16_t object_offset(size_t offset)
{
    return (uint16_t)(py.ob_base_offset + offset);
}

/* Whether an object has that attribute at that offset, which does not change.  GIL held, no
 * exception in flight. */
bool has_attribute_at(PyObject *object, unsigned offset, const char *attribute);

/* Fills it in, as far as it's right for the frame, of which frame is what layout_page.h calls so;
 * what is not stays 0.  GIL held, no exception in flight. */
void offsets_fill_values(struct offsets_page *page, PyFrameObject *object, const void *frame,
                         PyObject *code);

#endif
