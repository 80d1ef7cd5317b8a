/*
 * Names of C callables, by their public attributes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "callable.h"

#include "code.h"
#include "debug.h"

#include <stddef.h>
#include <string.h>

static bool is_function(PyObject *type)
{
    return type == py.cfunction_type || py.PyType_IsSubtype(type, py.cfunction_type);
}

bool callable_is_builtin(PyObject *callable)
{
    PyObject *type = cpython_type(callable);
    return type == py.method_descriptor_type || is_function(type);
}

PyObject *callable_unwrap_method(PyObject *callable)
{
    return cpython_type(callable) == py.method_type ? py.PyMethod_Function(callable) : callable;
}

static PyMethodDef *definition_of(PyObject *callable)
{
    return cpython_type(callable) == py.method_descriptor_type
               ? ((struct PyMethodDescrObject *)ob_base(callable))->d_method
               : ((struct PyCFunctionObject *)ob_base(callable))->m_ml;
}

/* Tries it out with a function of ours, and a method that all tuples have. */
static bool is_known(void)
{
    static PyMethodDef ours = {"systemtap_known", NULL, METH_NOARGS, NULL};
    if (py.minor > CPYTHON_NEWEST_MINOR || py.PySys_GetObject("getobjects"))
        return false;
    PyObject *function = py.PyCFunction_NewEx(&ours, NULL, NULL);
    PyObject *method = py.PyObject_GetAttrString(py.tuple_type, "count");
    bool known = function && method && definition_of(function) == &ours &&
                 cpython_type(method) == py.method_descriptor_type &&
                 strcmp(definition_of(method)->ml_name, "count") == 0;
    cpython_clear_ref(&function);
    cpython_clear_ref(&method);
    py.PyErr_Clear();
    return known;
}

PyMethodDef *callable_methoddef(PyObject *callable)
{
    enum { UNTRIED, KNOWN, UNKNOWN };
    static atomic_int layout; /* each thread finds the same */
    if (__builtin_expect(layout == UNTRIED, 0)) {
        layout = is_known() ? KNOWN : UNKNOWN;
        if (layout == UNKNOWN)
            debug_log("functions of C in this CPython are not as in the release");
    }
    return layout == KNOWN ? definition_of(callable) : NULL;
}

static const char *text_attribute(PyObject *object, const char *name, PyObject **owner)
{
    Py_ssize_t length = 0;
    *owner = py.PyObject_GetAttrString(object, name);
    const char *utf8 = *owner ? py.PyUnicode_AsUTF8AndSize(*owner, &length) : NULL;
    py.PyErr_Clear();
    return probe_string(utf8, length);
}

struct callable_names callable_names_get(PyObject *callable)
{
    struct callable_names names = {0};
    names.name = text_attribute(callable, "__name__", &names.str_refs[0]);
    PyObject *type = py.PyObject_Type(callable);
    if (is_function(type)) /* a descriptor has no __module__, and a method has None */
        names.module = text_attribute(callable, "__module__", &names.str_refs[1]);
    py.Py_DecRef(type);
    return names;
}

void callable_names_release(struct callable_names *names)
{
    for (int i = 0; i < 2; i++)
        if (names->str_refs[i])
            py.Py_DecRef(names->str_refs[i]);
}
