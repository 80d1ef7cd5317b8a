/*
 * The types of CPython: its structs that the shim looks into, version by version, and those that
 * stay opaque.  All that the shim knows of CPython's memory, beyond what the exported functions
 * return, stands here.  A new version of CPython is a change of this file.
 *
 * A number behind a name is the first CPython that has it so: struct frame_37 is that of 3.7 and of
 * all later ones up to the next struct frame_NN.  Each is compared with what the public functions
 * say of the running interpreter before anything else is read or written by it, in the file that
 * its comment names.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_LAYOUT_H
#define CPYTHON_LAYOUT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The shim is off in an older CPython.  In a newer one it gives all markers for which CPython's
 * public functions suffice, or whose structs prove right; but no page for stack traces. */
enum {
    CPYTHON_OLDEST_MINOR = 6,
    CPYTHON_NEWEST_MINOR = 15,
    /* The newer one that stap-python and the tapset look for, too. */
    CPYTHON_NEXT_MINOR = CPYTHON_NEWEST_MINOR + 1
};

typedef struct _object PyObject;
typedef struct _frame PyFrameObject;
typedef struct _ts PyThreadState;
typedef struct _is PyInterpreterState;
typedef ssize_t Py_ssize_t;
typedef int (*Py_tracefunc)(PyObject *, PyFrameObject *, int, PyObject *);

/* Include/object.h: PyObject_HEAD and PyObject_VAR_HEAD, but in a CPython with Py_TRACE_REFS, in
 * which sys has getobjects(). */
struct object_head {
    Py_ssize_t references;
    PyObject *type;
};
/* The same with Py_TRACE_REFS: what is before it links all objects. */
struct object_head_traced {
    void *next, *previous;
    struct object_head head;
};
/* Of the flags in the next one: PyModuleDef_Init() of 3.15 refuses a definition without it
 * (Objects/moduleobject.c). */
enum { FLAG_STATICALLY_ALLOCATED = 1 << 2 };
/* The same without a GIL, 3.13 and later. */
struct object_head_free_threaded {
    uintptr_t thread;
    uint16_t flags;
    uint8_t mutex, gc_bits;
    uint32_t local_references; /* all bits: the object is immortal */
    struct object_head head;   /* its references are those of other threads: ob_base() */
};
struct var_object_head {
    struct object_head head;
    Py_ssize_t size;
};

/* ---------------------------------------------------------------- frames */

/* PyFrameObject: Include/frameobject.h (3.6-3.8), Include/cpython/frameobject.h (3.9, 3.10).  What
 * all of them begin with is compared by frame.c, the rest by layout.c. */
struct frame_36 {
    struct var_object_head head;
    PyFrameObject *back;
    PyObject *code, *builtins, *globals, *locals;
    void *value_stack, *stack_top;
    PyObject *trace;
    PyObject *exception_type, *exception_value, *exception_traceback;
    PyObject *generator;
    int last_instruction;
};
struct frame_37 {
    struct var_object_head head;
    PyFrameObject *back;
    PyObject *code, *builtins, *globals, *locals;
    void *value_stack, *stack_top;
    PyObject *trace;
    char trace_lines, trace_opcodes;
    PyObject *generator;
    int last_instruction;
};
struct frame_310 {
    struct var_object_head head;
    PyFrameObject *back;
    PyObject *code, *builtins, *globals, *locals;
    void *value_stack;
    PyObject *trace;
    int stack_depth;
    char trace_lines, trace_opcodes;
    PyObject *generator;
    int last_instruction; /* in units of two bytes */
};

/* PyFrameObject from 3.11 on: Include/internal/pycore_frame.h.  Compared by
 * frame_interpreter_frame(). */
struct frame_object_311 {
    struct object_head head;
    PyFrameObject *back;
    void *frame;   /* a struct inner_frame_NN */
    void *rest[3]; /* f_trace, f_lineno and so on */
};

/* _PyInterpreterFrame: Include/internal/pycore_frame.h (3.11-3.13), pycore_interpframe_structs.h
 * (3.14 on).  Compared by frame_interpreter_frame(), and by hook_frame.c or layout.c. */
struct inner_frame_311 {
    PyObject *function, *globals, *builtins, *locals, *code;
    PyFrameObject *object; /* NULL until it is asked for */
    struct inner_frame_311 *previous;
    uint16_t *previous_instruction;
};
struct inner_frame_312 {
    uintptr_t code; /* from 3.14 on with a tag in CODE_TAG */
    void *previous;
    PyObject *function, *globals, *builtins, *locals;
    PyFrameObject *object;
    uint16_t *instruction; /* in 3.12 the previous one */
    int stack_top;         /* this and the following: up to 3.13 */
    uint16_t return_offset;
    char owner; /* FRAME_OWNED_BY_CSTACK and others */
};
#define CODE_TAG ((uintptr_t)7)
enum { OWNER_LAST_MINOR = 13 };
/* The same without a GIL, 3.14 and later: the instruction may be one of a copy that the thread has
 * of the code object's. */
