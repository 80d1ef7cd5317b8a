/*
 * The import markers, by a function in place of importlib._bootstrap._find_and_load.  CPython looks
 * it up there for every import that sys.modules can't answer (Python/import.c:
 * import_find_and_load()).
 *
 * All functions: GIL held.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/code.h"
#include "cpython/threads.h"
#include "hooks/hook.h"

#include <stddef.h>

static const char find_name[] = "_find_and_load";

static bool fits(void)
{
    return true;
}

/* The tuple that a wrapper has as self. */
enum { ORIGINAL, GCD_IMPORT, WRAPPED };

/* _find_and_load(name, import_), in 3.15 with *, lazy_submodule=False.  Reports only calls by C,
 * with builtins.__import__, as CPython's own markers do.  importlib's own calls, with _gcd_import,
 * are made also for modules that are loaded. */
static PyObject *find_and_load(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *original = py.PyTuple_GetItem(self, ORIGINAL);
    PyObject *import = py.PyTuple_GetItem(arguments, 1);
    py.PyErr_Clear();
    if (import == py.PyTuple_GetItem(self, GCD_IMPORT))
        return py.PyObject_Call(original, arguments, keywords);
    PyObject *module = py.PyTuple_GetItem(arguments, 0); /* borrowed; arguments keeps it */
    Py_ssize_t length = 0;
    const char *name = module ? py.PyUnicode_AsUTF8AndSize(module, &length) : NULL;
    py.PyErr_Clear();
    if (MARKER_ON(import__find__load__start))
        marker_import__find__load__start(probe_string(name, length));
    PyObject *result = py.PyObject_Call(original, arguments, keywords);
    if (MARKER_ON(import__find__load__done))
        marker_import__find__load__done(probe_string(name, length), result != NULL);
    return result;
}

static PyMethodDef find_def = {find_name, (PyCFunction)(void *)find_and_load,
                               METH_VARARGS | METH_KEYWORDS, NULL};

static enum hook_result put_in(struct interp *interp, PyObject *importlib)
{
    PyObject *original = py.PyObject_GetAttrString(importlib, find_name);
    PyObject *gcd_import = py.PyObject_GetAttrString(importlib, "_gcd_import");
    PyObject *behind = original && gcd_import ? py.PyTuple_New(WRAPPED) : NULL;
    PyObject *wrapper = NULL;
    if (behind) {
        py.Py_IncRef(original);
        py.PyTuple_SetItem(behind, ORIGINAL, original);
        py.Py_IncRef(gcd_import);
        py.PyTuple_SetItem(behind, GCD_IMPORT, gcd_import);
        wrapper = py.PyCFunction_NewEx(&find_def, behind, NULL);
        py.Py_DecRef(behind);
    }
    if (gcd_import)
        py.Py_DecRef(gcd_import);
    if (wrapper && py.PyObject_SetAttrString(importlib, find_name, wrapper) == 0) {
        interp->find_and_load_original = original;
        interp->find_and_load_wrapper = wrapper;
        return HOOK_DONE;
    }
    if (wrapper)
        py.Py_DecRef(wrapper);
    if (original)
        py.Py_DecRef(original);
    py.PyErr_Clear();
    return HOOK_LATER;
}

/* Puts the original back, unless the program has put its own function in front of ours.  Ours then
 * stays behind it, and fires nothing until its markers are enabled again. */
static bool restore(struct interp *interp, PyObject *importlib)
{
    struct PyCriticalSection section;
    PyObject *names = py.PyObject_GetAttrString(importlib, "__dict__");
    if (!names)
        return false;
    nogil_lock_object(&section, names); /* no other thread sets another function in between */
    PyObject *now = py.PyObject_GetAttrString(importlib, find_name);
    bool ours = now == interp->find_and_load_wrapper;
    if (ours)
        py.PyObject_SetAttrString(importlib, find_name, interp->find_and_load_original);
    nogil_unlock_object(&section);
    cpython_clear_ref(&now);
    py.Py_DecRef(names);
    return ours;
}

static enum hook_result take_out(struct interp *interp, PyObject *importlib)
{
    if (restore(interp, importlib)) {
        cpython_clear_ref(&interp->find_and_load_original);
        cpython_clear_ref(&interp->find_and_load_wrapper);
    }
    py.PyErr_Clear();
    return HOOK_DONE;
}

static enum hook_result set(struct interp *interp, unsigned enabled)
{
    if (!enabled == !interp->find_and_load_wrapper)
        return HOOK_DONE;
    PyObject *importlib = cpython_sys_module("_frozen_importlib");
    if (!importlib)
        return HOOK_LATER;
    enum hook_result result = enabled ? put_in(interp, importlib) : take_out(interp, importlib);
    py.Py_DecRef(importlib);
    return result;
}

static void end(struct interp *interp)
{
    cpython_clear_ref(&interp->find_and_load_wrapper);
    cpython_clear_ref(&interp->find_and_load_original);
}

const struct hook hook_import = {
    .name = "import hook",
    .markers = MARKER_BIT(import__find__load__start) | MARKER_BIT(import__find__load__done),
    .is_supported = fits,
    .set = set,
    .end = end,
};
