/*
 * See monitoring.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "monitoring.h"

/* The ids that PEP 669 leaves free. */
static const int tool_ids[] = {4, 3};
static const char tool_name[] = "systemtap";

long monitoring_bit(PyObject *monitoring, const char *name)
{
    PyObject *all = py.PyObject_GetAttrString(monitoring, "events");
    PyObject *bit = all ? py.PyObject_GetAttrString(all, name) : NULL;
    long result = bit ? py.PyLong_AsLong(bit) : 0;
    if (all)
        py.Py_DecRef(all);
    if (bit)
        py.Py_DecRef(bit);
    py.PyErr_Clear();
    return result;
}

bool monitoring_take(PyObject *monitoring, struct interp *interp)
{
    if (!interp->tool_name)
        interp->tool_name = py.PyUnicode_FromString(tool_name);
    for (size_t i = 0;
         i < sizeof tool_ids / sizeof *tool_ids && interp->tool < 0 && interp->tool_name; i++)
        if (cpython_done(py.PyObject_CallMethod(monitoring, "use_tool_id", "iO", tool_ids[i],
                                                interp->tool_name)))
            interp->tool = tool_ids[i];
    py.PyErr_Clear();
    return interp->tool >= 0;
}

/* The name says whose it is, which is an object of our own. */
bool monitoring_owned(PyObject *monitoring, const struct interp *interp)
{
    PyObject *owner = py.PyObject_CallMethod(monitoring, "get_tool", "i", interp->tool);
    bool ours = owner == interp->tool_name;
    cpython_done(owner);
    return ours;
}

static bool register_callback(PyObject *monitoring, struct interp *interp,
                              const struct monitoring_event *event, PyObject *function)
{
    long bit = monitoring_bit(monitoring, event->name);
    struct cpython_attempts attempts = {0};
    bool done = bit && function;
    if (!done)
        return false;
    do {
        PyObject *before = py.PyObject_CallMethod(monitoring, "register_callback", "ilO",
                                                  interp->tool, bit, function);
        done = before;
        if (before)
            py.Py_DecRef(before);
    } while (cpython_attempt(&attempts, done));
    return done;
}

bool monitoring_register(PyObject *monitoring, struct interp *interp,
                         const struct monitoring_event *events, size_t count)
{
    bool done = true;
    for (size_t i = 0; i < count && done; i++) {
        PyObject *function = py.PyCFunction_NewEx(events[i].callback, NULL, NULL);
        done = register_callback(monitoring, interp, &events[i], function);
        if (function)
            py.Py_DecRef(function);
        py.PyErr_Clear();
    }
    return done;
}

void monitoring_give_up(PyObject *monitoring, struct interp *interp,
                        const struct monitoring_event *events, size_t count)
{
    cpython_done(py.PyObject_CallMethod(monitoring, "set_events", "ii", interp->tool, 0));
    for (size_t i = 0; i < count; i++)
        register_callback(monitoring, interp, &events[i], py.none);
    cpython_done(py.PyObject_CallMethod(monitoring, "free_tool_id", "i", interp->tool));
    interp->tool = -1;
}

void monitoring_restart(PyObject *monitoring)
{
    cpython_done(py.PyObject_CallMethod(monitoring, "restart_events", NULL));
}
