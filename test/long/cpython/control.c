/*
 * Another tool in the shim's place: if a test of CPython differs beside this too, it differs with
 * any tool.  It is preloaded as the shim is (compare.py), so it is also in the processes that the
 * tests start, also with -I and -S; but not in one that starts CPython a second time (test_embed),
 * nor below 3.12.
 *
 * In each interpreter it takes the shim's tool id of sys.monitoring, and enables the events that
 * the shim enables, with callbacks in C like the shim's.  An audit hook starts it at the first
 * imports and exec()s.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))
typedef struct object PyObject;
extern char _PyRuntime[] WEAK;
extern PyObject _Py_NoneStruct WEAK;
int PySys_AddAuditHook(int (*)(const char *, PyObject *, void *), void *) WEAK;
PyObject *PySys_GetObject(const char *) WEAK;
int Py_IsInitialized(void) WEAK;
void Py_DecRef(PyObject *) WEAK;
void PyErr_Clear(void) WEAK;
PyObject *PyErr_Occurred(void) WEAK;
PyObject *PyObject_CallMethod(PyObject *, const char *, const char *, ...) WEAK;
PyObject *PyObject_GetAttrString(PyObject *, const char *) WEAK;
PyObject *PyUnicode_FromString(const char *) WEAK;
long PyLong_AsLong(PyObject *) WEAK;

enum { TOOL = 4 };
static const char *const names[] = {
    "PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND",
    "LINE",     "JUMP",      "CALL",     "C_RETURN",  "C_RAISE",
};

/* Our entry in the list of audit hooks, which begins with its next one, and where _PyRuntime has
 * it. */
static void *entry, **head;
static struct allocator {
    void *context, *(*malloc)(void *, size_t), *others[3];
} allocator;
void PyMem_GetAllocator(int, struct allocator *) WEAK;
void PyMem_SetAllocator(int, struct allocator *) WEAK;

static long use(PyObject *monitoring)
{
    PyObject *events = PyObject_GetAttrString(monitoring, "events"),
             *empty = PyUnicode_FromString("");
    PyObject *callback = PyObject_GetAttrString(empty, "format"); /* takes anything */
    long all = 0;
    Py_DecRef(PyObject_CallMethod(monitoring, "use_tool_id", "is", TOOL, "control"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *event = PyObject_GetAttrString(events, names[i]);
        long number = PyLong_AsLong(event);
        Py_DecRef(event);
        Py_DecRef(
            PyObject_CallMethod(monitoring, "register_callback", "ilO", TOOL, number, callback));
        all |= number;
    }
    Py_DecRef(callback);
    Py_DecRef(empty);
    Py_DecRef(events);
    return all;
}

static int on_audit(const char *event, PyObject *arguments, void *data)
{
    static _Thread_local bool busy;
    (void)arguments, (void)data;
    /* An audit hook from before the start would be freed by another allocator with -X dev: taken
     * out. */
    if (strcmp(event, "cpython._PySys_ClearAuditHooks") == 0)
        *head = *(void **)entry;
    bool started = strcmp(event, "import") == 0 || strcmp(event, "exec") == 0;
    if (!started || busy || !Py_IsInitialized() || PyErr_Occurred())
        return 0;
    busy = true;
    PyObject *monitoring = PySys_GetObject("monitoring");
    PyObject *name = monitoring ? PyObject_CallMethod(monitoring, "get_tool", "i", TOOL) : NULL;
    if (name == &_Py_NoneStruct)
        Py_DecRef(PyObject_CallMethod(monitoring, "set_events", "il", TOOL, use(monitoring)));
    Py_DecRef(name);
    PyErr_Clear();
    busy = false;
    return 0;
}

static void *note(void *context, size_t size)
{
    entry = allocator.malloc(context, size);
    return entry;
}

__attribute__((constructor)) static void start(void)
{
    Dl_info info;
    const ElfW(Sym) * symbol;
    if (!PySys_AddAuditHook || !dladdr1(_PyRuntime, &info, (void **)&symbol, RTLD_DL_SYMENT))
        return;
    PyMem_GetAllocator(0, &allocator);
    struct allocator noting = allocator;
    noting.malloc = note;
    PyMem_SetAllocator(0, &noting);
    PySys_AddAuditHook(on_audit, NULL);
    PyMem_SetAllocator(0, &allocator);
    for (void **word = (void **)_PyRuntime; (char *)word < _PyRuntime + symbol->st_size; word++)
        if (*word == entry)
            head = word;
    if (!head)
        abort();
}
