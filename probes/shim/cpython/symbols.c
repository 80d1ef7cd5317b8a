/*
 * Finds CPython's exported functions in the running process.  Called by core/loader.c until it has
 * found them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/symbols.h"

#include "os/glibc.h"
#include "shared/versions.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cpython py;

/* The handle of CPython's library; NULL, which is RTLD_DEFAULT, if its symbols are global. */
static void *library;

void *cpython_symbol(const char *name)
{
    return dlsym(library, name);
}

bool is_libpython(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strstr(slash ? slash : path, "libpython3");
}

static int is_library(struct dl_phdr_info *info, size_t size, void *path)
{
    (void)size;
    if (!is_libpython(info->dlpi_name))
        return 0;
    *(char **)path = strdup(info->dlpi_name); /* valid only while ld.so holds its lock */
    return 1;
}

/* If the program loaded CPython's library by RTLD_LOCAL, its symbols are not global. */
static void find_library(const char *path)
{
    char *found = NULL;
    if (!path && !dlsym(RTLD_DEFAULT, "Py_GetVersion")) {
        dl_iterate_phdr(is_library, &found);
        path = found;
    }
    library = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : RTLD_DEFAULT;
    free(found);
}

static bool version_fits(const char **why)
{
    const char *version = py.Py_GetVersion();
    *why = "not CPython 3.6 or later";
    if (strncmp(version, "3.", 2) != 0)
        return false;
    py.minor = number_at(version + 2, NULL);
    py.free_threaded = strstr(version, "free-threading") != NULL;
    if (py.minor < CPYTHON_OLDEST_MINOR)
        return false;
    *why = FREE_THREADING_UNSUPPORTED;
    if (py.free_threaded && !free_threading_supported(version))
        return false;
    py.ob_base_offset = py.free_threaded ? offsetof(struct PyObject_head_nogil, head) : 0;
    py.frame = frame_offsets(py.minor);
    py.code = code_offsets(py.minor);
    py.dict = dict_offsets(py.minor);
    return true;
}

static bool has_debug_offsets(void)
{
    const struct _Py_DebugOffsets_313 *offsets = (const void *)py.runtime;
    const unsigned long *version = cpython_symbol("Py_Version");
    return py.minor >= 13 && py.minor <= CPYTHON_NEWEST_MINOR && offsets && version &&
           memcmp(offsets->cookie, DEBUG_OFFSETS_COOKIE, sizeof offsets->cookie) == 0 &&
           offsets->version == *version && offsets->free_threaded == py.free_threaded;
}

/* 0: unknown. */
static size_t size_of_symbol(const void *address)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    bool found = address && dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
                 info.dli_saddr == address;
    return found ? symbol->st_size : 0;
}