struct inner_frame_free_threaded {
    uintptr_t code;
    void *previous;
    PyObject *function, *globals, *builtins, *locals;
    PyFrameObject *object;
    uint16_t *instruction;
    void *stack_pointer;
    int32_t copy; /* tlbc_index: its place in struct code_copies */
};

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

/* PyCFunctionObject (Include/methodobject.h, Include/cpython/methodobject.h) and
 * PyMethodDescrObject (Include/descrobject.h), as far as the PyMethodDef of what they call.
 * Compared by callable.c. */
struct cfunction {
    struct object_head head;
    void *definition;
};
struct method_descriptor {
    struct object_head head;
    PyObject *type, *name, *qualified_name;
    void *definition;
};

/* PyTracebackObject: Include/traceback.h (3.6), Include/cpython/traceback.h (3.8 on).  Compared by
 * raise.c, by its size. */
struct traceback {
    struct object_head head;
    PyObject *next; /* of the frame that the exception has left before */
    PyFrameObject *frame;
    int last_instruction, line;
};

/* ---------------------------------------------------------------- code objects */

/* PyCodeObject: Include/code.h (3.6-3.8), Include/cpython/code.h (3.9 on).  Compared by layout.c.
 */
struct code_36 {
    struct object_head head;
    int arguments, keyword_arguments, locals, stack_size, flags, first_line;
    PyObject *code, *constants, *names, *variables, *free_variables, *cells;
    unsigned char *cell_arguments;
    PyObject *filename, *name, *lines;
};
struct code_38 {
    struct object_head head;
    int arguments, positional_arguments, keyword_arguments, locals, stack_size, flags, first_line;
    PyObject *code, *constants, *names, *variables, *free_variables, *cells;
    Py_ssize_t *cell_arguments;
    PyObject *filename, *name, *lines; /* of 3.10 in another form */
};
struct code_311 {
    struct var_object_head head;
    PyObject *constants, *names, *exceptions;
    int flags;
    short warmup, line_array_size;
    int arguments, positional_arguments, keyword_arguments, stack_size, first_line;
    int locals_and_cells, locals, plain_cells, cells, free_variables;
    PyObject *local_names, *local_kinds;
    PyObject *filename, *name, *qualified_name, *lines;
};
struct code_312 {
    struct var_object_head head;
    PyObject *constants, *names, *exceptions;
    int flags;
    int arguments, positional_arguments, keyword_arguments, stack_size, first_line;
    int locals_and_cells, frame_size, locals, cells, free_variables;
    uint32_t version;
    PyObject *local_names, *local_kinds;
    PyObject *filename, *name, *qualified_name, *lines;
};

/* From 3.11 on the instructions (co_code_adaptive) are behind what the code type's __basicsize__
 * counts.  Without a GIL, 3.14 and later, the word before them (co_tlbc) is the address of this:
 * _PyCodeArray, Include/cpython/code.h.  The first copy is the code object's own instructions.
 * Compared by layout.c. */
struct code_copies {
    Py_ssize_t count;
    char *copies[]; /* NULL for a thread that has not run the code */
};

/* ---------------------------------------------------------------- dicts */

/* PyDictObject: Include/cpython/dictobject.h (3.6: Include/dictobject.h).  The version is that of
 * no other dict of the interpreter, and another one after each change (PEP 509), up to 3.13; in
 * 3.13 not where an object has the values, as its __dict__.  Compared by code.c, as far as the
 * version, and by layout.c. */
struct dict_36 {
    struct object_head head;
    Py_ssize_t used;
    uint64_t version;
    void *keys, *values; /* values: NULL where they are beside the keys */
};
enum { DICT_VERSION_LAST_MINOR = 13 };

/* PyDictKeysObject: Objects/dict-common.h (3.6-3.10), Include/internal/pycore_dict.h (3.11 on).
 * Behind the indices, of 1, 2, 4 or 8 bytes each, come the entries.  Compared by layout.c. */
struct dict_keys_36 {
    Py_ssize_t references, size; /* so many indices */
    void *lookup;
    Py_ssize_t usable, entries;
    char indices[];
};
struct dict_keys_311 {
    Py_ssize_t references;
    uint8_t log2_size, log2_index_bytes; /* of all indices together */
    uint8_t kind;                        /* 0: entries as up to 3.10; others: of str alone */
    uint32_t version;
    Py_ssize_t usable, entries;
    char indices[];
};
struct dict_entry {
    Py_ssize_t hash;
    PyObject *key, *value;
};
struct dict_entry_of_str {
    PyObject *key, *value;
};

/* PyDictValues: what a dict or an object has apart from the keys.  Up to 3.12 values alone, with
 * bytes before them in 3.11 and 3.12; from 3.13 on behind this: Include/internal/pycore_dict.h. */
struct dict_values_313 {
    uint8_t capacity, size, embedded, valid;
    PyObject *values[];
};

/* ---------------------------------------------------------------- thread states, up to 3.12 */

/* What PyThreadState begins with up to 3.12: Include/pystate.h (3.6, 3.7),
 * Include/cpython/pystate.h (3.8 on). */
