/*
 * The types of CPython: its structs that the shim looks into, version by version, and those that
 * stay opaque.  All that the shim knows of CPython's memory, beyond what the exported functions
 * return, stands here.  A new version of CPython begins here (CONTRIBUTING.md, "Support CPython").
 *
 * A number behind a name is the first CPython that has it so: struct PyFrameObject_37 is that
 * of 3.7 and of all later ones up to the next struct frame_NN.  Each is compared with what the
 * public functions say of the running interpreter before anything else is read or written by it, in
 * the file that its comment names.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_CPYTHON_STRUCTS_H
#define SHARED_CPYTHON_STRUCTS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/cpython_objects.h"
#include "shared/offsets_page.h"

typedef struct _frame PyFrameObject;
typedef struct _ts PyThreadState;
typedef struct _is PyInterpreterState;
typedef int (*Py_tracefunc)(PyObject *, PyFrameObject *, int, PyObject *);

/* PyObject_HEAD with Py_TRACE_REFS: what is before it links all objects. */
struct PyObject_head_trace_refs {
    void *_ob_next, *_ob_prev;
    struct PyObject_head head;
};
/* Of the flags in the next one: PyModuleDef_Init() of 3.15 refuses a definition without it
 * (Objects/moduleobject.c). */
enum { FLAG_STATICALLY_ALLOCATED = 1 << 2 };
/* The same without a GIL, 3.13 and later. */
struct PyObject_head_nogil {
    uintptr_t ob_tid;
    uint16_t ob_flags;
    uint8_t ob_mutex, ob_gc_bits;
    uint32_t ob_ref_local;     /* all bits: the object is immortal */
    struct PyObject_head head; /* its references are those of other threads: ob_base() */
};

/* ---------------------------------------------------------------- frames */

/* PyFrameObject: Include/frameobject.h (3.6-3.8), Include/cpython/frameobject.h (3.9, 3.10).  What
 * all of them begin with is compared by frame.c, the rest by layout.c. */
struct PyFrameObject_36 {
    struct PyVarObject_head head;
    PyFrameObject *f_back;
    PyObject *f_code, *f_builtins, *f_globals, *f_locals;
    void *f_valuestack, *f_stacktop;
    PyObject *f_trace;
    PyObject *f_exc_type, *f_exc_value, *f_exc_traceback;
    PyObject *f_gen;
    int f_lasti;
};
struct PyFrameObject_37 {
    struct PyVarObject_head head;
    PyFrameObject *f_back;
    PyObject *f_code, *f_builtins, *f_globals, *f_locals;
    void *f_valuestack, *f_stacktop;
    PyObject *f_trace;
    char f_trace_lines, f_trace_opcodes;
    PyObject *f_gen;
    int f_lasti;
};
struct PyFrameObject_310 {
    struct PyVarObject_head head;
    PyFrameObject *f_back;
    PyObject *f_code, *f_builtins, *f_globals, *f_locals;
    void *f_valuestack;
    PyObject *f_trace;
    int f_stackdepth;
    char f_trace_lines, f_trace_opcodes;
    PyObject *f_gen;
    int f_lasti; /* in units of two bytes */
};

/* PyFrameObject from 3.11 on: Include/internal/pycore_frame.h.  Compared by
 * frame_interpreter_frame(). */
struct PyFrameObject_311 {
    struct PyObject_head head;
    PyFrameObject *f_back;
    void *f_frame; /* a struct inner_frame_NN */
    void *rest[3]; /* f_trace, f_lineno and so on */
};

/* _PyInterpreterFrame: Include/internal/pycore_frame.h (3.11-3.13), pycore_interpframe_structs.h
 * (3.14 on).  Compared by frame_interpreter_frame(), and by hook_frame.c or layout.c. */
struct PyInterpreterFrame_311 {
    PyObject *f_func, *f_globals, *f_builtins, *f_locals, *f_code;
    PyFrameObject *frame_obj; /* NULL until it is asked for */
    struct PyInterpreterFrame_311 *previous;
    uint16_t *prev_instr;
};
struct PyInterpreterFrame_312 {
    uintptr_t f_executable; /* from 3.14 on with a tag in CODE_TAG */
    void *previous;
    PyObject *f_funcobj, *f_globals, *f_builtins, *f_locals;
    PyFrameObject *frame_obj;
    uint16_t *instr_ptr; /* in 3.12 the previous one */
    int stacktop;        /* this and the following: up to 3.13 */
    uint16_t return_offset;
    char owner; /* FRAME_OWNED_BY_CSTACK and others */
};
#define CODE_TAG ((uintptr_t)7)
/* The same without a GIL, 3.14 and later: the instruction may be one of a copy that the thread has
 * of the code object's. */
