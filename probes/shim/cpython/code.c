/*
 * The record of each code object, kept in its co_extra slot (PEP 523) and freed with it.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/code.h"

#include "cpython/threads.h"
#include "os/process.h"
#include "shared/cpython_structs.h"
#include "shared/versions.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- preparing an interpreter */

enum {
    PAGE = 4096,
    NO_LINE = -1,
    /* inspect.CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR (Include/cpython/code.h) */
    CO_GENERATORS = 0x20 | 0x80 | 0x200,
};

/* The shim's co_extra index, the same in each interpreter.  An interpreter hands out its indices in
 * order, so the shim requests indices until it gets this one.  Written once, by the first
 * code_extra_setup(). */
static _Atomic Py_ssize_t extra_index = -1;

/* The str "__name__": interned, and used by the interpreter itself, so it lives as long as the
 * interpreter.  code_extra_setup() gets it again in each interpreter. */
static PyObject *_Atomic name_key;
static _Atomic Py_ssize_t name_hash;

atomic_int code_sums_freed;

struct filter_cache_slot filter_cache[FILTER_CACHE_SLOTS];

/* Called by CPython when it frees a code object, which no thread runs any more.  GIL held; an
 * exception may be in flight, which freeing a str does not touch. */
static void code_free(void *data)
{
    struct code_record *record = data;
    if (!record)
        return;
    if (record->filename.owner)
        py.Py_DecRef(record->filename.owner);
    if (record->funcname.owner)
        py.Py_DecRef(record->funcname.owner);
    if (record->first_module.owner)
        py.Py_DecRef(record->first_module.owner);
    if (record->sums) {
        record->sums->freed = true;
        code_sums_freed++;
    }
    if (py.minor <= 11 && filter_cache_slot(record->code)->tag == filter_cache_tag(record->code))
        *filter_cache_slot(record->code) = (struct filter_cache_slot){0};
    free(record);
}

/* Protects set_up(), which threads of interpreters with a GIL each may call at once.  In a build
 * with a GIL, CPython waits for nothing under setup_lock.  In a free-threaded build CPython may
 * wait for its own locks.  There no_gil_setup_lock is taken first: threads that wait for it are
 * detached. */
static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nogil_lock no_gil_setup_lock;

/* The interpreters in which the shim could not get extra_index: the data there may be another
 * user's.  Frames of these interpreters reach this file, too, as hooks have one state for the whole
 * process.  If the list overflows, all interpreters count as excluded. */
enum { MAX_EXCLUDED = 64 };
static PyInterpreterState *_Atomic excluded_interpreters[MAX_EXCLUDED];
static atomic_uint excluded_count;

/* The interpreter's index; if it is not on the list, excluded_count, or MAX_EXCLUDED after an
 * overflow. */
static unsigned excluded_index(PyInterpreterState *interpreter)
{
    unsigned i = 0;
    while (i < excluded_count && i < MAX_EXCLUDED && excluded_interpreters[i] != interpreter)
        i++;
    return i;
}

static inline bool interpreter_is_excluded(void)
{
    return __builtin_expect(excluded_count, 0) &&
           excluded_index(cpython_interpreter()) < excluded_count;
}

/* Puts the calling interpreter on the list, or takes it off: an earlier interpreter may have had
 * the same address. */
static void set_excluded(bool is_so)
{
    PyInterpreterState *here = cpython_interpreter();
    unsigned place = excluded_index(here);
    if (!is_so && place < MAX_EXCLUDED && place < excluded_count) {
        excluded_interpreters[place] = NULL;
    } else if (is_so && place == excluded_count) {
        if (place < MAX_EXCLUDED)
            excluded_interpreters[place] = here;
        excluded_count = place + 1;
    }
}

static bool set_up(void)
{
    if (!py._PyEval_RequestCodeExtraIndex || !py._PyCode_GetExtra || !py._PyCode_SetExtra)
        return false;
    PyObject *key = py.PyUnicode_InternFromString("__name__");
    if (!key) {
        py.PyErr_Clear();
        return false;
    }
    name_key = key;
    name_hash = py.PyObject_Hash(key);
    Py_ssize_t index;
    do
        index = py._PyEval_RequestCodeExtraIndex(code_free);
    while (index >= 0 && index < extra_index);
    if (extra_index < 0)
        extra_index = index;
    return index >= 0 && index == extra_index;
}

