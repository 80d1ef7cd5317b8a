/*
 * What the cfunction markers say of a callable of C.  Used by the hooks that feed them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CALLABLE_H
#define CALLABLE_H

#include "cpython.h"

struct callable_names {
    const char *name, *module; /* NULL: there is none, or it can't be encoded */
    PyObject *str_refs[2];
};

/* Whether it is one of those whose calls sys.setprofile() reports: a builtin function or method, or
 * the descriptor of one.  GIL held, no exception in flight. */
bool callable_is_builtin(PyObject *callable);

/* What a bound method that was made by hand (types.MethodType(len, x)) calls, borrowed; other
 * callables themselves.  GIL held. */
PyObject *callable_unwrap_method(PyObject *callable);

/* Where its C function and name are defined, the same for all objects that call it; NULL in a
 * CPython whose structs are not as in the release.  Of one for which callable_is_builtin() holds.
 * GIL held, no exception in flight. */
PyMethodDef *callable_methoddef(PyObject *callable);

/* Its names, until callable_names_release().  GIL held, no exception in flight. */
struct callable_names callable_names_get(PyObject *callable);
void callable_names_release(struct callable_names *names);

#endif
