/*
 * Calls a function on another thread state of the calling thread, so that the frames of its own are
 * on no stack meanwhile: as those of a greenlet that another one runs instead of.  Loaded by
 * ctypes.PyDLL.
 *
 * SPDX-License-Identifier: MIT
 */
void *PyThreadState_Get(void);
void *PyThreadState_New(void *);
void *PyThreadState_Swap(void *);
void PyThreadState_Clear(void *);
void PyThreadState_Delete(void *);
void *PyInterpreterState_Head(void);
void *PyObject_CallObject(void *, void *);
void Py_DecRef(void *);

/* In a program with one interpreter. */
void beside(void *function)
{
    void *other = PyThreadState_New(PyInterpreterState_Head());
    void *own = PyThreadState_Swap(other);
    void *result = PyObject_CallObject(function, 0);
    if (result)
        Py_DecRef(result);
    PyThreadState_Clear(other);
    PyThreadState_Swap(own);
    PyThreadState_Delete(other);
}