struct thread_head {
    PyThreadState *previous, *next;
    PyInterpreterState *interp;
};

/* The trace and the profile function of a thread, and the type of its exception in flight, which
 * stands behind them.  Up to 3.11; compared by trace.c. */
struct thread_functions {
    Py_tracefunc profile, trace;
    PyObject *profile_object, *trace_object;
    PyObject *exception_type;
};

struct thread_36 {
    struct thread_head head;
    PyFrameObject *frame;
    int recursion_depth;
    char overflowed, recursion_critical;
    int tracing, use_tracing;
    struct thread_functions functions;
};
struct thread_37 {
    struct thread_head head;
    PyFrameObject *frame;
    int recursion_depth;
    char overflowed, recursion_critical;
    int stack_check_counter, tracing, use_tracing;
    struct thread_functions functions;
};

/* CFrame (_PyCFrame): what 3.10 to 3.12 keep of each evaluation on the C stack. */
struct cframe_310 {
    int use_tracing;
};
struct cframe_311 {
    uint8_t use_tracing;
    struct inner_frame_311 *current_frame;
};
struct cframe_312 {
    struct inner_frame_312 *current_frame;
};

struct thread_310 {
    struct thread_head head;
    PyFrameObject *frame;
    int recursion_depth, recursion_headroom, stack_check_counter, tracing;
    struct cframe_310 *cframe;
    struct thread_functions functions;
};
struct thread_311 {
    struct thread_head head;
    int initialized, is_static, recursion[3], tracing, tracing_what;
    struct cframe_311 *cframe;
    struct thread_functions functions;
};
struct thread_312 {
    struct thread_head head;
    int status, recursion[4], tracing, what_event;
    struct cframe_312 *cframe;
};

/* From 3.13 on PyThreadState has its current frame itself, which shown.c looks for: behind what it
 * begins with, among its first words; so does layout.c. */
enum { THREAD_FIRST_WORD = sizeof(struct thread_head) / sizeof(void *), THREAD_WORDS = 24 };

/* Up to 3.11. */
static inline struct thread_functions *thread_functions(PyThreadState *thread, int minor)
{
    if (minor == 11)
        return &((struct thread_311 *)thread)->functions;
    if (minor == 10)
        return &((struct thread_310 *)thread)->functions;
    return minor == 6 ? &((struct thread_36 *)thread)->functions
                      : &((struct thread_37 *)thread)->functions;
}

/* Not 0 while a trace or profile function of the thread runs.  Up to 3.11. */
static inline int thread_tracing(const PyThreadState *thread, int minor)
{
    if (minor == 11)
        return ((const struct thread_311 *)thread)->tracing;
    if (minor == 10)
        return ((const struct thread_310 *)thread)->tracing;
    return minor == 6 ? ((const struct thread_36 *)thread)->tracing
                      : ((const struct thread_37 *)thread)->tracing;
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
struct runtime_interpreters {
    void *mutex; /* HEAD_LOCK */
    PyInterpreterState *head, *main;
    int64_t next_id;
};

/* The begin of PyInterpreterState, whose ceval ends with its pending calls: Include/internal/
 * pycore_ceval_state.h (3.13), pycore_interp_structs.h.  Compared in ask.c. */
struct interpreter_313 {
    uintptr_t version;
    int recursion_limit;
    void *gil;
    int own_gil;
    PyThreadState *calling; /* makes pending calls */
    uint8_t lock;
    int32_t calls, max_calls, max_calls_at_once;
};
enum { INTERPRETER_313_MAX_CALLS = 300, INTERPRETER_313_MAX_CALLS_AT_ONCE = 100 };

/* _PyRuntimeState: 3.7, 3.8 to 3.10, and 3.11. */
struct runtime_37 {
    int initialized, core_initialized;
    void *finalizing;
    struct runtime_interpreters interpreters;
};
struct runtime_38 {
    int preinitializing, preinitialized, core_initialized, initialized;
    void *finalizing;
    struct runtime_interpreters interpreters;
};
struct runtime_311 {
    int is_static, preinitializing, preinitialized, core_initialized, initialized;
    void *finalizing;
    struct runtime_interpreters interpreters;
};

/* Where _PyRuntime has them; 0: nowhere. */
static inline size_t runtime_interpreters_offset(int minor)
{
    if (minor < 7 || minor > 11)
        return 0;
    return minor == 7    ? offsetof(struct runtime_37, interpreters)
           : minor == 11 ? offsetof(struct runtime_311, interpreters)
                         : offsetof(struct runtime_38, interpreters);
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
struct gil_37 {
    unsigned long interval; /* in microseconds */
    PyThreadState *holder;
    int locked;
    unsigned long switches;
    pthread_cond_t released;
    pthread_mutex_t mutex;
    pthread_cond_t switched;
    pthread_mutex_t switch_mutex;
};
/* The same in a free-threaded build. */
struct gil_free_threaded {
    int enabled; /* not 0 with PYTHON_GIL=1, and while a module is there that needs the GIL */
    struct gil_37 gil;
};

#endif
