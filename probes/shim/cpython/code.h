/*
 * What markers pass of a code object, made once for each: names as UTF-8 and lines of instructions.
 * And the names of C callables.  All functions: any thread, GIL held, no exception in flight,
 * unless a declaration says otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_CODE_H
#define CPYTHON_CODE_H

#include <stdatomic.h>

#include "cpython/symbols.h"

/* ---------------------------------------------------------------- code records */

struct utf8_str {
    PyObject *owner;  /* the str, which keeps utf8 alive */
    const char *utf8; /* NULL: the str can't be encoded (lone surrogates) */
    Py_ssize_t length;
};

/* The start of struct function_sums (sums/sums.c), which outlives its code object. */
struct code_sums {
    atomic_bool freed; /* the code object was freed */
};

/* The number of code_sums with `freed` set that sums/sums.c has not unlinked yet. */
extern atomic_int code_sums_freed;

struct code_record {
    struct utf8_str filename, funcname;
    struct utf8_str *_Atomic module; /* &first_module; NULL: not recorded yet */
    struct utf8_str first_module;    /* of the globals with which the code ran first */
    atomic_flag module_claimed;      /* by the thread that records first_module */
    uint64_t globals_version;        /* up to 3.13: ma_version_tag of globals with that name */
    int first_line;
    bool generator;
    _Atomic unsigned filter;        /* markers/filter.c: revision of the patterns, and verdict */
    struct code_sums *_Atomic sums; /* NULL: not counted yet */
    _Atomic uint64_t lines[8];      /* of code_line_at() */
    PyObject *code;                 /* borrowed */
    struct code_record *next;       /* free-threaded: of records that are not stored yet */
};

/* The code objects whose functions match no pattern, by their addresses (markers/filter.h).  For
 * these the frame hook need not get a record from CPython.  A slot has the revision of the
 * patterns, and is cleared when its code object is freed.  Up to 3.11; GIL held.  Code objects that
 * are allocated in sequence are some 192 bytes apart, and so their slots share cache lines. */
enum { FILTER_CACHE_SLOTS = 1 << 16 };
extern struct filter_cache_slot {
    uint32_t tag, filter;
} filter_cache[FILTER_CACHE_SLOTS] __attribute__((visibility("hidden"))); /* read without the GOT */

static inline struct filter_cache_slot *filter_cache_slot(PyObject *code)
{
    return &filter_cache[((uintptr_t)code >> 7) % FILTER_CACHE_SLOTS];
}

/* The bits of the code object's address that do not select the slot: 4 to 6, and 23 to 51.  So code
 * objects that share a slot have different tags.  Addresses are multiples of 16 with at most 52
 * bits. */
static inline uint32_t filter_cache_tag(PyObject *code)
{
    return (uint32_t)((uintptr_t)code >> 23 << 3 | ((uintptr_t)code >> 4 & 7));
}

/* Prepares the calling interpreter for code_record_of(), once.  False: this interpreter can't keep
 * the shim's data with code objects. */
bool code_extra_setup(void);

/* Whether any interpreter was ever prepared.  With or without the GIL. */
bool code_extra_in_use(void);

/* Called in the child of a fork, which has no other thread, and when CPython starts again. */
void code_reset_pending(void);

/* NULL: object has no record yet, or is not a code object.  An exception may be in flight if object
 * is a code object. */
struct code_record *code_record_if_any(PyObject *object);

/* The record lives as long as the code object: use it only with the GIL held, and while a frame or
 * a reference keeps the code object.  Never NULL: if none can be kept, a record without names. */
struct code_record *code_record_of(PyObject *code);

/* Whether a call of the code makes a generator, a coroutine or an asynchronous generator. */
bool code_is_generator(PyObject *code, const struct code_record *record);

/* The line of the instruction at offset bytes; negative: before the first instruction. */
int code_line_at(PyObject *code, struct code_record *record, int offset);

/* Reads one byte of each page of the string, and returns it: a probe handler, which must not take a
 * page fault, then finds these pages in memory.  utf8 may be NULL. */
const char *probe_string(const char *utf8, Py_ssize_t length);

static inline const char *probe_text(const struct utf8_str *text)
{
    return probe_string(text->utf8, text->length);
}

/* The module of the globals with which the record's code ran first; NULL: not recorded yet. */
static inline const char *code_first_module(const struct code_record *record)
{
    const struct utf8_str *module = atomic_load_explicit(&record->module, memory_order_acquire);
    return module ? probe_text(module) : NULL;
}

/* The __name__ of a frame's globals; name is NULL if there is none.  Valid until
 * module_name_release(), while globals and record exist. */
struct module_name {
    const char *name;
    PyObject *owner; /* the str, unless globals or record are sure to keep it; else NULL */
};
struct module_name module_name_of(struct code_record *record, PyObject *globals);

static inline void module_name_release(struct module_name *module)
{
    if (__builtin_expect(module->owner != NULL, 0))
        cpython_clear_ref(&module->owner);
}

/* ---------------------------------------------------------------- C callables */

/* Valid until callable_names_release(). */
struct callable_names {
    const char *name, *module; /* NULL: there is none, or it can't be encoded */
    PyObject *str_refs[2];
};

/* Whether sys.setprofile() reports calls of it: a builtin function or method, or the descriptor of
 * a method. */
bool callable_is_builtin(PyObject *callable);

/* The function that a bound method calls, borrowed; any other callable itself.  The function may be
 * a builtin: types.MethodType(len, x). */
PyObject *callable_unwrap_method(PyObject *callable);

/* The definition of its C function and name, the same for all objects that call this function.
 * NULL: the structs of this CPython are not as in the release.  callable_is_builtin() must hold. */
PyMethodDef *callable_methoddef(PyObject *callable);

struct callable_names callable_names_get(PyObject *callable);
void callable_names_release(struct callable_names *names);

#endif
