/*
 * Threads of C that enter and leave CPython, as those of audio, Kafka and cffi do: each time with a
 * new thread state.  Loaded by ctypes.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

int PyGILState_Ensure(void);
void PyGILState_Release(int);
void *PyObject_CallObject(void *, void *);
void Py_DecRef(void *);

enum { THREADS = 3 };
static atomic_bool ending;
static pthread_t threads[THREADS];
static void *called;

static void *call(void *unused)
{
    while (!ending) {
        int state = PyGILState_Ensure();
        void *result = called ? PyObject_CallObject(called, 0) : 0;
        if (result)
            Py_DecRef(result);
        PyGILState_Release(state);
    }
    return unused;
}

/* What they call: an object without arguments, or NULL. */
void begin(void *function)
{
    called = function;
    ending = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, call, 0);
}

void end(void)
{
    ending = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
}
