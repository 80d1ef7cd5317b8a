/*
 * The gc markers, by a callable in gc.callbacks, which CPython calls before and after each
 * collection.
 *
 * All functions: GIL held.  In a free-threaded build, another thread may be in CPython's loop over
 * the list, which takes no lock (Python/gc_free_threading.c: invoke_gc_callback()).  There the list
 * changes only while the world is stopped, and a callable that is taken out is not freed.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/threads.h"
#include "hooks/hook.h"

#include <stddef.h>
#include <string.h>

static bool fits(void)
{
    return true;
}

/* The borrowed value stays: CPython made the dict for this collection, and no other thread has
 * it. */
static long item(PyObject *info, const char *name)
{
    PyObject *value = py.PyDict_GetItemString(info, name);
    return value ? py.PyLong_AsLong(value) : 0;
}

/* Called with (phase, info) and no exception in flight (Modules/gcmodule.c:
 * invoke_gc_callback()). */
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

/* Keeps CPython's own list: the program may replace gc.callbacks by another list, which CPython
 * ignores.  Imports gc at the start, before the program has finders that would see the import. */
static void start(struct interp *interp)
{
    PyObject *module = py.PyImport_ImportModuleLevel("gc", NULL, NULL, NULL, 0);
    PyObject *callbacks = module ? py.PyObject_GetAttrString(module, "callbacks") : NULL;
    py.PyErr_Clear();
    interp->gc_callbacks = callbacks; /* in a Python that ran already it may be the program's own */
    if (module)
        py.Py_DecRef(module);
}

/* The index of our callback in the list, or -1.  Compares by identity: a program's callback may
 * claim to be equal.  In a free-threaded build another thread may change the list meanwhile: there
 * the index is only a hint. */
static Py_ssize_t place_of(const struct interp *interp)
{
    Py_ssize_t i = py.PyList_Size(interp->gc_callbacks);
    while (--i >= 0 && py.PyList_GetItem(interp->gc_callbacks, i) != interp->gc_callback)
        ;
    return i;
}

static void append(void *data)
{
    struct interp *interp = data;
    py.PyList_Append(interp->gc_callbacks, interp->gc_callback);
}

/* Also called while the hook is set: a program that empties the list takes ours out. */
static enum hook_result put_in(struct interp *interp)
{
    if (!interp->gc_callback)
        interp->gc_callback = py.PyCFunction_NewEx(&gc_def, NULL, NULL);
    if (interp->gc_callback && place_of(interp) < 0)
        stop_the_world_call(append, interp);
    bool there = interp->gc_callback && place_of(interp) >= 0;
    py.PyErr_Clear();
    return there ? HOOK_DONE : HOOK_LATER;
}

static bool is_last(const struct interp *interp)
{
    Py_ssize_t place = place_of(interp);
    return place >= 0 && place == py.PyList_Size(interp->gc_callbacks) - 1;
}

static void remove_last(void *data)
{
    struct interp *interp = data;
    if (is_last(interp)) /* still */
        py.PySequence_DelItem(interp->gc_callbacks, py.PyList_Size(interp->gc_callbacks) - 1);
}

/* If the program has a callback behind ours, CPython may be in its loop over the list, and would
 * skip one after a removal.  So ours stays, and fires nothing, until the hook is next set. */
static void take_out(struct interp *interp)
{
    if (is_last(interp))
        stop_the_world_call(remove_last, interp);
    py.PyErr_Clear();
    if (!py.free_threaded && place_of(interp) < 0)
        cpython_clear_ref(&interp->gc_callback);
}

static enum hook_result set(struct interp *interp, unsigned enabled)
{
    if (py.minor < 10 && !cpython_is_main()) /* all interpreters share one list */
        return HOOK_DONE;
    if (!interp->gc_callbacks)
        start(interp);
    if (!interp->gc_callbacks)
        return HOOK_LATER;
    if (enabled)
        return put_in(interp);
    if (!interp->gc_callback)
        return HOOK_DONE;
    take_out(interp);
    /* The world could not be stopped now; or never, and then ours stays, and fires nothing. */
    bool stays = is_last(interp);
    py.PyErr_Clear();
    return stays && !tstate_list_is_stale() ? HOOK_LATER : HOOK_DONE;
}

static void end(struct interp *interp)
{
    cpython_clear_ref(&interp->gc_callback);
    cpython_clear_ref(&interp->gc_callbacks);
}

const struct hook hook_gc = {
    .name = "gc hook",
    .markers = MARKER_BIT(gc__start) | MARKER_BIT(gc__done),
    .watcher_may_reset = true,
    .must_recheck = true,
    .is_supported = fits,
    .start = start,
    .set = set,
    .end = end,
};