struct PyInterpreterFrame_314t {
    uintptr_t f_executable;
    void *previous;
    PyObject *f_funcobj, *f_globals, *f_builtins, *f_locals;
    PyFrameObject *frame_obj;
    uint16_t *instr_ptr;
    void *stackpointer;
    int32_t tlbc_index; /* tlbc_index: its place in struct PyCodeArray */
};

/* Where a frame has what, which is a PyFrameObject up to 3.10, and a _PyInterpreterFrame from 3.11
 * on; 0: it has none.  The row of a version is the last that begins with it or before. */
struct frame_offsets {
    uint8_t first; /* CPython 3.first */
    uint8_t previous, executable, instr_ptr, owner, f_globals, f_locals, frame_obj;
};
#define PYFRAMEOBJECT_OFFSETS(first, type) \
    { \
        first, offsetof(struct type, f_back), offsetof(struct type, f_code), \
            offsetof(struct type, f_lasti), 0, offsetof(struct type, f_globals), \
            offsetof(struct type, f_locals), 0 \
    }
#define INTERPRETERFRAME_OFFSETS(first, type, executable, instr_ptr, owner) \
    { \
        first, offsetof(struct type, previous), offsetof(struct type, executable), \
            offsetof(struct type, instr_ptr), owner, offsetof(struct type, f_globals), \
            offsetof(struct type, f_locals), offsetof(struct type, frame_obj) \
    }
static const struct frame_offsets frame_offsets_rows[] = {
    PYFRAMEOBJECT_OFFSETS(6, PyFrameObject_36),
    PYFRAMEOBJECT_OFFSETS(7, PyFrameObject_37),
    PYFRAMEOBJECT_OFFSETS(10, PyFrameObject_310),
    INTERPRETERFRAME_OFFSETS(11, PyInterpreterFrame_311, f_code, prev_instr, 0),
    INTERPRETERFRAME_OFFSETS(12, PyInterpreterFrame_312, f_executable, instr_ptr,
                             offsetof(struct PyInterpreterFrame_312, owner)),
    INTERPRETERFRAME_OFFSETS(14, PyInterpreterFrame_312, f_executable, instr_ptr, 0),
};
COMPARED_WITH("frame_offsets() (Include/internal/pycore_interpframe_structs.h)", 15);

/* The row of such a table for CPython 3.minor.  Each row begins with its version. */
static inline const void *row_of(const void *rows, size_t size, size_t count, int minor)
{
    const char *row = rows;
    while (--count > 0 && *(const uint8_t *)(row + size) <= minor)
        row += size;
    return row;
}
#define ROW_OF(rows, minor) row_of(rows, sizeof *(rows), sizeof(rows) / sizeof *(rows), minor)

static inline const struct frame_offsets *frame_offsets(int minor)
{
    return ROW_OF(frame_offsets_rows, minor);
}

/* Where a frame has its variables (f_localsplus, localsplus).  Up to 3.10 they are the last word of
 * what the __basicsize__ of PyFrameObject counts; from 3.11 on that counts up to them, with the
 * frame as a part of PyFrameObject (_f_frame_data).  Compared with it by layout_values.c. */
static inline size_t frame_variables_offset(int minor, size_t basicsize)
{
    return minor <= 10 ? basicsize - sizeof(void *) : minor <= 13 ? 72 : 80;
}
static inline size_t frame_basicsize(int minor, size_t variables)
{
    return minor <= 10   ? variables + sizeof(void *)
           : minor <= 12 ? variables + 48
           : minor == 13 ? variables + 64
                         : variables + 72;
}
COMPARED_WITH("frame_variables_offset(), frame_basicsize() (internal/pycore_frame.h)", 15);

/* PyCFunctionObject (Include/methodobject.h, Include/cpython/methodobject.h) and
 * PyMethodDescrObject (Include/descrobject.h), as far as the PyMethodDef of what they call.
 * Compared by callable.c. */