bool code_extra_setup(void)
{
    nogil_lock_detached(&no_gil_setup_lock);
    pthread_mutex_lock(&setup_lock);
    bool usable = set_up();
    set_excluded(!usable);
    pthread_mutex_unlock(&setup_lock);
    nogil_unlock(&no_gil_setup_lock);
    return usable;
}

bool code_extra_in_use(void)
{
    return extra_index >= 0;
}

/* ---------------------------------------------------------------- code records */

/* In a free-threaded build: the records that threads are about to store, so that each code object
 * gets only one.  A thread that hangs meanwhile, as CPython ends, leaves its record there. */
static struct nogil_lock pending_lock;
static struct code_record *pending_records;

void code_reset_pending(void)
{
    pthread_mutex_init(&setup_lock, NULL);
    no_gil_setup_lock = pending_lock = (struct nogil_lock){0};
    pending_records = NULL;
}

/* Takes over the reference to the str. */
static struct utf8_str text_of(PyObject *str)
{
    struct utf8_str text = {.owner = str};
    if (str)
        text.utf8 = py.PyUnicode_AsUTF8AndSize(str, &text.length);
    if (!text.utf8)
        py.PyErr_Clear();
    return text;
}

static struct code_record *fill_record(PyObject *code)
{
    struct code_record *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    record->code = code;
    record->filename = text_of(py.PyObject_GetAttrString(code, "co_filename"));
    record->funcname = text_of(py.PyObject_GetAttrString(code, "co_name"));
    record->first_line = (int)cpython_int_attr(code, "co_firstlineno");
    record->generator = cpython_int_attr(code, "co_flags") & CO_GENERATORS;
    for (size_t i = 0; i < sizeof record->lines / sizeof *record->lines; i++)
        record->lines[i] = (uint64_t)NO_LINE;
    return record;
}

/* The record of every code object for which none could be kept. */
static struct code_record no_record;

/* Must not be called in an excluded interpreter. */
static inline struct code_record *extra_of(PyObject *object)
{
    void *record = NULL;
    Py_ssize_t index = atomic_load_explicit(&extra_index, memory_order_relaxed);
    if (py._PyCode_GetExtra(object, index, &record) == 0)
        return record;
    py.PyErr_Clear();
    return NULL;
}

/* 3.6 reads co_extra under a lock.  Py_Finalize() holds that lock while it drops the frames of
 * other threads, and so runs __del__() (Python/pystate.c: PyInterpreterState_Clear()). */
static inline bool has_none(void)
{
    return __builtin_expect(py.finalizing && *py.finalizing, 0) || interpreter_is_excluded();
}

struct code_record *code_record_if_any(PyObject *object)
{
    return has_none() ? NULL : extra_of(object);
}

/* The record that the code object has already, or is about to get from another thread; else record,
 * which the calling thread must then store.  CPython takes no lock to read records
 * (Objects/codeobject.c: PyUnstable_Code_GetExtra()). */
static struct code_record *pending_find_or_add(PyObject *code, struct code_record *record)
{
    nogil_lock(&pending_lock);
    struct code_record *first = extra_of(code);
    for (struct code_record *other = first ? NULL : pending_records; other; other = other->next)
        if (other->code == code)
            first = other;
    if (!first) {
        record->next = pending_records;
        pending_records = first = record;
    }
    nogil_unlock(&pending_lock);
    return first;
}

static void pending_remove(struct code_record *record)
{
    nogil_lock(&pending_lock);
    struct code_record **link = &pending_records;
    while (*link && *link != record)
        link = &(*link)->next;
    if (*link)
        *link = record->next;
    nogil_unlock(&pending_lock);
}

static bool store_record(PyObject *code, struct code_record *record)
{
    bool kept = py._PyCode_SetExtra(code, extra_index, record) == 0;
    if (!kept)
        py.PyErr_Clear();
    return kept;
}

