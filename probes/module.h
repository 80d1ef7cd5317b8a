/*
 * The library as a Python extension module, and the modules of CPython that tell the loader of a
 * new interpreter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MODULE_H
#define MODULE_H

#include "cpython.h"

/* Has each interpreter that initialises a built-in module of CPython call start() at the end of it.
 * module is what the module's PyInit function returned.  False: it is no definition that is known.
 * GIL held, no exception in flight. */
bool module_on_exec(PyObject *module, int (*start)(PyObject *));

/* Makes the library importable as python_stap.  Protected: so our own mention of it is not that of
 * another file that came first. */
__attribute__((visibility("protected"))) PyObject *PyInit_python_stap(void);

#endif