struct PyCFunctionObject {
    struct PyObject_head head;
    void *m_ml;
};
struct PyMethodDescrObject {
    struct PyObject_head head;
    PyObject *d_type, *d_name, *d_qualname;
    void *d_method;
};

/* PyTracebackObject: Include/traceback.h (3.6), Include/cpython/traceback.h (3.8 on).  Compared by
 * raise.c, by its size. */
struct PyTracebackObject {
    struct PyObject_head head;
    PyObject *tb_next; /* of the frame that the exception has left before */
    PyFrameObject *tb_frame;
    int tb_lasti, tb_lineno;
};

COMPARED_WITH("PyCFunctionObject, PyMethodDescrObject, PyTracebackObject (Include/cpython)", 15);

/* ---------------------------------------------------------------- code objects */

/* PyCodeObject: Include/code.h (3.6-3.8), Include/cpython/code.h (3.9 on).  Compared by layout.c.
 */
struct PyCodeObject_36 {
    struct PyObject_head head;
    int co_argcount, co_kwonlyargcount, co_nlocals, co_stacksize, co_flags, co_firstlineno;
    PyObject *co_code, *co_consts, *co_names, *co_varnames, *co_freevars, *co_cellvars;
    unsigned char *co_cell2arg;
    PyObject *co_filename, *co_name, *co_lnotab;
};
struct PyCodeObject_38 {
    struct PyObject_head head;
    int co_argcount, co_posonlyargcount, co_kwonlyargcount, co_nlocals, co_stacksize, co_flags,
        co_firstlineno;
    PyObject *co_code, *co_consts, *co_names, *co_varnames, *co_freevars, *co_cellvars;
    Py_ssize_t *co_cell2arg;
    PyObject *co_filename, *co_name, *co_lnotab; /* of 3.10 in another form */
};
struct PyCodeObject_311 {
    struct PyVarObject_head head;
    PyObject *co_consts, *co_names, *co_exceptiontable;
    int co_flags;
    short co_warmup, co_linearray_entry_size;
    int co_argcount, co_posonlyargcount, co_kwonlyargcount, co_stacksize, co_firstlineno;
    int co_nlocalsplus, co_nlocals, co_nplaincellvars, co_ncellvars, co_nfreevars;
    PyObject *co_localsplusnames, *co_localspluskinds;
    PyObject *co_filename, *co_name, *co_qualname, *co_linetable;
};
struct PyCodeObject_312 {
    struct PyVarObject_head head;
    PyObject *co_consts, *co_names, *co_exceptiontable;
    int co_flags;
    int co_argcount, co_posonlyargcount, co_kwonlyargcount, co_stacksize, co_firstlineno;
    int co_nlocalsplus, co_framesize, co_nlocals, co_ncellvars, co_nfreevars;
    uint32_t co_version;
    PyObject *co_localsplusnames, *co_localspluskinds;
    PyObject *co_filename, *co_name, *co_qualname, *co_linetable;
};

/* Where a code object has what; 0: it has none. */
struct code_offsets {
    uint8_t first;
    uint8_t lines; /* enum line_table_format: that of co_linetable, or up to 3.9 of co_lnotab */
    uint8_t co_filename, co_name, co_firstlineno, co_linetable;
    uint8_t co_flags, co_argcount, co_kwonlyargcount;
    uint8_t co_varnames, co_cellvars, co_freevars; /* names: of 3.11 on, co_localsplusnames alone */
    uint8_t co_localspluskinds;
};
#define CODE_OFFSETS(first, lines, type, linetable, varnames, cellvars, freevars, kinds) \
    { \
        first, lines, offsetof(struct type, co_filename), offsetof(struct type, co_name), \
            offsetof(struct type, co_firstlineno), offsetof(struct type, linetable), \
            offsetof(struct type, co_flags), offsetof(struct type, co_argcount), \
            offsetof(struct type, co_kwonlyargcount), varnames, cellvars, freevars, kinds \
    }
#define CODE_OFFSETS_36(first, lines, type) \
    CODE_OFFSETS(first, lines, type, co_lnotab, offsetof(struct type, co_varnames), \
                 offsetof(struct type, co_cellvars), offsetof(struct type, co_freevars), 0)
#define CODE_OFFSETS_311(first, lines, type) \
    CODE_OFFSETS(first, lines, type, co_linetable, offsetof(struct type, co_localsplusnames), 0, \
                 0, offsetof(struct type, co_localspluskinds))
