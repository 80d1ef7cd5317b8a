/*
 * CPython's structs that the shim reads and the tapset does not, version by version.  The shim
 * knows nothing of CPython's memory but these and those of cpython_objects.h.  What a new CPython
 * needs: CONTRIBUTING.md, "Support CPython 3.16".
 *
 * The number in a name is the first CPython that has the struct so: struct PyFrameObject_37 is that
 * of 3.7 and later, up to the next PyFrameObject.  Before the shim reads or writes by a struct, the
 * function that the comment names compares it with what CPython's public functions return.
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

/* PyObject with Py_TRACE_REFS, up to 3.12: two pointers before the head link all objects.
 * https://github.com/python/cpython/blob/v3.6.0/Include/object.h */
struct PyObject_head_trace_refs {
    void *_ob_next, *_ob_prev;
    struct PyObject_head head;
};
/* A flag of ob_flags in the struct below.  PyModuleDef_Init() of 3.15 refuses a definition without
 * it (Objects/moduleobject.c). */
enum { FLAG_STATICALLY_ALLOCATED = 1 << 2 };
/* PyObject of a free-threaded build.
 * https://github.com/python/cpython/blob/v3.14.0/Include/object.h */
struct PyObject_head_nogil {
    uintptr_t ob_tid;
    uint16_t ob_flags;
    uint8_t ob_mutex, ob_gc_bits;
    uint32_t ob_ref_local;     /* all bits set: the object is immortal */
    struct PyObject_head head; /* its ob_refcnt is ob_ref_shared: see ob_base() */
};

/* ---------------------------------------------------------------- frames */

/* PyFrameObject up to 3.10.  The members up to f_locals have the same offsets in all versions:
 * layout_is_known() in cpython/frame.c compares some of them.  check_frame() in cpython/offsets.c
 * compares the rest.  https://github.com/python/cpython/blob/v3.6.0/Include/frameobject.h */
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
/* https://github.com/python/cpython/blob/v3.7.0/Include/frameobject.h */
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
/* https://github.com/python/cpython/blob/v3.10.0/Include/cpython/frameobject.h */
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

/* Compared by frame_interpreter_frame().
 * https://github.com/python/cpython/blob/v3.11.0/Include/internal/pycore_frame.h */
struct PyFrameObject_311 {
    struct PyObject_head head;
    PyFrameObject *f_back;
    void *f_frame; /* a struct PyInterpreterFrame */
    void *rest[3]; /* f_trace, f_lineno and so on */
};

/* _PyInterpreterFrame.  Compared in all versions by frame_interpreter_frame() and by check_frame()
 * in cpython/offsets.c, in 3.11 also by check_layout_311() in hooks/frame_eval.c.
 * https://github.com/python/cpython/blob/v3.11.0/Include/internal/pycore_frame.h */
struct PyInterpreterFrame_311 {
    PyObject *f_func, *f_globals, *f_builtins, *f_locals, *f_code;
    PyFrameObject *frame_obj; /* NULL until CPython makes the frame object on demand */
    struct PyInterpreterFrame_311 *previous;
    uint16_t *prev_instr;
};
/* https://github.com/python/cpython/blob/v3.12.0/Include/internal/pycore_frame.h */
struct PyInterpreterFrame_312 {
    uintptr_t f_executable; /* 3.12: f_code; 3.14+: with a tag in the bits of CODE_TAG */
    void *previous;
    PyObject *f_funcobj, *f_globals, *f_builtins, *f_locals;
    PyFrameObject *frame_obj;
    uint16_t *instr_ptr; /* in 3.12 prev_instr, the previous instruction */
    int stacktop;        /* up to 3.13, as are the members below */
    uint16_t return_offset;
    char owner; /* FRAME_OWNED_BY_CSTACK and others */
};
#define CODE_TAG ((uintptr_t)7)
/* A free-threaded build: instr_ptr may be in the thread's own copy of the instructions.
 * https://github.com/python/cpython/blob/v3.14.0/Include/internal/pycore_interpframe_structs.h */
