/*
 * Which tracer of function returns is attached.  Frames that began before it attached are reported
 * to it as each thread is next seen: their entries at once, so that every return has its entry and
 * what a tracer indents comes out even.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TRACER_H
#define TRACER_H

#include <stdatomic.h>
#include <stdbool.h>

/* Counted: another number is another tracer.  A thread that has caught up with one remembers it. */
extern atomic_uint tracer_number __attribute__((visibility("hidden"))); /* read without the GOT */

/* Called by the hooks that feed function markers, when they are set: these markers are wanted in
 * the process now.  GIL held; from 3.12 on several interpreters, each with a GIL of its own, may
 * call it at once. */
void tracer_wants(unsigned wanted);

/* Whether the frames that run already are to be entered: entries and returns are both wanted.  Any
 * thread that runs Python, GIL held. */
bool tracer_enters_stack(void);

#endif