static const struct code_offsets code_offsets_rows[] = {
    CODE_OFFSETS_36(6, LINES_LNOTAB, PyCodeObject_36),
    CODE_OFFSETS_36(8, LINES_LNOTAB, PyCodeObject_38),
    CODE_OFFSETS_36(10, LINES_LINETABLE, PyCodeObject_38),
    CODE_OFFSETS_311(11, LINES_LOCATIONS, PyCodeObject_311),
    CODE_OFFSETS_311(12, LINES_LOCATIONS, PyCodeObject_312),
};
COMPARED_WITH("code_offsets() (Include/cpython/code.h)", 15);

static inline const struct code_offsets *code_offsets(int minor)
{
    return ROW_OF(code_offsets_rows, minor);
}

/* From 3.11 on the instructions (co_code_adaptive) are behind what the code type's __basicsize__
 * counts.  Without a GIL, 3.14 and later, the word before them (co_tlbc) is the address of this:
 * _PyCodeArray, Include/cpython/code.h.  The first copy is the code object's own instructions.
 * Compared by layout.c. */
struct PyCodeArray {
    Py_ssize_t size;
    char *entries[]; /* NULL for a thread that has not run the code */
};
COMPARED_WITH("_PyCodeArray, co_tlbc (Include/cpython/code.h)", 15);

/* ---------------------------------------------------------------- dicts */

/* PyDictObject: Include/cpython/dictobject.h (3.6: Include/dictobject.h).  The version is that of
 * no other dict of the interpreter, and another one after each change (PEP 509), up to 3.13; in
 * 3.13 not where an object has the values, as its __dict__.  Compared by code.c, as far as the
 * version, and by layout.c. */
struct PyDictObject {
    struct PyObject_head head;
    Py_ssize_t ma_used;
    uint64_t ma_version_tag;
    void *ma_keys, *ma_values; /* values: NULL where they are beside the keys */
};
enum { DICT_VERSION_LAST_MINOR = 13 };

/* PyDictKeysObject: Objects/dict-common.h (3.6-3.10), Include/internal/pycore_dict.h (3.11 on).
 * Behind the indices, of 1, 2, 4 or 8 bytes each, come the entries.  Compared by layout.c. */
struct PyDictKeysObject_36 {
    Py_ssize_t dk_refcnt, dk_size; /* so many indices */
    void *dk_lookup;
    Py_ssize_t dk_usable, dk_nentries;
    char dk_indices[];
};
struct PyDictKeysObject_311 {
    Py_ssize_t dk_refcnt;
    uint8_t dk_log2_size, dk_log2_index_bytes; /* of all indices together */
    uint8_t dk_kind;                           /* 0: entries as up to 3.10; others: of str alone */
    uint32_t dk_version;
    Py_ssize_t dk_usable, dk_nentries;
    char dk_indices[];
};
struct PyDictKeyEntry {
    Py_ssize_t me_hash;
    PyObject *me_key, *me_value;
};
struct PyDictUnicodeEntry {
    PyObject *me_key, *me_value;
};

/* PyDictValues: what a dict or an object has apart from the keys.  Up to 3.12 values alone, with
 * bytes before them in 3.11 and 3.12; from 3.13 on behind this: Include/internal/pycore_dict.h. */
struct PyDictValues_313 {
    uint8_t capacity, size, embedded, valid;
    PyObject *values[];
};

/* Where the keys and the values of a dict have what. */
struct dict_offsets {
    uint8_t first;
    uint8_t dk_format, dk_indices_size, dk_nentries, dk_indices; /* enum dict_keys_format */
    uint8_t dv_format, dv_values;                                /* enum dict_values_format */
    uint8_t dv_preheader; /* an object's values have a word of their own before it */
};
#define DICT_OFFSETS(first, format, keys, indices_size, values_format, values, preheader) \
    { \
        first, format, offsetof(struct keys, indices_size), offsetof(struct keys, dk_nentries), \
            offsetof(struct keys, dk_indices), values_format, values, preheader \
    }
