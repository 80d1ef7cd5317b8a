/*
 * Module definitions (PEP 489).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MODULE_H
#define MODULE_H

#include "cpython.h"

/* Has each interpreter that initialises a built-in module of CPython call start() at the end of it.
 * module is what the module's PyInit function returned.  False: its definition is of an unknown
 * kind.  Called by the loader; GIL held, no exception in flight. */
bool module_add_exec(PyObject *module, int (*start)(PyObject *));

/* What PyInit_python_stap() is to return: an empty module, which has exec() called when it is
 * imported.  Called by the loader, with the GIL of the interpreter that imports it. */
PyObject *module_create(int (*exec)(PyObject *));

#endif