struct PyInterpreterFrame_314t {
    uintptr_t f_executable;
    void *previous;
    PyObject *f_funcobj, *f_globals, *f_builtins, *f_locals;
    PyFrameObject *frame_obj;
    uint16_t *instr_ptr;
    void *stackpointer;
    int32_t tlbc_index; /* the copy's index in entries of struct PyCodeArray */
};

/* Offsets in a PyFrameObject up to 3.10, and in a _PyInterpreterFrame from 3.11 on; 0: no such
 * member.  The row of a version is the last row whose `first` is not above the version. */
struct frame_offsets {
    uint8_t first; /* CPython 3.first */
    uint8_t previous, executable, instr_ptr, owner, f_globals, f_locals, frame_obj;
    uint8_t tlbc_index; /* in free-threaded builds */
};
#define PYFRAMEOBJECT_OFFSETS(first, type) \
    { \
        first, offsetof(struct type, f_back), offsetof(struct type, f_code), \
            offsetof(struct type, f_lasti), 0, offsetof(struct type, f_globals), \
            offsetof(struct type, f_locals), 0, 0 \
    }
#define INTERPRETERFRAME_OFFSETS(first, type, executable, instr_ptr, owner, tlbc_index) \
    { \
        first, offsetof(struct type, previous), offsetof(struct type, executable), \
            offsetof(struct type, instr_ptr), owner, offsetof(struct type, f_globals), \
            offsetof(struct type, f_locals), offsetof(struct type, frame_obj), tlbc_index \
    }
static const struct frame_offsets frame_offsets_rows[] = {
    PYFRAMEOBJECT_OFFSETS(6, PyFrameObject_36),
    PYFRAMEOBJECT_OFFSETS(7, PyFrameObject_37),
    PYFRAMEOBJECT_OFFSETS(10, PyFrameObject_310),
    INTERPRETERFRAME_OFFSETS(11, PyInterpreterFrame_311, f_code, prev_instr, 0, 0),
    INTERPRETERFRAME_OFFSETS(12, PyInterpreterFrame_312, f_executable, instr_ptr,
                             offsetof(struct PyInterpreterFrame_312, owner), 0),
    INTERPRETERFRAME_OFFSETS(14, PyInterpreterFrame_312, f_executable, instr_ptr, 0,
                             offsetof(struct PyInterpreterFrame_314t, tlbc_index)),
};
COMPARED_WITH("frame_offsets() (Include/internal/pycore_interpframe_structs.h)", 15);

/* The row for CPython 3.minor of a table whose rows begin with `first`, as frame_offsets_rows. */
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

/* The offset of a frame's variables (f_localsplus, localsplus).  Up to 3.10 PyFrameObject ends with
 * the first of them, so they begin one word before its __basicsize__.  From 3.11 on PyFrameObject
 * ends with the frame (_f_frame_data), of which its __basicsize__ counts all but the variables.
 * Compared with __basicsize__ by is_right_for_variables() in cpython/offsets.c. */
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

/* These two structs are declared up to the pointer to their PyMethodDef.  Compared by is_known() in
 * cpython/code.c.  https://github.com/python/cpython/blob/v3.6.0/Include/methodobject.h */
struct PyCFunctionObject {
    struct PyObject_head head;
    void *m_ml;
};
/* https://github.com/python/cpython/blob/v3.6.0/Include/descrobject.h */
struct PyMethodDescrObject {
    struct PyObject_head head;
    PyObject *d_type, *d_name, *d_qualname;
    void *d_method;
};

/* Its size is compared by is_known() in markers/fire.c.
 * https://github.com/python/cpython/blob/v3.6.0/Include/traceback.h */
struct PyTracebackObject {
    struct PyObject_head head;
    PyObject *tb_next; /* the entry of the frame that the exception left just before tb_frame */
    PyFrameObject *tb_frame;
    int tb_lasti, tb_lineno;
};

COMPARED_WITH("PyCFunctionObject, PyMethodDescrObject, PyTracebackObject (Include/cpython)", 15);

/* ---------------------------------------------------------------- code objects */

/* Compared by code_is_right() and is_right_for_variables() in cpython/offsets.c.
 * https://github.com/python/cpython/blob/v3.6.0/Include/code.h */
