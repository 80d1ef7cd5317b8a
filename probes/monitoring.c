/*
 * See monitoring.h.
 *
 * The program must be able to take each id as if no tool of ours were there, and stap-python must
 * know when none is left for us.  So sys.monitoring's use_tool_id() and free_tool_id() call
 * functions of ours: what is replaced is the pointer by which CPython calls them (their
 * PyMethodDef), as in parting.c, and the functions stay the same objects.  If the program asks for
 * the id that is ours, we leave it for another one, and the program is given it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "monitoring.h"

#include "callable.h"
#include "debug.h"
#include "detach.h"
#include "hook.h"
#include "thread_states.h"

#include <string.h>

/* In this order: first the two that PEP 669 leaves without a name, last the debugger's. */
static const int tool_ids[] = {4, 3, 5, 2, 1, 0};
enum { IDS = sizeof tool_ids / sizeof *tool_ids };
static const char tool_name[] = "systemtap";

long monitoring_event_bit(PyObject *monitoring, const char *name)
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

/* ---------------------------------------------------------------- the id */

static void set_lacking(struct interp *interp, bool lacking)
{
    if (lacking && !interp->lacks_id)
        debug_log("all ids of sys.monitoring are taken by others: no markers of functions, lines, "
                  "C functions and exceptions until one is free");
    interp->lacks_id = lacking;
}

static void look(PyObject *monitoring, struct interp *interp)
{
    bool free = false;
    for (int i = 0; i < IDS && !free; i++) {
        PyObject *owner = py.PyObject_CallMethod(monitoring, "get_tool", "i", tool_ids[i]);
        free = !owner || owner == py.none;
        cpython_ignore_result(owner);
    }
    py.PyErr_Clear();
    set_lacking(interp, !free);
}

void monitoring_end(struct interp *interp)
{
    interp->lacks_id = false;
    cpython_clear_ref(&interp->tool_name);
}

bool monitoring_use_tool_id(PyObject *monitoring, struct interp *interp)
{
    if (!interp->tool_name)
        interp->tool_name = py.PyUnicode_FromString(tool_name);
    for (int i = 0; i < IDS && interp->tool_id < 0 && interp->tool_name; i++)
        if (cpython_ignore_result(py.PyObject_CallMethod(monitoring, "use_tool_id", "iO",
                                                         tool_ids[i], interp->tool_name)))
            interp->tool_id = tool_ids[i];
    py.PyErr_Clear();
    set_lacking(interp, interp->tool_id < 0);
    return interp->tool_id >= 0;
}

/* The name says whose it is, which is an object of our own. */
bool monitoring_owns_tool_id(PyObject *monitoring, const struct interp *interp)
{
    PyObject *owner = py.PyObject_CallMethod(monitoring, "get_tool", "i", interp->tool_id);
    bool ours = owner == interp->tool_name;
    cpython_ignore_result(owner);
    return ours;
}

static bool register_callback(PyObject *monitoring, struct interp *interp,
                              const struct monitoring_event *event, PyObject *function)
{
    long bit = monitoring_event_bit(monitoring, event->name);
    struct cpython_retries attempts = {0};
    bool done = bit && function;
    if (!done)
        return false;
    do {
        PyObject *before = py.PyObject_CallMethod(monitoring, "register_callback", "ilO",
                                                  interp->tool_id, bit, function);
        done = before;
        if (before)
            py.Py_DecRef(before);
    } while (cpython_retry(&attempts, done));
    return done;
}

/* ---------------------------------------------------------------- callbacks */

bool monitoring_register_callbacks(PyObject *monitoring, struct interp *interp,
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

void monitoring_free_tool_id(PyObject *monitoring, struct interp *interp,
                             const struct monitoring_event *events, size_t count)
{
    cpython_ignore_result(
        py.PyObject_CallMethod(monitoring, "set_events", "ii", interp->tool_id, 0));
    for (size_t i = 0; i < count; i++)
        register_callback(monitoring, interp, &events[i], py.none);
    cpython_ignore_result(py.PyObject_CallMethod(monitoring, "free_tool_id", "i", interp->tool_id));
    interp->tool_id = -1;
}

void monitoring_restart_events(PyObject *monitoring)
{
    cpython_ignore_result(py.PyObject_CallMethod(monitoring, "restart_events", NULL));
}

/* ---------------------------------------------------------------- the program's calls */

/* What monitoring_give_way() was given. */
static const struct monitoring_event *given;
static size_t given_count;

/* A function of sys.monitoring. */
struct replaced {
    PyMethodDef *_Atomic definition; /* what it is called by; NULL: not found */
    _Atomic(PyCFunction) original;
};
static struct replaced use, release;

/* METH_FASTCALL: its module, the arguments. */
typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);

/* Our events are set at the new id and at none in one go: no Python code runs in between, which
 * would report its calls twice, or not at all. */
