/*
 * CPython calls a C function by what its PyMethodDef says at that moment, which is memory that can
 * be written (Modules/posixmodule.c, posix_methods).  Ours calls the one that stood there, whatever
 * arguments its flags give it: all of them are words.
 *
 * SPDX-License-Identifier: MIT
 */
#include "parting.h"

#include "callable.h"
#include "futex.h"
#include "tally.h"

#include <stddef.h>

enum { WAITS = 100, WAIT_US = 500 };

/* The watcher may be telling just now. */
static void flush_function(void)
{
    static atomic_uint nobody_wakes;
    for (int i = 0; i < WAITS && !sums_flush(); i++)
        futex_wait_us(&nobody_wakes, 0, WAIT_US);
}

typedef void *(*c_function)(void *, void *, void *, void *, void *);

/* PARTING(NAME): a function of posix. */
#define EXIT_FUNCTIONS(PARTING) PARTING(_exit) PARTING(execv) PARTING(execve)

#define NUMBER(name) NUMBER_##name,
enum { EXIT_FUNCTIONS(NUMBER) COUNT };

static struct {
    PyMethodDef *definition; /* NULL: not found */
    _Atomic(PyCFunction) before;
} found[COUNT];

#define CALL(name) \
    static void *call_##name(void *a, void *b, void *c, void *d, void *e) \
    { \
        flush_function(); \
        return ((c_function)(void *)found[NUMBER_##name].before)(a, b, c, d, e); \
    }
EXIT_FUNCTIONS(CALL)

#define OURS(name) {#name, call_##name},
static const struct {
    const char *name;
    c_function function;
} ours[COUNT] = {EXIT_FUNCTIONS(OURS)};

/* Threads that call the function meanwhile read one word, the old one or the new. */
void exit_flush_set(bool wanted)
{
    for (int i = 0; i < COUNT; i++) {
        PyMethodDef *definition = found[i].definition;
        PyCFunction our = (PyCFunction)(void *)ours[i].function;
        if (!definition || (definition->ml_meth == our) == wanted)
            continue;
        if (wanted)
            found[i].before = definition->ml_meth;
        definition->ml_meth = wanted ? our : found[i].before;
    }
}

/* posix is in sys.modules from the start.  If the program has put something else there, that has no
 * functions in C. */
void exit_flush_find(void)
{
    PyObject *posix = cpython_sys_module("posix");
    for (int i = 0; i < COUNT && posix; i++) {
        PyObject *function = py.PyObject_GetAttrString(posix, ours[i].name);
        if (function && cpython_type(function) == py.cfunction_type && !found[i].definition)
            found[i].definition = callable_methoddef(function);
        cpython_clear_ref(&function);
        py.PyErr_Clear();
    }
    cpython_clear_ref(&posix);
    exit_flush_set(sums_enabled(SUMS_MARKERS)); /* a tracer may be there already */
}