struct PyCodeObject_36 {
    struct PyObject_head head;
    int co_argcount, co_kwonlyargcount, co_nlocals, co_stacksize, co_flags, co_firstlineno;
    PyObject *co_code, *co_consts, *co_names, *co_varnames, *co_freevars, *co_cellvars;
    unsigned char *co_cell2arg;
    PyObject *co_filename, *co_name, *co_lnotab;
};
/* https://github.com/python/cpython/blob/v3.8.0/Include/code.h */
struct PyCodeObject_38 {
    struct PyObject_head head;
    int co_argcount, co_posonlyargcount, co_kwonlyargcount, co_nlocals, co_stacksize, co_flags,
        co_firstlineno;
    PyObject *co_code, *co_consts, *co_names, *co_varnames, *co_freevars, *co_cellvars;
    Py_ssize_t *co_cell2arg;
    PyObject *co_filename, *co_name, *co_lnotab; /* 3.10: co_linetable, of another format */
};
/* https://github.com/python/cpython/blob/v3.11.0/Include/cpython/code.h */
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
/* https://github.com/python/cpython/blob/v3.12.0/Include/cpython/code.h */
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

/* Offsets in a code object; 0: no such member. */
struct code_offsets {
    uint8_t first;
    uint8_t lines; /* enum line_table_format of co_linetable, which up to 3.9 is co_lnotab */
    uint8_t co_filename, co_name, co_firstlineno, co_linetable;
    uint8_t co_flags, co_argcount, co_kwonlyargcount;
    uint8_t co_varnames, co_cellvars, co_freevars; /* 3.11+: co_localsplusnames, 0 and 0 */
    uint8_t co_localspluskinds, co_qualname;
};
#define CODE_OFFSETS(first, lines, type, linetable, varnames, cellvars, freevars, kinds, qualname) \
    { \
        first, lines, offsetof(struct type, co_filename), offsetof(struct type, co_name), \
            offsetof(struct type, co_firstlineno), offsetof(struct type, linetable), \
            offsetof(struct type, co_flags), offsetof(struct type, co_argcount), \
            offsetof(struct type, co_kwonlyargcount), varnames, cellvars, freevars, kinds, \
            qualname \
    }
#define CODE_OFFSETS_36(first, lines, type) \
    CODE_OFFSETS(first, lines, type, co_lnotab, offsetof(struct type, co_varnames), \
                 offsetof(struct type, co_cellvars), offsetof(struct type, co_freevars), 0, 0)
#define CODE_OFFSETS_311(first, lines, type) \
    CODE_OFFSETS(first, lines, type, co_linetable, offsetof(struct type, co_localsplusnames), 0, \
                 0, offsetof(struct type, co_localspluskinds), offsetof(struct type, co_qualname))
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

/* From 3.11 on the instructions (co_code_adaptive) begin where the code type's __basicsize__ ends.
 * In a free-threaded build the word before them (co_tlbc) is the address of this struct.  The first
 * entry is the code object's own instructions.  Compared by instructions_of() in cpython/offsets.c.
 * https://github.com/python/cpython/blob/v3.14.0/Include/cpython/code.h */
struct PyCodeArray {
    Py_ssize_t size;
    char *entries[]; /* NULL for a thread that has not run the code */
};
COMPARED_WITH("_PyCodeArray, co_tlbc (Include/cpython/code.h)", 15);

/* ---------------------------------------------------------------- dicts */

/* Up to 3.13 ma_version_tag differs from that of each other dict of the interpreter, and changes
 * with each change of the dict (PEP 509).  In 3.13 this is not so for the __dict__ of an object
 * that holds the values itself.  Compared by has_version() in cpython/code.c and
 * is_right_for_dict() in cpython/offsets.c.
 * https://github.com/python/cpython/blob/v3.6.0/Include/dictobject.h */
struct PyDictObject {
    struct PyObject_head head;
    Py_ssize_t ma_used;
    uint64_t ma_version_tag;
    void *ma_keys, *ma_values; /* ma_values: NULL if the entries in the keys have the values */
};
enum { DICT_VERSION_LAST_MINOR = 13 };

