/*
 * sys.monitoring (PEP 669): a tool of ours in an interpreter, with C callbacks.
 *
 * All functions: on a thread of the program's, GIL held, no exception in flight, nor after; but for
 * what is said, monitoring is sys.monitoring.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MONITORING_H
#define MONITORING_H

#include "interp.h"

#include <stdbool.h>
#include <stddef.h>

struct monitoring_event {
    const char *name;
    PyMethodDef *callback;
    unsigned markers; /* those that it feeds */
};

/* sys.monitoring.events.NAME; 0 if this CPython has no such event. */
long monitoring_event_bit(PyObject *monitoring, const char *name);

/* Takes an id, interp->tool_id.  False: there is none. */
bool monitoring_use_tool_id(PyObject *monitoring, struct interp *interp);

/* An interpreter starts: interp->lacks_id says whether there is none, from now on. */
void monitoring_start(struct interp *interp);

/* The interpreter is cleared. */
void monitoring_end(struct interp *interp);

/* From now on the program is given the id that is ours if it asks for that: then ours is another
 * one with the same callbacks and events, or none. */
void monitoring_give_way(PyObject *monitoring, const struct monitoring_event *events, size_t count);

/* The shim detaches: the program's calls are CPython's alone again.  Any thread, no GIL. */
void monitoring_leave(void);

/* Whether the id is still ours: the program may free any tool's, and take it for itself. */
bool monitoring_owns_tool_id(PyObject *monitoring, const struct interp *interp);

/* Registers the callbacks.  False: one was refused. */
bool monitoring_register_callbacks(PyObject *monitoring, struct interp *interp,
                                   const struct monitoring_event *events, size_t count);

/* Gives the id back. */
void monitoring_free_tool_id(PyObject *monitoring, struct interp *interp,
                             const struct monitoring_event *events, size_t count);

/* Has each code object instrumented once more when it next begins, and what was disabled enabled:
 * also what other tools have disabled, which may happen to them at any time. */
void monitoring_restart_events(PyObject *monitoring);

#endif
