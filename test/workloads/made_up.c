/*
 * made_up.call(function) calls the function from a frame that it makes up, compiled() in
 * compiled.pyx, and tells the thread's own trace and profile functions of that: as what Cython
 * compiles with profile=True does up to CPython 3.11.
 *
 * SPDX-License-Identifier: MIT
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

static PyObject *globals;
static PyCodeObject *code;

static void tell(PyFrameObject *frame, int what, PyObject *argument)
{
    PyThreadState *thread = PyThreadState_Get();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    thread->tracing++;
    if (thread->c_tracefunc)
        thread->c_tracefunc(thread->c_traceobj, frame, what, argument);
    if (thread->c_profilefunc && what != PyTrace_LINE)
        thread->c_profilefunc(thread->c_profileobj, frame, what, argument);
    thread->tracing--;
    PyErr_Restore(type, value, traceback);
}

static PyObject *call(PyObject *self, PyObject *function)
{
    (void)self;
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    if (!frame)
        return NULL;
    tell(frame, PyTrace_CALL, Py_None);
    tell(frame, PyTrace_LINE, Py_None);
    PyObject *result = PyObject_CallObject(function, NULL);
    tell(frame, PyTrace_RETURN, result);
    Py_DECREF(frame);
    return result;
}

static PyMethodDef methods[] = {{"call", call, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "made_up", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_made_up(void)
{
    PyObject *module = PyModule_Create(&definition);
    globals = module ? PyModule_GetDict(module) : NULL;
    code = PyCode_NewEmpty("compiled.pyx", "compiled", 7);
    return module;
}