/* The indices, of 1, 2, 4 or 8 bytes each, are followed by the entries.  Compared by
 * is_right_for_dict() in cpython/offsets.c.
 * https://github.com/python/cpython/blob/v3.6.0/Objects/dict-common.h */
struct PyDictKeysObject_36 {
    Py_ssize_t dk_refcnt, dk_size; /* dk_size: the number of indices */
    void *dk_lookup;
    Py_ssize_t dk_usable, dk_nentries;
    char dk_indices[];
};
/* https://github.com/python/cpython/blob/v3.11.0/Include/internal/pycore_dict.h */
struct PyDictKeysObject_311 {
    Py_ssize_t dk_refcnt;
    uint8_t dk_log2_size, dk_log2_index_bytes; /* of all indices together */
    uint8_t dk_kind;                           /* 0: PyDictKeyEntry; else PyDictUnicodeEntry */
    uint32_t dk_version;
    Py_ssize_t dk_usable, dk_nentries;
    char dk_indices[];
};
/* The entries: PyDictKeyEntry is in both headers, PyDictUnicodeEntry in that of 3.11. */
struct PyDictKeyEntry {
    Py_ssize_t me_hash;
    PyObject *me_key, *me_value;
};
struct PyDictUnicodeEntry {
    PyObject *me_key, *me_value;
};

/* Values that a dict or an object holds apart from the keys.  Up to 3.12 the struct is the values
 * alone.  In 3.11 and 3.12 bytes before it have the order of the values.
 * https://github.com/python/cpython/blob/v3.13.0/Include/internal/pycore_dict.h */
struct PyDictValues_313 {
    uint8_t capacity, size, embedded, valid;
    PyObject *values[];
};

