/*
 * What markers say of a code object: its names as UTF-8 and the lines of its instructions, worked
 * out once per code object.  Used by the hooks that feed the function markers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_CODE_H
#define CPYTHON_CODE_H

#include <stdatomic.h>

#include "cpython/symbols.h"

/* ---------------------------------------------------------------- code */

struct utf8_str {
    PyObject *owner;  /* the str, which keeps utf8 alive */
    const char *utf8; /* NULL: it can't be encoded (lone surrogates) */
    Py_ssize_t length;
};

/* What counts the calls of a code object begins with this (tally.c).  It outlives the code object.
 */
struct code_sums {
    atomic_bool freed; /* the code object is */
};

/* How many are freed, and not yet unlinked by tally.c. */
extern atomic_int code_sums_freed;

struct code_record {
    struct utf8_str filename, funcname;
    struct utf8_str *_Atomic module; /* of the globals with which it ran first; NULL: not yet */
    struct utf8_str first_module;
    atomic_flag module_claimed;
    uint64_t globals_version; /* up to 3.13: of globals whose name that is */
    int first_line;
    bool generator;
    _Atomic unsigned filter;        /* filter.c: whether it passes, and by which patterns */
    struct code_sums *_Atomic sums; /* NULL: it was not counted yet */
    _Atomic uint64_t lines[8];
    PyObject *code;           /* borrowed */
    struct code_record *next; /* of those that threads are about to keep */
};

/* What filter.h says of code objects, by their addresses, so that the frame hook need not ask
 * CPython for their records; a code object that is freed leaves its place.  Up to 3.11; GIL held.
 * Those allocated one after the other are some 192 bytes apart, and so share cache lines here. */
enum { FILTER_CACHE_SLOTS = 1 << 16 };
extern struct filter_cache_slot {
    uint32_t tag, filter;
} filter_cache[FILTER_CACHE_SLOTS] __attribute__((visibility("hidden"))); /* read without the GOT */

static inline struct filter_cache_slot *filter_cache_slot(PyObject *code)
{
    return &filter_cache[((uintptr_t)code >> 7) % FILTER_CACHE_SLOTS];
}

/* Tells it from all others in its place: the rest of an address of 52 bits, which is a multiple of
 * 16. */
static inline uint32_t filter_cache_tag(PyObject *code)
{
    return (uint32_t)((uintptr_t)code >> 23 << 3 | ((uintptr_t)code >> 4 & 7));
}

/* Makes ready the calling interpreter, once before code_record_of() there.  GIL held, no exception
 * in flight.  False: this interpreter can't keep data with code objects. */
bool code_extra_setup(void);

/* Whether an interpreter was made ready, ever.  Any thread, with or without the GIL. */
bool code_extra_in_use(void);

/* In the child of a fork, in which no other thread is; and when CPython begins again. */
void code_reset_pending(void);

/* The record that an object has: NULL if it has none yet, or is not a code object.  GIL held; no
 * exception in flight, unless it is a code object. */
struct code_record *code_record_if_any(PyObject *object);

/* The record of a code object, which lives as long as the code object: use it only while the GIL is
 * held and a frame or a reference keeps the code object.  GIL held, no exception in flight.  Never
 * NULL; its names are NULL if memory ran out. */
struct code_record *code_record_of(PyObject *code);

/* Whether a call of the code makes a generator, a coroutine or an asynchronous generator.  GIL
 * held, no exception in flight. */
bool code_is_generator(PyObject *code, const struct code_record *record);

/* The line of the instruction at offset bytes into the code.  GIL held.  A negative offset stands
 * before the first instruction. */
int code_line_at(PyObject *code, struct code_record *record, int offset);

/* Reads one byte of each page of a string, so that a probe handler, which may not take a page
 * fault, finds them in memory. */
const char *probe_string(const char *utf8, Py_ssize_t length);

/* The same for the text of a record. */
static inline const char *probe_text(const struct utf8_str *text)
{
    return probe_string(text->utf8, text->length);
}

/* That of the globals with which the record's code ran first; NULL: it is not known yet. */
static inline const char *code_first_module(const struct code_record *record)
{
    const struct utf8_str *module = atomic_load_explicit(&record->module, memory_order_acquire);
    return module ? probe_text(module) : NULL;
}

/* The __name__ of a frame's globals; name: NULL if there is none.  It stays until
 * module_name_release() as long as globals and record do.  GIL held, no exception in flight. */
struct module_name {
    const char *name;
    PyObject *owner; /* the str, if neither globals nor record are sure to keep it; or NULL */
};
struct module_name module_name_of(struct code_record *record, PyObject *globals);

static inline void module_name_release(struct module_name *module)
{
    if (__builtin_expect(module->owner != NULL, 0))
        cpython_clear_ref(&module->owner);
}

/* ---------------------------------------------------------------- callable */

/*
 * What the cfunction markers say of a callable of C.  Used by the hooks that feed them.
 */

struct callable_names {
    const char *name, *module; /* NULL: there is none, or it can't be encoded */
    PyObject *str_refs[2];
};

/* Whether it is one of those whose calls sys.setprofile() reports: a builtin function or method, or
 * the descriptor of one.  GIL held, no exception in flight. */
bool callable_is_builtin(PyObject *callable);

/* What a bound method that was made by hand (types.MethodType(len, x)) calls, borrowed; other
 * callables themselves.  GIL held. */
PyObject *callable_unwrap_method(PyObject *callable);

/* Where its C function and name are defined, the same for all objects that call it; NULL in a
 * CPython whose structs are not as in the release.  Of one for which callable_is_builtin() holds.
 * GIL held, no exception in flight. */
PyMethodDef *callable_methoddef(PyObject *callable);

/* Its names, until callable_names_release().  GIL held, no exception in flight. */
struct callable_names callable_names_get(PyObject *callable);
void callable_names_release(struct callable_names *names);

#endif