static struct code_record *code_make(PyObject *code)
{
    struct code_record *record = fill_record(code);
    if (!record)
        return NULL;
    struct code_record *first = py.free_threaded ? pending_find_or_add(code, record) : record;
    if (first != record) {
        code_free(record);
        return first;
    }
    bool kept = store_record(code, record);
    if (py.free_threaded) /* never freed here: other threads may use it by now */
        pending_remove(record);
    else if (!kept)
        code_free(record);
    return kept ? record : NULL;
}

struct code_record *code_record_of(PyObject *code)
{
    if (has_none())
        return &no_record;
    struct code_record *record = extra_of(code);
    if (!record)
        record = code_make(code);
    return record ? record : &no_record;
}

bool code_is_generator(PyObject *code, const struct code_record *record)
{
    return record == &no_record ? cpython_int_attr(code, "co_flags") & CO_GENERATORS
                                : record->generator;
}

int code_line_at(PyObject *code, struct code_record *record, int offset)
{
    if (record == &no_record)
        return py.PyCode_Addr2Line(code, offset);
    if (offset < 0)
        return record->first_line;
    /* Offset and line are in one atomic word, so they always belong together.  In builds with a GIL
     * this is only for safety: interpreters with a GIL each share no code object. */
    _Atomic uint64_t *slot = &record->lines[(offset >> 1) % 8];
    uint64_t known = atomic_load_explicit(slot, memory_order_relaxed);
    if ((uint32_t)(known >> 32) == (uint32_t)offset)
        return (int)(uint32_t)known;
    int line = py.PyCode_Addr2Line(code, offset);
    atomic_store_explicit(slot, (uint64_t)offset << 32 | (uint32_t)line, memory_order_relaxed);
    return line;
}

/* Borrowed; in a free-threaded build it may be freed already, and is only compared.  Not
 * PyDict_GetItem(), which also saves and restores an exception in flight: there is none. */
static PyObject *name_in(PyObject *globals)
{
    PyObject *key = atomic_load_explicit(&name_key, memory_order_relaxed);
    if (!key) /* no code_extra_setup() has got this far */
        return NULL;
    if (!py._PyDict_GetItem_KnownHash)
        return py.PyDict_GetItem(globals, key);
    PyObject *name = py._PyDict_GetItem_KnownHash(
        globals, key, atomic_load_explicit(&name_hash, memory_order_relaxed));
    if (!name)
        py.PyErr_Clear();
    return name;
}

/* Records the first module only, as a module's code nearly always runs with its own globals.  No
 * code object is known to be shared by interpreters with a GIL each: in 3.12 frozen modules are the
 * main interpreter's (Python/import.c: unmarshal_frozen_code()). */
static void keep_module(struct code_record *record, PyObject *name, const char *utf8,
                        Py_ssize_t length)
{
    if (record == &no_record || atomic_flag_test_and_set(&record->module_claimed))
        return;
    py.Py_IncRef(name);
    record->first_module = (struct utf8_str){name, utf8, length};
    atomic_store_explicit(&record->module, &record->first_module, memory_order_release);
}

static bool has_version(PyObject *globals)
{
    static enum { UNTRIED, YES, NO } layout;
    if (py.minor > DICT_VERSION_LAST_MINOR) /* and so in free-threaded builds */
        return false;
    if (layout == UNTRIED)
        layout = sizeof(void *) == 8 && !py.PySys_GetObject("getobjects") &&
                         ((struct PyDictObject *)globals)->ma_used == py.PyDict_Size(globals)
                     ? YES
                     : NO;
    return layout == YES && !((struct PyDictObject *)globals)->ma_values;
}

/* A module name that the record does not have, or not yet.  In a free-threaded build owner is a
 * reference, as another thread may remove the name from the globals. */
static struct module_name other_module(struct code_record *record, PyObject *globals,
                                       PyObject *name)
{
    struct module_name module = {0};
    Py_ssize_t length;
    if (py.free_threaded) {
        py.PyDict_GetItemRef(globals, name_key, &module.owner);
        name = module.owner;
    }
    const char *utf8 = name ? py.PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    if (!utf8) { /* removed, not a str, or can't be encoded */
        py.PyErr_Clear();
        module_name_release(&module);
        return module;
    }
    keep_module(record, name, utf8, length);
    module.name = probe_string(utf8, length);
    return module;
}

