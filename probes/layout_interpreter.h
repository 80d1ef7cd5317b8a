/*
 * What of the page (layout_page.h) is about interpreters: their modules, and the GIL.  A part of
 * layout.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LAYOUT_INTERPRETER_H
#define LAYOUT_INTERPRETER_H

#include "cpython.h"

#include <stdbool.h>

struct offsets_page;

/* Fills it in by the calling thread's state, as far as it's right; what is not stays 0.  Returns
 * whether it could be tried: not in a subinterpreter, nor at the end.  GIL held. */
bool offsets_fill_interpreter(struct offsets_page *page, PyThreadState *state);

#endif
