/*
 * Finds CPython's exported functions in the running process.  Called once, by the loader.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpython.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct cpython py;

/* Include/cpython/pystate.h of 3.6 and 3.7, which have no function for it: prev, next, interp. */
struct thread_state_36 {
    PyThreadState *prev, *next;
    PyInterpreterState *interp;
};

bool cpython_find(const char **why)
{
    *why = NULL;
    py.Py_GetVersion = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
    if (!py.Py_GetVersion)
        return false;

    const char *version = py.Py_GetVersion();
    *why = "not CPython 3.6 or later";
    if (strncmp(version, "3.", 2) != 0)
        return false;
    py.minor = atoi(version + 2);
    py.free_threaded = strstr(version, "free-threading") != NULL;
    if (py.minor < 6)
        return false;
    /* co_extra and the frame hook are not thread-safe without a GIL. */
    *why = "free-threaded builds are not supported";
    if (py.free_threaded)
        return false;

#define NEED(type, name, parameters) \
    py.name = (type(*) parameters)dlsym(RTLD_DEFAULT, #name); \
    if (!py.name) { \
        *why = "CPython does not export " #name; \
        return false; \
    }
#define MAY(type, name, parameters) py.name = (type(*) parameters)dlsym(RTLD_DEFAULT, #name);
    CPYTHON_SYMBOLS(NEED, MAY)
#undef NEED
#undef MAY
    py.none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    py.inittab = dlsym(RTLD_DEFAULT, "PyImport_Inittab");
    py.cfunction_type = dlsym(RTLD_DEFAULT, "PyCFunction_Type");
    py.method_descriptor_type = dlsym(RTLD_DEFAULT, "PyMethodDescr_Type");
    py.method_type = dlsym(RTLD_DEFAULT, "PyMethod_Type");
    py.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    py.finalizing = py.minor == 6 ? dlsym(RTLD_DEFAULT, "_Py_Finalizing") : NULL;
    *why = "CPython does not export its data";
    if (!py.none || !py.inittab || !py.cfunction_type || !py.method_descriptor_type ||
        !py.method_type || !py.code_type)
        return false;

    /* 3.12 gave the co_extra functions a public name. */
    if (py.PyUnstable_Code_GetExtra) {
        py._PyCode_GetExtra = py.PyUnstable_Code_GetExtra;
        py._PyCode_SetExtra = py.PyUnstable_Code_SetExtra;
        py._PyEval_RequestCodeExtraIndex = py.PyUnstable_Eval_RequestCodeExtraIndex;
    }
    *why = NULL;
    return true;
}

PyInterpreterState *cpython_interpreter(void)
{
    if (py.PyInterpreterState_Get) /* 3.9+ */
        return py.PyInterpreterState_Get();
    if (py._PyInterpreterState_Get) /* 3.8 */
        return py._PyInterpreterState_Get();
    return ((struct thread_state_36 *)py.PyThreadState_Get())->interp;
}

bool cpython_is_main(void)
{
    PyInterpreterState *state = cpython_interpreter();
    if (py.PyInterpreterState_GetID) /* 3.7+ */
        return py.PyInterpreterState_GetID(state) == 0;
    return !py.PyInterpreterState_Next(state); /* the list has the newest first */
}

PyObject *cpython_type(PyObject *object)
{
    PyObject *type = py.PyObject_Type(object);
    py.Py_DecRef(type);
    return type;
}

PyObject *cpython_none(void)
{
    py.Py_IncRef(py.none);
    return py.none;
}

bool cpython_done(PyObject *result)
{
    if (!result) {
        py.PyErr_Clear();
        return false;
    }
    py.Py_DecRef(result);
    return true;
}

long cpython_long(PyObject *object, const char *name)
{
    PyObject *value = py.PyObject_GetAttrString(object, name);
    long result = value ? py.PyLong_AsLong(value) : 0;
    if (value)
        py.Py_DecRef(value);
    py.PyErr_Clear();
    return result;
}