static const struct dict_offsets dict_offsets_rows[] = {
    DICT_OFFSETS(6, KEYS_COUNT, PyDictKeysObject_36, dk_size, VALUES_IN_ORDER, 0, 0),
    DICT_OFFSETS(11, KEYS_LOG2, PyDictKeysObject_311, dk_log2_size, VALUES_BEHIND_ORDER, 0, 1),
    DICT_OFFSETS(12, KEYS_LOG2, PyDictKeysObject_311, dk_log2_size, VALUES_BEHIND_ORDER, 0, 0),
    DICT_OFFSETS(13, KEYS_LOG2, PyDictKeysObject_311, dk_log2_size, VALUES_BEFORE_ORDER,
                 offsetof(struct PyDictValues_313, values), 0),
};
COMPARED_WITH("dict_offsets() (Include/internal/pycore_dict.h)", 15);

static inline const struct dict_offsets *dict_offsets(int minor)
{
    return ROW_OF(dict_offsets_rows, minor);
}

/* ---------------------------------------------------------------- thread states, up to 3.12 */

/* What PyThreadState begins with up to 3.12: Include/pystate.h (3.6, 3.7),
 * Include/cpython/pystate.h (3.8 on). */
struct PyThreadState_head {
    PyThreadState *prev, *next;
    PyInterpreterState *interp;
};

/* The trace and the profile function of a thread, and the type of its exception in flight, which
 * stands behind them.  Up to 3.11; compared by trace.c. */
struct PyThreadState_tracing {
    Py_tracefunc c_profilefunc, c_tracefunc;
    PyObject *c_profileobj, *c_traceobj;
    PyObject *curexc_type;
};

struct PyThreadState_36 {
    struct PyThreadState_head head;
    PyFrameObject *frame;
    int recursion_depth;
    char overflowed, recursion_critical;
    int tracing, use_tracing;
    struct PyThreadState_tracing functions;
};
struct PyThreadState_37 {
    struct PyThreadState_head head;
    PyFrameObject *frame;
    int recursion_depth;
    char overflowed, recursion_critical;
    int stack_check_counter, tracing, use_tracing;
    struct PyThreadState_tracing functions;
};

/* CFrame (_PyCFrame): what 3.10 to 3.12 keep of each evaluation on the C stack. */
struct PyCFrame_310 {
    int use_tracing;
};
struct PyCFrame_311 {
    uint8_t use_tracing;
    struct PyInterpreterFrame_311 *current_frame;
};
struct PyCFrame_312 {
    struct PyInterpreterFrame_312 *current_frame;
};

struct PyThreadState_310 {
    struct PyThreadState_head head;
    PyFrameObject *frame;
    int recursion_depth, recursion_headroom, stack_check_counter, tracing;
    struct PyCFrame_310 *cframe;
    struct PyThreadState_tracing functions;
};
struct PyThreadState_311 {
    struct PyThreadState_head head;
    int initialized, is_static, recursion[3], tracing, tracing_what;
    struct PyCFrame_311 *cframe;
    struct PyThreadState_tracing functions;
};
struct PyThreadState_312 {
    struct PyThreadState_head head;
    int status, recursion[4], tracing, what_event;
    struct PyCFrame_312 *cframe;
};

/* From 3.13 on PyThreadState has its current frame itself, which shown.c looks for: behind what it
 * begins with, among its first words; so does layout.c. */
enum { THREAD_FIRST_WORD = sizeof(struct PyThreadState_head) / sizeof(void *), THREAD_WORDS = 24 };
COMPARED_WITH("PyThreadState's first words (Include/cpython/pystate.h)", 15);

/* Up to 3.11. */
static inline struct PyThreadState_tracing *thread_functions(PyThreadState *thread, int minor)
{
    if (minor == 11)
        return &((struct PyThreadState_311 *)thread)->functions;
    if (minor == 10)
        return &((struct PyThreadState_310 *)thread)->functions;
    return minor == 6 ? &((struct PyThreadState_36 *)thread)->functions
                      : &((struct PyThreadState_37 *)thread)->functions;
}

/* Not 0 while a trace or profile function of the thread runs.  Up to 3.11. */
static inline int thread_tracing(const PyThreadState *thread, int minor)
{
    if (minor == 11)
        return ((const struct PyThreadState_311 *)thread)->tracing;
    if (minor == 10)
        return ((const struct PyThreadState_310 *)thread)->tracing;
    return minor == 6 ? ((const struct PyThreadState_36 *)thread)->tracing
                      : ((const struct PyThreadState_37 *)thread)->tracing;
}

/* ---------------------------------------------------------------- interpreters and the runtime */

