/*
 * fires.run(codelike, function) calls the function, and reports events of its own as a C library
 * may from CPython 3.13 on: that the codelike starts, is at line 11, and returns what the function
 * does, or that its exception leaves it.  fires.code() makes a code object to report, of compiled()
 * in compiled.pyx.
 *
 * SPDX-License-Identifier: MIT
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static const uint8_t types[] = {PY_MONITORING_EVENT_PY_START, PY_MONITORING_EVENT_LINE,
                                PY_MONITORING_EVENT_PY_RETURN, PY_MONITORING_EVENT_PY_UNWIND};
enum { START, LINE, RETURN, UNWIND, TYPES };

static PyObject *run(PyObject *self, PyObject *arguments)
{
    (void)self;
    PyObject *codelike, *function;
    PyMonitoringState states[TYPES] = {{0, 0}};
    uint64_t version = 0;
    if (!PyArg_ParseTuple(arguments, "OO", &codelike, &function))
        return NULL;
    PyMonitoring_EnterScope(states, &version, types, TYPES);
    PyMonitoring_FirePyStartEvent(&states[START], codelike, 0);
    PyMonitoring_FireLineEvent(&states[LINE], codelike, 0, 11);
    PyObject *result = PyObject_CallNoArgs(function);
    if (result)
        PyMonitoring_FirePyReturnEvent(&states[RETURN], codelike, 0, result);
    else
        PyMonitoring_FirePyUnwindEvent(&states[UNWIND], codelike, 0);
    PyMonitoring_ExitScope();
    return result;
}

static PyObject *code(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return (PyObject *)PyCode_NewEmpty("compiled.pyx", "compiled", 7);
}

static PyMethodDef methods[] = {{"run", run, METH_VARARGS, NULL},
                                {"code", code, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "fires", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_fires(void)
{
    return PyModule_Create(&definition);
}
