/*
 * Module definitions (PEP 489).  They are part of CPython's stable ABI, except for the object
 * header before them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "module.h"

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

struct object {
    struct PyObject_head head;
    struct definition content;
};

/* ---------------------------------------------------------------- CPython's modules */

bool module_add_exec(PyObject *module, int (*start)(PyObject *))
{
    void *type = cpython_symbol("PyModuleDef_Type");
    struct object *object = module ? ob_base(module) : NULL;
    if (!object || !type || object->head.ob_type != type)
        return false;
    struct definition *definition = &object->content;
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

static void *definition_for_this_cpython(int (*exec)(PyObject *))
{
    static struct slot slots[4];
    slots[0] = (struct slot){MOD_EXEC, (void *)exec};
    if (py.minor >= 12)
        slots[1] = (struct slot){MOD_MULTIPLE_INTERPRETERS, PER_INTERPRETER_GIL};
    if (py.minor >= 13)
        slots[2] = (struct slot){MOD_GIL, GIL_NOT_USED};

#define CONTENT \
    { \
        .name = "python_stap", .doc = "The markers of systemtap-cpython.", .slots = slots \
    }
    static struct object plain = {{.ob_refcnt = 1}, CONTENT};
    static struct {
        struct PyObject_head_trace_refs head;
        struct definition content;
    } traced = {{.head = {.ob_refcnt = 1}}, CONTENT};
    static struct {
        struct PyObject_head_nogil head;
        struct definition content;
    } free_threaded = {{.ob_flags = FLAG_STATICALLY_ALLOCATED, .ob_ref_local = UINT32_MAX},
                       CONTENT};
#undef CONTENT
    if (py.free_threaded)
        return &free_threaded;
    if (cpython_symbol("PyModule_Create2TraceRefs"))
        return &traced;
    return &plain;
}

PyObject *module_create(int (*exec)(PyObject *))
{
    PyObject *(*init)(void *) = (PyObject * (*)(void *)) cpython_symbol("PyModuleDef_Init");
    return init ? init(definition_for_this_cpython(exec)) : NULL;
}