static void move_to_another_id(PyObject *monitoring, struct interp *interp)
{
    struct interp before = *interp;
    interp->tool_id = -1;
    bool moved = monitoring_use_tool_id(monitoring, interp) &&
                 monitoring_register_callbacks(monitoring, interp, given, given_count);
    PyObject *set = py.PyObject_CallMethod(monitoring, "get_events", "i", before.tool_id);
    cpython_ignore_result(
        py.PyObject_CallMethod(monitoring, "set_events", "ii", before.tool_id, 0));
    if (moved && set)
        cpython_ignore_result(
            py.PyObject_CallMethod(monitoring, "set_events", "iO", interp->tool_id, set));
    cpython_clear_ref(&set);
    if (py.minor == 13) /* hook_monitoring.c, needs_restart() */
        monitoring_restart_events(monitoring);
    monitoring_free_tool_id(monitoring, &before, given, given_count);
    if (!moved && interp->tool_id >= 0)
        monitoring_free_tool_id(monitoring, interp, given, given_count);
}

/* Whether the program was refused the id that is ours, which it can have now.  An exception is in
 * flight; none is after that if it is true. */
static bool gives_way(PyObject *monitoring, PyObject *const *arguments, Py_ssize_t count)
{
    struct interp *interp = interp_of(cpython_interpreter());
    if (count != 2 || !interp || interp->tool_id < 0 || tstate_list_is_stale() ||
        !can_stop_the_world() || atomic_exchange(&interp->arming, true))
        return false; /* the last: another thread sets our hooks */
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    bool was_busy = set_thread_is_arming(true);
    bool gives = py.PyLong_AsLong(arguments[0]) == interp->tool_id &&
                 py.PyType_IsSubtype(cpython_type(arguments[1]), cpython_type(interp->tool_name)) &&
                 monitoring_owns_tool_id(monitoring, interp);
    py.PyErr_Clear();
    if (gives)
        move_to_another_id(monitoring, interp);
    py.PyErr_Clear();
    set_thread_is_arming(was_busy);
    if (gives)
        cpython_clear_ref(&type), cpython_clear_ref(&value), cpython_clear_ref(&traceback);
    else
        py.PyErr_Restore(type, value, traceback);
    atomic_store(&interp->arming, false);
    return gives;
}

/* In the place of use_tool_id(id, name). */
static PyObject *use_tool_id(PyObject *monitoring, PyObject *const *arguments, Py_ssize_t count)
{
    fast_function function = (fast_function)(void *)use.original;
    PyObject *result = function(monitoring, arguments, count);
    if (thread_is_arming())
        return result;
    if (!result && gives_way(monitoring, arguments, count))
        result = function(monitoring, arguments, count);
    struct interp *interp = result ? interp_of(cpython_interpreter()) : NULL;
    if (interp && interp->tool_id < 0)
        look(monitoring, interp);
    return result;
}

/* In the place of free_tool_id(id). */
static PyObject *free_tool_id(PyObject *monitoring, PyObject *id)
{
    PyObject *result = release.original(monitoring, id);
    struct interp *interp = result && !thread_is_arming() ? interp_of(cpython_interpreter()) : NULL;
    if (interp && interp->lacks_id)
        look(monitoring, interp);
    return result;
}

static void replace(PyObject *monitoring, const char *name, int flags, struct replaced *replaced,
                    PyCFunction ours)
{
    PyObject *function = py.PyObject_GetAttrString(monitoring, name);
    PyMethodDef *found = function && cpython_type(function) == py.cfunction_type
                             ? callable_methoddef(function)
                             : NULL; /* the program has put something else there */
    if (found && !replaced->definition && found->ml_flags == flags &&
        strcmp(found->ml_name, name) == 0) {
        replaced->original = found->ml_meth;
        replaced->definition = found;
    }
    if (replaced->definition)
        replaced->definition->ml_meth = ours;
    cpython_clear_ref(&function);
    py.PyErr_Clear();
}

static void put_back(struct replaced *replaced)
{
    if (replaced->definition)
        replaced->definition->ml_meth = replaced->original;
}

void monitoring_give_way(PyObject *monitoring, const struct monitoring_event *events, size_t count)
{
    given = events;
    given_count = count;
    if (detach_is_asked())
        return;
    replace(monitoring, "use_tool_id", METH_FASTCALL, &use, (PyCFunction)(void *)use_tool_id);
    replace(monitoring, "free_tool_id", METH_O, &release, free_tool_id);
}

void monitoring_leave(void)
{
    put_back(&use);
    put_back(&release);
}

void monitoring_start(struct interp *interp)
{
    PyObject *monitoring = cpython_sys_attr("monitoring");
    if (!monitoring)
        return;
    monitoring_give_way(monitoring, given, given_count);
    look(monitoring, interp);
    cpython_clear_ref(&monitoring);
}
