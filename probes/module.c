/*
 * Module definitions (PEP 489).  They are part of CPython's stable ABI, but for the object header
 * before them.
 *
 * PyInit_python_stap makes the library importable, for a .pth file:
 *
 *   import python_stap     loads the shim, where python_stap.so is a link to it
 *
 * The module is empty.  It can be imported wherever a Python runs, also where the shim does
 * nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "module.h"

#include "loader.h"

#include <stdlib.h>
#include <string.h>

/* Include/moduleobject.h */
enum { MOD_EXEC = 2, MOD_MULTIPLE_INTERPRETERS = 3, MOD_GIL = 4 };
static void *const PER_INTERPRETER_GIL = (void *)2;
static void *const GIL_NOT_USED = (void *)1;

struct slot {
    int slot;
    void *value;
};

/* PyModuleDef, after PyObject_HEAD. */
struct definition {
    void *init;
    Py_ssize_t index;
    PyObject *copy;
    const char *name, *doc;
    Py_ssize_t size;
    PyMethodDef *methods;
    struct slot *slots;
    void *traverse, *clear, *free;
};

/* ---------------------------------------------------------------- CPython's modules */

bool module_on_exec(PyObject *module, int (*start)(PyObject *))
{
    void *type = cpython_symbol("PyModuleDef_Type");
    if (!module || !type || ((void **)module)[1] != type)
        return false;
    struct definition *definition = (struct definition *)((void **)module + 2);
    if (!definition->slots)
        return false;
    size_t slots = 0;
    for (; definition->slots[slots].slot; slots++)
        if (definition->slots[slots].value == (void *)start)
            return true;
    /* Never freed: the definition is the interpreter's own, and static. */
    struct slot *more = calloc(slots + 2, sizeof *more);
    if (!more)
        return false;
    memcpy(more, definition->slots, slots * sizeof *more);
    more[slots] = (struct slot){MOD_EXEC, (void *)start};
    definition->slots = more;
    return true;
}

/* ---------------------------------------------------------------- ours */

static int exec_module(PyObject *module)
{
    (void)module;
    loader_imported();
    return 0;
}

static void *definition_for_this_cpython(void)
{
    static struct slot slots[4] = {{MOD_EXEC, (void *)exec_module}};
    if (py.minor >= 12)
        slots[1] = (struct slot){MOD_MULTIPLE_INTERPRETERS, PER_INTERPRETER_GIL};
    if (py.minor >= 13)
        slots[2] = (struct slot){MOD_GIL, GIL_NOT_USED};

    /* Include/object.h: reference count and type; builds with Py_TRACE_REFS have two pointers
     * before them; without a GIL there are 32 bytes, with the local reference count, for an
     * immortal object, at 12. */
    static void *words[4 + sizeof(struct definition) / sizeof(void *)];
    size_t head = 2;
    if (py.free_threaded) {
        head = 4;
        memset((char *)words + 12, 0xff, 4);
    } else {
        if (cpython_symbol("PyModule_Create2TraceRefs"))
            head = 4;
        words[head - 2] = (void *)1;
    }
    struct definition *definition = (struct definition *)(words + head);
    if (!definition->name) {
        definition->name = "python_stap";
        definition->doc = "The markers of systemtap-cpython.";
        definition->slots = slots;
    }
    return words;
}

PyObject *PyInit_python_stap(void)
{
    const char *why;
    if (!py.Py_GetVersion) /* preloaded into a program that found its Python only later */
        cpython_find(NULL, &why);
    PyObject *(*init)(void *) = (PyObject * (*)(void *)) cpython_symbol("PyModuleDef_Init");
    return init ? init(definition_for_this_cpython()) : NULL;
}
