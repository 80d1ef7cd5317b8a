/*
 * Names of C callables, by their public attributes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "callable.h"

#include "code.h"

#include <stddef.h>

static bool is_function(PyObject *type)
{
    return type == py.cfunction_type || py.PyType_IsSubtype(type, py.cfunction_type);
}

bool callable_of_c(PyObject *callable)
{
    PyObject *type = cpython_type(callable);
    return type == py.method_descriptor_type || is_function(type);
}

PyObject *callable_behind(PyObject *callable)
{
    return cpython_type(callable) == py.method_type ? py.PyMethod_Function(callable) : callable;
}

static const char *text_attribute(PyObject *object, const char *name, PyObject **owner)
{
    Py_ssize_t length = 0;
    *owner = py.PyObject_GetAttrString(object, name);
    const char *utf8 = *owner ? py.PyUnicode_AsUTF8AndSize(*owner, &length) : NULL;
    py.PyErr_Clear();
    return code_touch(utf8, length);
}

struct callable callable_open(PyObject *callable)
{
    struct callable names = {0};
    names.name = text_attribute(callable, "__name__", &names.owners[0]);
    PyObject *type = py.PyObject_Type(callable);
    if (is_function(type)) /* a descriptor has no __module__, and a method has None */
        names.module = text_attribute(callable, "__module__", &names.owners[1]);
    py.Py_DecRef(type);
    return names;
}

void callable_close(struct callable *names)
{
    for (int i = 0; i < 2; i++)
        if (names->owners[i])
            py.Py_DecRef(names->owners[i]);
}