/* Where PyInterpreterState has its eval_frame: Include/pystate.h (3.6, 3.7), Include/internal/
 * pycore_pystate.h (3.8), pycore_interp.h (3.9-3.11).  0: nowhere.  Compared by evaluator.c. */
static inline size_t interpreter_eval_frame_offset(int minor)
{
    if (sizeof(void *) != 8)
        return 0;
    static const uint16_t offsets[] = {112, 464, 568, 1400, 1368, 1424}; /* 3.6 to 3.11 */
    return minor >= 6 && minor <= 11 ? offsets[minor - 6] : 0;
}

/* _PyRuntimeState.interpreters, 3.7 to 3.11: Include/internal/pystate.h (3.7), pycore_pystate.h
 * (3.8), pycore_runtime.h (3.9-3.11).  Compared by thread_states.c. */
struct pyinterpreters {
    void *mutex; /* HEAD_LOCK */
    PyInterpreterState *head, *main;
    int64_t next_id;
};

/* The begin of PyInterpreterState, whose ceval ends with its pending calls: Include/internal/
 * pycore_ceval_state.h (3.13), pycore_interp_structs.h.  Compared in ask.c. */
struct PyInterpreterState_313 {
    uintptr_t version;
    int recursion_limit;
    void *gil;
    int own_gil;
    PyThreadState *handling_thread; /* makes pending calls */
    uint8_t mutex;
    int32_t npending, max, maxloop;
};
enum { INTERPRETER_313_MAX_CALLS = 300, INTERPRETER_313_MAX_CALLS_AT_ONCE = 100 };
COMPARED_WITH("PyInterpreterState_313 (Include/internal/pycore_interp_structs.h)", 15);

/* _PyRuntimeState: 3.7, 3.8 to 3.10, and 3.11. */
struct PyRuntimeState_37 {
    int initialized, core_initialized;
    void *finalizing;
    struct pyinterpreters interpreters;
};
struct PyRuntimeState_38 {
    int preinitializing, preinitialized, core_initialized, initialized;
    void *finalizing;
    struct pyinterpreters interpreters;
};
struct PyRuntimeState_311 {
    int is_static, preinitializing, preinitialized, core_initialized, initialized;
    void *finalizing;
    struct pyinterpreters interpreters;
};

/* Where _PyRuntime has them; 0: nowhere. */
static inline size_t runtime_interpreters_offset(int minor)
{
    if (minor < 7 || minor > 11)
        return 0;
    return minor == 7    ? offsetof(struct PyRuntimeState_37, interpreters)
           : minor == 11 ? offsetof(struct PyRuntimeState_311, interpreters)
                         : offsetof(struct PyRuntimeState_38, interpreters);
}

/* Where PyInterpreterState has its dict of modules, up to 3.11: Include/pystate.h (3.6, 3.7),
 * Include/internal/pycore_pystate.h (3.8), pycore_interp.h (3.9-3.11).  From 3.12 on it is among
 * the first INTERPRETER_WORDS, and the pointer to the GIL is (_ceval_state.gil).  Both are compared
 * by layout_interpreter.c. */
static inline size_t interpreter_modules_offset(int minor)
{
    static const uint16_t offsets[] = {16, 40, 56, 856, 856, 888}; /* 3.6 to 3.11 */
    return minor >= 6 && minor <= 11 ? offsets[minor - 6] : 0;
}
enum { INTERPRETER_WORDS = 2048 };

/* struct _gil_runtime_state, from 3.7 on: Include/internal/gil.h (3.7), pycore_gil.h.  Up to 3.11
 * it's in _PyRuntime, and later among the first INTERPRETER_WORDS of a PyInterpreterState.  3.6 has
 * variables in its place (Python/ceval_gil.h).  Compared by layout_interpreter.c. */
struct gil_runtime_state_37 {
    unsigned long interval; /* in microseconds */
    PyThreadState *last_holder;
    int locked;
    unsigned long switch_number;
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    pthread_cond_t switch_cond;
    pthread_mutex_t switch_mutex;
};
/* The same in a free-threaded build. */
struct gil_runtime_state_313t {
    int enabled; /* not 0 with PYTHON_GIL=1, and while a module is there that needs the GIL */
    struct gil_runtime_state_37 gil;
};
COMPARED_WITH("_gil_runtime_state (Include/internal/pycore_gil.h)", 15);

#endif