struct module_name module_name_of(struct code_record *record, PyObject *globals)
{
    if (!globals)
        return (struct module_name){0};
    const struct utf8_str *first = atomic_load_explicit(&record->module, memory_order_acquire);
    bool versioned = has_version(globals);
    if (versioned && first &&
        ((struct PyDictObject *)globals)->ma_version_tag == record->globals_version)
        return (struct module_name){.name = probe_text(first)};
    PyObject *name = name_in(globals);
    if (!name)
        return (struct module_name){0};
    if (first && name == first->owner) {
        if (versioned)
            record->globals_version = ((struct PyDictObject *)globals)->ma_version_tag;
        return (struct module_name){.name = probe_text(first)};
    }
    return other_module(record, globals, name);
}

const char *probe_string(const char *utf8, Py_ssize_t length)
{
    if (utf8) {
        const volatile char *byte = utf8;
        for (Py_ssize_t i = 0; i < length; i += PAGE)
            (void)byte[i];
        (void)byte[length];
    }
    return utf8;
}

/* ---------------------------------------------------------------- C callables */

static bool is_function(PyObject *type)
{
    return type == py.cfunction_type || py.PyType_IsSubtype(type, py.cfunction_type);
}

bool callable_is_builtin(PyObject *callable)
{
    PyObject *type = cpython_type(callable);
    return type == py.method_descriptor_type || is_function(type);
}

PyObject *callable_unwrap_method(PyObject *callable)
{
    return cpython_type(callable) == py.method_type ? py.PyMethod_Function(callable) : callable;
}

static PyMethodDef *definition_of(PyObject *callable)
{
    return cpython_type(callable) == py.method_descriptor_type
               ? ((struct PyMethodDescrObject *)ob_base(callable))->d_method
               : ((struct PyCFunctionObject *)ob_base(callable))->m_ml;
}

/* Compares the structs with a function of the shim's and with tuple.count(). */
static bool is_known(void)
{
    static PyMethodDef ours = {"systemtap_known", NULL, METH_NOARGS, NULL};
    if (py.minor > CPYTHON_NEWEST_MINOR || py.PySys_GetObject("getobjects"))
        return false;
    PyObject *function = py.PyCFunction_NewEx(&ours, NULL, NULL);
    PyObject *method = py.PyObject_GetAttrString(py.tuple_type, "count");
    bool known = function && method && definition_of(function) == &ours &&
                 cpython_type(method) == py.method_descriptor_type &&
                 strcmp(definition_of(method)->ml_name, "count") == 0;
    cpython_clear_ref(&function);
    cpython_clear_ref(&method);
    py.PyErr_Clear();
    return known;
}

PyMethodDef *callable_methoddef(PyObject *callable)
{
    enum { UNTRIED, KNOWN, UNKNOWN };
    static atomic_int layout; /* each thread gets the same result */
    if (__builtin_expect(layout == UNTRIED, 0)) {
        layout = is_known() ? KNOWN : UNKNOWN;
        if (layout == UNKNOWN)
            debug_log("functions of C in this CPython are not as in the release");
    }
    return layout == KNOWN ? definition_of(callable) : NULL;
}

static const char *text_attribute(PyObject *object, const char *name, PyObject **owner)
{
    Py_ssize_t length = 0;
    *owner = py.PyObject_GetAttrString(object, name);
    const char *utf8 = *owner ? py.PyUnicode_AsUTF8AndSize(*owner, &length) : NULL;
    py.PyErr_Clear();
    return probe_string(utf8, length);
}

struct callable_names callable_names_get(PyObject *callable)
{
    struct callable_names names = {0};
    names.name = text_attribute(callable, "__name__", &names.str_refs[0]);
    PyObject *type = py.PyObject_Type(callable);
    if (is_function(type)) /* a descriptor has no __module__, and a method has None */
        names.module = text_attribute(callable, "__module__", &names.str_refs[1]);
    py.Py_DecRef(type);
    return names;
}

void callable_names_release(struct callable_names *names)
{
    for (int i = 0; i < 2; i++)
        if (names->str_refs[i])
            py.Py_DecRef(names->str_refs[i]);
}