bool cpython_load_symbols(const char *path, const char **why)
{
    *why = NULL;
    find_library(path);
    py.Py_GetVersion = (const char *(*)(void))cpython_symbol("Py_GetVersion");
    if (!py.Py_GetVersion || !version_fits(why))
        return false;

#define NEED(type, name, parameters) \
    py.name = (type(*) parameters)cpython_symbol(#name); \
    if (!py.name) { \
        *why = "CPython does not export " #name; \
        return false; \
    }
#define MAY(type, name, parameters) py.name = (type(*) parameters)cpython_symbol(#name);
    CPYTHON_SYMBOLS(NEED, MAY)
#undef NEED
#undef MAY
    py.none = cpython_symbol("_Py_NoneStruct");
    py.inittab = cpython_symbol("PyImport_Inittab");
    py.cfunction_type = cpython_symbol("PyCFunction_Type");
    py.method_descriptor_type = cpython_symbol("PyMethodDescr_Type");
    py.method_type = cpython_symbol("PyMethod_Type");
    py.code_type = cpython_symbol("PyCode_Type");
    py.function_type = cpython_symbol("PyFunction_Type");
    py.tuple_type = cpython_symbol("PyTuple_Type");
    py.runtime = cpython_symbol("_PyRuntime");
    py.runtime_size = size_of_symbol(py.runtime);
    py.has_debug_offsets = has_debug_offsets();
    py.finalizing = py.minor == 6 ? cpython_symbol("_Py_Finalizing") : NULL;
    py.current = py.minor == 6 ? cpython_symbol("_PyThreadState_Current") : NULL;
    *why = "CPython does not export its data";
    if (!py.none || !py.inittab || !py.cfunction_type || !py.method_descriptor_type ||
        !py.method_type || !py.code_type || !py.function_type || !py.tuple_type)
        return false;

    *why = "this free-threaded CPython does not export its locks";
    if (py.free_threaded && (!py.PyCriticalSection_Begin || !py.PyCriticalSection_End ||
                             !py.PyDict_GetItemRef || !py.PyUnstable_GC_VisitObjects))
        return false;

    /* 3.12 gave the co_extra functions a public name. */
    if (py.PyUnstable_Code_GetExtra) {
        py._PyCode_GetExtra = py.PyUnstable_Code_GetExtra;
        py._PyCode_SetExtra = py.PyUnstable_Code_SetExtra;
        py._PyEval_RequestCodeExtraIndex = py.PyUnstable_Eval_RequestCodeExtraIndex;
    }
    *why = NULL;
    return true;
}

PyInterpreterState *cpython_interpreter(void)
{
    if (py.PyInterpreterState_Get) /* 3.9+ */
        return py.PyInterpreterState_Get();
    if (py._PyInterpreterState_Get) /* 3.8 */
        return py._PyInterpreterState_Get();
    return cpython_interpreter_of(py.PyThreadState_Get());
}

PyInterpreterState *cpython_interpreter_of(PyThreadState *state)
{
    return ((struct PyThreadState_head *)state)->interp;
}

PyInterpreterState *cpython_main_interpreter(void)
{
    if (py.PyInterpreterState_Main) /* 3.7+ */
        return py.PyInterpreterState_Main();
    PyInterpreterState *state = py.PyInterpreterState_Head();
    while (py.PyInterpreterState_Next(state)) /* the newest is the first */
        state = py.PyInterpreterState_Next(state);
    return state;
}

bool cpython_is_main(void)
{
    PyInterpreterState *state = cpython_interpreter();
    if (py.PyInterpreterState_GetID) /* 3.7+ */
        return py.PyInterpreterState_GetID(state) == 0;
    return !py.PyInterpreterState_Next(state); /* the list has the newest first */
}

bool cpython_is_finalizing(void)
{
    if (py.Py_IsFinalizing) /* 3.13+ */
        return py.Py_IsFinalizing();
    return py._Py_IsFinalizing ? py._Py_IsFinalizing() : py.finalizing && *py.finalizing;
}

bool cpython_runs_or_starts(void)
{
    return py.Py_IsInitialized() || (py.PyInterpreterState_Head() && !cpython_is_finalizing());
}

/* A new reference: in a free-threaded build a borrowed item may be freed before it is used. */
static PyObject *item_of(PyObject *dict, const char *name)
{
    PyObject *item = NULL;
    if (!py.free_threaded) {
        item = py.PyDict_GetItemString(dict, name);
        if (item)
            py.Py_IncRef(item);
        return item;
    }
    PyObject *key = py.PyUnicode_FromString(name);
    if (key) {
        py.PyDict_GetItemRef(dict, key, &item);
        py.Py_DecRef(key);
    }
    return item;
}

/* In a free-threaded build sys.modules may be replaced meanwhile.  PyImport_GetModuleDict() returns
 * the dict to which CPython itself keeps a reference. */
PyObject *cpython_sys_module(const char *name)
{
    PyObject *modules =
        py.free_threaded ? py.PyImport_GetModuleDict() : py.PySys_GetObject("modules");
    PyObject *module = modules ? item_of(modules, name) : NULL;
    py.PyErr_Clear();
    return module;
}

PyObject *cpython_sys_attr(const char *name)
{
    PyObject *sys = cpython_sys_module("sys");
    PyObject *object = sys ? py.PyObject_GetAttrString(sys, name) : NULL;
    cpython_clear_ref(&sys);
    py.PyErr_Clear();
    return object;
}

PyObject *cpython_type(PyObject *object)
{
    PyObject *type = py.PyObject_Type(object);
    py.Py_DecRef(type);
    return type;
}

PyObject *cpython_none(void)
{
    py.Py_IncRef(py.none);
    return py.none;
}

bool cpython_ignore_result(PyObject *result)
{
    if (!result) {
        py.PyErr_Clear();
        return false;
    }
    py.Py_DecRef(result);
    return true;
}

void cpython_clear_ref(PyObject **object)
{
    if (*object)
        py.Py_DecRef(*object);
    *object = NULL;
}

long cpython_int_attr(PyObject *object, const char *name)
{
    PyObject *value = py.PyObject_GetAttrString(object, name);
    long result = value ? py.PyLong_AsLong(value) : 0;
    if (value)
        py.Py_DecRef(value);
    py.PyErr_Clear();
    return result;
}

static void drop(const struct cpython_retries *attempts)
{
    PyObject *parts[] = {attempts->type, attempts->value, attempts->traceback};
    for (int i = 0; i < 3; i++)
        if (parts[i])
            py.Py_DecRef(parts[i]);
}

/* A pending call. */
static int raise_kept(void *data)
{
    struct cpython_retries *kept = data;
    py.PyErr_Restore(kept->type, kept->value, kept->traceback);
    free(kept);
    return -1;
}

static void raise_later(const struct cpython_retries *attempts)
{
    struct cpython_retries *kept = malloc(sizeof *kept);
    if (kept)
        *kept = *attempts;
    if (!kept || py.Py_AddPendingCall(raise_kept, kept) != 0) {
        drop(attempts);
        free(kept);
    }
}

bool cpython_retry(struct cpython_retries *attempts, bool done)
{
    enum { ATTEMPTS = 3 };
    /* Python code raised it on the thread where signal handlers run. */
    if (done && attempts->traceback && gettid() == getpid() && cpython_is_main()) {
        raise_later(attempts);
        return false;
    }
    if (done && attempts->traceback && gettid() != getpid())
        py.PyThreadState_SetAsyncExc((unsigned long)pthread_self(), attempts->type);
    drop(attempts);
    if (done)
        return false;
    py.PyErr_Fetch(&attempts->type, &attempts->value, &attempts->traceback);
    if (++attempts->failed < ATTEMPTS)
        return true;
    drop(attempts);
    return false;
}