/* Offsets in the keys and the values of a dict. */
struct dict_offsets {
    uint8_t first;
    uint8_t dk_format, dk_indices_size, dk_nentries, dk_indices; /* enum dict_keys_format */
    uint8_t dv_format, dv_values;                                /* enum dict_values_format */
    uint8_t dv_preheader; /* 1: a word before an object points to its values */
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

/* ---------------------------------------------------------------- thread states */

/* The start of PyThreadState: Include/pystate.h (3.6, 3.7), Include/cpython/pystate.h (3.8+). */
struct PyThreadState_head {
    PyThreadState *prev, *next;
    PyInterpreterState *interp;
};

/* The part of PyThreadState with the thread's profile and trace functions, up to 3.11.
 * curexc_type, which follows them, serves to compare this part: layout_is_known() in
 * hooks/trace_profile.c. */
struct PyThreadState_tracing {
    Py_tracefunc c_profilefunc, c_tracefunc;
    PyObject *c_profileobj, *c_traceobj;
    PyObject *curexc_type;
};

/* https://github.com/python/cpython/blob/v3.6.0/Include/pystate.h */
struct PyThreadState_36 {
    struct PyThreadState_head head;
    PyFrameObject *frame;
    int recursion_depth;
    char overflowed, recursion_critical;
    int tracing, use_tracing;
    struct PyThreadState_tracing functions;
};
/* https://github.com/python/cpython/blob/v3.7.0/Include/pystate.h */
struct PyThreadState_37 {
    struct PyThreadState_head head;
    PyFrameObject *frame;
    int recursion_depth;
    char overflowed, recursion_critical;
    int stack_check_counter, tracing, use_tracing;
    struct PyThreadState_tracing functions;
};

/* CFrame, _PyCFrame, 3.10 to 3.12: CPython keeps one on the C stack for each call of
 * _PyEval_EvalFrameDefault().  Declared in the same headers as PyThreadState. */
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

/* https://github.com/python/cpython/blob/v3.10.0/Include/cpython/pystate.h */
struct PyThreadState_310 {
    struct PyThreadState_head head;
    PyFrameObject *frame;
    int recursion_depth, recursion_headroom, stack_check_counter, tracing;
    struct PyCFrame_310 *cframe;
    struct PyThreadState_tracing functions;
};
/* https://github.com/python/cpython/blob/v3.11.0/Include/cpython/pystate.h */
struct PyThreadState_311 {
    struct PyThreadState_head head;
    int initialized, is_static, recursion[3], tracing, tracing_what;
    struct PyCFrame_311 *cframe;
    struct PyThreadState_tracing functions;
};
/* https://github.com/python/cpython/blob/v3.12.0/Include/cpython/pystate.h */
struct PyThreadState_312 {
    struct PyThreadState_head head;
    int status, recursion[4], tracing, what_event;
    struct PyCFrame_312 *cframe;
};

/* From 3.13 on PyThreadState itself points to the current frame: thread_state.current_frame of the
 * debug offsets.  The struct has more words than these. */
enum { THREAD_WORDS = 24 };

/* From exc_state, of two words, to current_executor, which is one of the first words of a
 * PyThreadState.  3.15 (Include/cpython/pystate.h). */
enum { EXC_STATE_TO_EXECUTOR = 2 * sizeof(void *), EXECUTOR_WORDS = 96 };
COMPARED_WITH("exc_state and current_executor (Include/cpython/pystate.h)", 15);
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

/* The offset of eval_frame in PyInterpreterState: Include/pystate.h (3.6, 3.7), Include/internal/
 * pycore_pystate.h (3.8), pycore_interp.h (3.9-3.11).  0: unknown.  Compared by
 * eval_frame_accessible() and eval_frame_locate() in hooks/frame_eval.c. */
static inline size_t interpreter_eval_frame_offset(int minor)
{
    if (sizeof(void *) != 8)
        return 0;
    static const uint16_t offsets[] = {112, 464, 568, 1400, 1368, 1424}; /* 3.6 to 3.11 */
    return minor >= 6 && minor <= 11 ? offsets[minor - 6] : 0;
}

/* _PyRuntimeState.interpreters, 3.7 to 3.11.  Compared by list_lock() in cpython/threads.c.
 * https://github.com/python/cpython/blob/v3.7.0/Include/internal/pystate.h */
struct pyinterpreters {
    void *mutex; /* HEAD_LOCK */
    PyInterpreterState *head, *main;
    int64_t next_id;
};

/* The start of PyInterpreterState, 3.13+: struct _ceval_state, at whose end are the pending calls.
 * Declared up to their maxloop.  3.14+: pycore_interp_structs.h.  Compared by
 * check_pending_calls_layout() in hooks/rearm.c.
 * https://github.com/python/cpython/blob/v3.13.0/Include/internal/pycore_ceval_state.h */
struct PyInterpreterState_313 {
    uintptr_t version;
    int recursion_limit;
    void *gil;
    int own_gil;
    PyThreadState *handling_thread; /* the thread that makes pending calls now */
    uint8_t mutex;
    int32_t npending, max, maxloop;
};
enum { INTERPRETER_313_MAX_CALLS = 300, INTERPRETER_313_MAX_CALLS_AT_ONCE = 100 };
COMPARED_WITH("PyInterpreterState_313 (Include/internal/pycore_interp_structs.h)", 15);

/* _PyRuntimeState: Include/internal/pystate.h (3.7), pycore_pystate.h (3.8), pycore_runtime.h
 * (3.9-3.11). */
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

/* The offset of interpreters in _PyRuntime; 0: unknown. */
static inline size_t runtime_interpreters_offset(int minor)
{
    if (minor < 7 || minor > 11)
        return 0;
    return minor == 7    ? offsetof(struct PyRuntimeState_37, interpreters)
           : minor == 11 ? offsetof(struct PyRuntimeState_311, interpreters)
                         : offsetof(struct PyRuntimeState_38, interpreters);
}

/* The offset of the dict of modules in PyInterpreterState, up to 3.11, in the headers of
 * interpreter_eval_frame_offset().  In 3.12 this dict and the pointer to the GIL (_ceval_state.gil)
 * are among the first INTERPRETER_WORDS, later where the debug offsets have them.  Compared by
 * find_modules() and find_gil() in cpython/offsets.c. */
static inline size_t interpreter_modules_offset(int minor)
{
    static const uint16_t offsets[] = {16, 40, 56, 856, 856, 888}; /* 3.6 to 3.11 */
    return minor >= 6 && minor <= 11 ? offsets[minor - 6] : 0;
}
enum { INTERPRETER_WORDS = 2048 };

/* Where asyncio's tasks are, 3.14+.  In a _PyThreadStateImpl: asyncio_running_task, which follows
 * asyncio_running_loop, and asyncio_tasks_head, which a pointer (qsbr) and another list follow.  In
 * a PyInterpreterState: the distance from its dict of modules to its asyncio_tasks_head, which its
 * lock and a pointer (obmalloc) follow.  Patch releases and debug builds move them: those of 3.14.4
 * to 3.14.7 are here.  Compared by offsets_fill_tasks() in cpython/tasks.c.
 * https://github.com/python/cpython/blob/v3.14.4/Include/internal/pycore_tstate.h
 * https://github.com/python/cpython/blob/v3.14.4/Include/internal/pycore_interp_structs.h */
struct task_offsets {
    uint8_t first;
    uint16_t running_task, tasks_head;
    uint16_t interp_tasks_head, interp_tasks_head_nogil;
};
static const struct task_offsets task_offsets_rows[] = {
    {14, 872, 880, 3192, 9920},
    {15, 1032, 1048, 3264, 10040},
};
COMPARED_WITH("task_offsets() (internal/pycore_tstate.h, pycore_interp_structs.h)", 15);

static inline const struct task_offsets *task_offsets(int minor)
{
    return ROW_OF(task_offsets_rows, minor);
}

/* https://github.com/python/cpython/blob/v3.14.0/Include/internal/pycore_llist.h */
struct llist_node {
    struct llist_node *next, *prev; /* of an empty list: its head */
};
COMPARED_WITH("llist_node (Include/internal/pycore_llist.h)", 15);

/* struct _gil_runtime_state.  From 3.7 to 3.11 it is in _PyRuntime, later in the main
 * PyInterpreterState, in 3.12 among the first INTERPRETER_WORDS words.  3.6 has single variables
 * instead (Python/ceval_gil.h).  Compared by find_gil() in cpython/offsets.c.
 * https://github.com/python/cpython/blob/v3.7.0/Include/internal/gil.h */
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
/* The same in a free-threaded build.
 * https://github.com/python/cpython/blob/v3.13.0/Include/internal/pycore_gil.h */
struct gil_runtime_state_313t {
    int enabled; /* not 0 with PYTHON_GIL=1, and once a module is loaded that needs the GIL */
    struct gil_runtime_state_37 gil;
};
COMPARED_WITH("_gil_runtime_state (Include/internal/pycore_gil.h)", 15);

/* A part of struct _gc_runtime_state: from 3.9 on among the first INTERPRETER_WORDS words of a
 * PyInterpreterState, in 3.7 and 3.8 in _PyRuntime.  Compared by find_collector() in
 * cpython/offsets.c.  https://github.com/python/cpython/blob/v3.7.0/Include/internal/mem.h */
struct gc_runtime_state_37 {
    int collecting;
    PyObject *garbage, *callbacks; /* gc.garbage, gc.callbacks */
};
/* https://github.com/python/cpython/blob/v3.15.0/Include/internal/pycore_interp_structs.h */
struct gc_runtime_state_315 {
    int collecting;
    void *frame; /* in which the collection began; NULL: in none */
    PyObject *garbage, *callbacks;
};
COMPARED_WITH("_gc_runtime_state (Include/internal/pycore_interp_structs.h)", 15);

/* ---------------------------------------------------------------- debug offsets */

/* _Py_DebugOffsets, with which _PyRuntime begins from 3.13 on: offsets of CPython's own, for
 * debuggers.  Declared up to dict_object.  Compared by debug_offsets_agree() and others in
 * cpython/offsets.c, and by compare_current() in cpython/frame.c.
 * https://github.com/python/cpython/blob/v3.13.0/Include/internal/pycore_runtime.h */
struct _Py_DebugOffsets_313 {
    char cookie[8];
    uint64_t version, free_threaded;
    struct {
        uint64_t size, finalizing, interpreters_head;
    } runtime_state;
    struct {
        uint64_t size, id, next, threads_head, gc, imports_modules, sysdict, builtins, ceval_gil,
            gil_runtime_state, gil_runtime_state_enabled, gil_runtime_state_locked,
            gil_runtime_state_holder;
    } interpreter_state;
    struct {
        uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id,
            datastack_chunk, status;
    } thread_state;
    struct {
        uint64_t size, previous, executable, instr_ptr, localsplus, owner;
    } interpreter_frame;
    struct {
        uint64_t size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames,
            localspluskinds, co_code_adaptive;
    } code_object;
    struct {
        uint64_t size, ob_type;
    } pyobject;
    struct {
        uint64_t size, tp_name, tp_repr, tp_flags;
    } type_object;
    struct {
        uint64_t size, ob_item, ob_size;
    } tuple_object, list_object;
    struct {
        uint64_t size, ma_keys, ma_values;
    } dict_object;
};
/* https://github.com/python/cpython/blob/v3.14.0/Include/internal/pycore_debug_offsets.h */
struct _Py_DebugOffsets_314 {
    char cookie[8];
    uint64_t version, free_threaded;
    struct {
        uint64_t size, finalizing, interpreters_head;
    } runtime_state;
    struct {
        uint64_t size, id, next, threads_head, threads_main, gc, imports_modules, sysdict, builtins,
            ceval_gil, gil_runtime_state, gil_runtime_state_enabled, gil_runtime_state_locked,
            gil_runtime_state_holder, code_object_generation, tlbc_generation;
    } interpreter_state;
    struct {
        uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id,
            datastack_chunk, status;
    } thread_state;
    struct {
        uint64_t size, previous, executable, instr_ptr, localsplus, owner, stackpointer, tlbc_index;
    } interpreter_frame;
    struct {
        uint64_t size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames,
            localspluskinds, co_code_adaptive, co_tlbc;
    } code_object;
    struct {
        uint64_t size, ob_type;
    } pyobject;
    struct {
        uint64_t size, tp_name, tp_repr, tp_flags;
    } type_object;
    struct {
        uint64_t size, ob_item, ob_size;
    } tuple_object, list_object;
    struct {
        uint64_t size, used, table, mask;
    } set_object;
    struct {
        uint64_t size, ma_keys, ma_values;
    } dict_object;
};
/* Since 3.15.0b4.
 * https://github.com/python/cpython/blob/v3.15.0/Include/internal/pycore_debug_offsets.h */
struct _Py_DebugOffsets_315 {
    char cookie[8];
    uint64_t version, free_threaded;
    struct {
        uint64_t size, finalizing, interpreters_head;
    } runtime_state;
    struct {
        uint64_t size, id, next, threads_head, threads_main, gc, imports_modules, sysdict, builtins,
            ceval_gil, gil_runtime_state, gil_runtime_state_enabled, gil_runtime_state_locked,
            gil_runtime_state_holder, code_object_generation, tlbc_generation;
    } interpreter_state;
    struct {
        uint64_t size, prev, next, interp, current_frame, base_frame, last_profiled_frame,
            last_profiled_frame_seq, thread_id, native_thread_id, datastack_chunk, status,
            holds_gil, gil_requested, current_exception, exc_state;
    } thread_state;
    struct {
        uint64_t exc_value;
    } err_stackitem;
    struct {
        uint64_t size, previous, executable, instr_ptr, localsplus, owner, stackpointer, tlbc_index;
    } interpreter_frame;
    struct {
        uint64_t size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames,
            localspluskinds, co_code_adaptive, co_tlbc;
    } code_object;
    struct {
        uint64_t size, ob_type;
    } pyobject;
    struct {
        uint64_t size, tp_name, tp_repr, tp_flags, tp_basicsize, tp_dictoffset;
    } type_object;
    struct {
        uint64_t size, ht_cached_keys;
    } heap_type_object;
    struct {
        uint64_t size, ob_item, ob_size;
    } tuple_object, list_object;
    struct {
        uint64_t size, used, table, mask;
    } set_object;
    struct {
        uint64_t size, ma_keys, ma_values;
    } dict_object;
};
#define DEBUG_OFFSETS_COOKIE "xdebugpy"
COMPARED_WITH("_Py_DebugOffsets (Include/internal/pycore_debug_offsets.h)", 15);

#endif
