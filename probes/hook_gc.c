/*
 * The gc markers: a callable in gc.callbacks, which CPython calls before and after each collection.
 * All functions run with the GIL held.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm.h"

#include <stddef.h>
#include <string.h>

static bool fits(void)
{
    return true;
}

static long item(PyObject *info, const char *name)
{
    PyObject *value = py.PyDict_GetItemString(info, name);
    return value ? py.PyLong_AsLong(value) : 0;
}

/* gc.callbacks entry: (phase, info).  CPython calls it with no exception in flight
 * (Modules/gcmodule.c, invoke_gc_callback). */
static PyObject *on_gc(PyObject *self, PyObject *arguments)
{
    (void)self;
    PyObject *phase = py.PyTuple_GetItem(arguments, 0);
    PyObject *info = py.PyTuple_GetItem(arguments, 1);
    const char *name = phase ? py.PyUnicode_AsUTF8AndSize(phase, NULL) : NULL;
    if (name && info) {
        if (strcmp(name, "start") == 0 && MARKER_ON(gc__start))
            marker_gc__start((int)item(info, "generation"));
        else if (strcmp(name, "stop") == 0 && MARKER_ON(gc__done))
            /* as CPython's own marker counts: n + m in gc_collect_main() */
            marker_gc__done(item(info, "collected") + item(info, "uncollectable"));
    }
    py.PyErr_Clear();
    return cpython_none();
}

static PyMethodDef gc_def = {"systemtap_gc", on_gc, METH_VARARGS, NULL};

static enum hook_result set(struct interp *interp, unsigned wanted)
{
    if (!wanted == !interp->gc_callback)
        return HOOK_DONE;
    PyObject *module = py.PyImport_ImportModuleLevel("gc", NULL, NULL, NULL, 0);
    PyObject *callbacks = module ? py.PyObject_GetAttrString(module, "callbacks") : NULL;
    enum hook_result result = HOOK_LATER;
    if (callbacks && wanted) {
        PyObject *callback = py.PyCFunction_NewEx(&gc_def, NULL, NULL);
        if (callback && py.PyList_Append(callbacks, callback) == 0) {
            interp->gc_callback = callback;
            result = HOOK_DONE;
        }
    } else if (callbacks) {
        /* a program that emptied the list has taken it out already */
        cpython_done(py.PyObject_CallMethod(callbacks, "remove", "O", interp->gc_callback));
        py.Py_DecRef(interp->gc_callback);
        interp->gc_callback = NULL;
        result = HOOK_DONE;
    }
    py.PyErr_Clear();
    if (callbacks)
        py.Py_DecRef(callbacks);
    if (module)
        py.Py_DecRef(module);
    return result;
}

const struct hook hook_gc = {
    .name = "gc.callbacks",
    .markers = MARKER_BIT(gc__start) | MARKER_BIT(gc__done),
    .fits = fits,
    .set = set,
};
