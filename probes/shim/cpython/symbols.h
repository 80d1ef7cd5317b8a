/*
 * CPython's exported functions.  One build of the shim serves every CPython, so it can't include
 * Python.h: each function is looked up by name in the running process, and called as py.NAME(...).
 *
 * "GIL held", in the comments of all files, means that the calling thread is attached to its
 * interpreter.  In a build with a GIL the thread holds the GIL, and no other thread runs in the
 * interpreters that share that GIL.  In a free-threaded build the thread may call CPython's
 * functions, and no thread stops the world meanwhile.  But other threads run the same code at the
 * same time.  There, data that threads share are atomic or protected by a lock.  If the GIL
 * protects the data in other builds, the lock is one of threads.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CPYTHON_SYMBOLS_H
#define CPYTHON_SYMBOLS_H

#include <stdbool.h>

#include "shared/cpython_structs.h"

typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef int (*Py_AuditHookFunction)(const char *, PyObject *, void *);

/* The flags are part of the stable ABI.
 * https://github.com/python/cpython/blob/v3.6.0/Include/methodobject.h */
typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;
#define METH_VARARGS 0x0001
#define METH_KEYWORDS 0x0002
#define METH_NOARGS 0x0004
#define METH_O 0x0008
#define METH_FASTCALL 0x0080

/* The table of built-in modules.  https://github.com/python/cpython/blob/v3.6.0/Include/import.h */
struct _inittab {
    const char *name;
    PyObject *(*initfunc)(void);
};

/* PyMemAllocatorEx.  The domain of raw memory is 0 (PYMEM_DOMAIN_RAW).
 * https://github.com/python/cpython/blob/v3.6.0/Include/pymem.h */
struct cpython_allocator {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
};

/* https://github.com/python/cpython/blob/v3.13.0/Include/cpython/critical_section.h */
struct PyCriticalSection {
    uintptr_t words[2];
};
COMPARED_WITH("PyCriticalSection (Include/cpython/critical_section.h)", 15);

/* NEED: the shim does not support a CPython without it.  MAY: NULL if missing. */
#define CPYTHON_SYMBOLS(NEED, MAY) \
    NEED(const char *, Py_GetVersion, (void)) \
    NEED(int, Py_IsInitialized, (void)) \
    NEED(void, Py_IncRef, (PyObject *)) \
    NEED(void, Py_DecRef, (PyObject *)) \
    NEED(int, Py_AddPendingCall, (int (*)(void *), void *)) \
    NEED(int, PyGILState_Ensure, (void)) \
    NEED(void, PyGILState_Release, (int)) \
    NEED(PyThreadState *, PyThreadState_Get, (void)) \
    NEED(int, PyThreadState_SetAsyncExc, (unsigned long, PyObject *)) \
    MAY(PyThreadState *, PyThreadState_GetUnchecked, (void))  /* 3.13+ */ \
    MAY(PyThreadState *, _PyThreadState_UncheckedGet, (void)) /* 3.6 to 3.12 */ \
    NEED(PyThreadState *, PyGILState_GetThisThreadState, (void)) \
    NEED(PyThreadState *, PyThreadState_New, (PyInterpreterState *)) \
    MAY(PyThreadState *, _PyThreadState_Prealloc, (PyInterpreterState *)) /* to 3.11 */ \
    MAY(void, _PyThreadState_SetCurrent, (PyThreadState *))               /* 3.11 */ \
    NEED(PyThreadState *, PyThreadState_Swap, (PyThreadState *)) \
    NEED(void, PyThreadState_Clear, (PyThreadState *)) \
    NEED(void, PyThreadState_Delete, (PyThreadState *)) \
    NEED(PyThreadState *, PyEval_SaveThread, (void)) \
    NEED(void, PyEval_RestoreThread, (PyThreadState *)) \
    NEED(PyFrameObject *, PyEval_GetFrame, (void)) \
    NEED(PyObject *, PyEval_GetGlobals, (void)) \
    NEED(int, PyFrame_GetLineNumber, (PyFrameObject *)) \
    NEED(int, PyCode_Addr2Line, (PyObject *, int)) \
    NEED(PyObject *, PyImport_ImportModuleLevel, \
         (const char *, PyObject *, PyObject *, PyObject *, int)) \
    NEED(PyObject *, PySys_GetObject, (const char *)) \
    NEED(PyObject *, PyImport_GetModuleDict, (void)) \
    NEED(void, PyErr_Clear, (void)) \
    NEED(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **)) \
    NEED(PyObject *, PyErr_Occurred, (void)) \
    NEED(PyObject *, PyException_GetTraceback, (PyObject *)) \
    NEED(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *)) \
    NEED(PyObject *, PyObject_GetAttrString, (PyObject *, const char *)) \
    NEED(int, PyObject_SetAttrString, (PyObject *, const char *, PyObject *)) \
    NEED(PyObject *, PyObject_Call, (PyObject *, PyObject *, PyObject *)) \
    NEED(PyObject *, PyObject_CallMethod, (PyObject *, const char *, const char *, ...)) \
    NEED(PyObject *, PyCFunction_NewEx, (PyMethodDef *, PyObject *, PyObject *)) \
    NEED(PyObject *, PyTuple_New, (Py_ssize_t)) \
    NEED(PyObject *, PyTuple_GetItem, (PyObject *, Py_ssize_t)) \
    NEED(PyObject *, PyDict_New, (void)) \
    NEED(int, PyDict_SetItem, (PyObject *, PyObject *, PyObject *)) \
    NEED(PyObject *, PyDict_GetItem, (PyObject *, PyObject *)) \
    NEED(Py_ssize_t, PyDict_Size, (PyObject *)) \
    NEED(int, PyDict_Next, (PyObject *, Py_ssize_t *, PyObject **, PyObject **)) \
    NEED(Py_ssize_t, PyObject_Hash, (PyObject *)) \
    NEED(PyObject *, PyDict_GetItemString, (PyObject *, const char *)) \
    NEED(int, PyDict_SetItemString, (PyObject *, const char *, PyObject *)) \
    NEED(int, PyList_Append, (PyObject *, PyObject *)) \
    NEED(PyObject *, PyObject_Type, (PyObject *)) \
    NEED(PyObject *, PyMethod_Function, (PyObject *)) \
    NEED(PyObject *, PyFunction_GetCode, (PyObject *)) \
    NEED(PyObject *, PyFunction_GetGlobals, (PyObject *)) \
    NEED(int, PyType_IsSubtype, (PyObject *, PyObject *)) \
    NEED(void, PyEval_SetTrace, (Py_tracefunc, PyObject *)) \
    NEED(int, PyThread_acquire_lock, (void *, int)) \
    NEED(void, PyThread_release_lock, (void *)) \
    NEED(PyThreadState *, PyInterpreterState_ThreadHead, (PyInterpreterState *)) \
    NEED(PyThreadState *, PyThreadState_Next, (PyThreadState *)) \
    NEED(PyInterpreterState *, PyInterpreterState_Head, (void)) \
    NEED(PyInterpreterState *, PyInterpreterState_Next, (PyInterpreterState *)) \
    NEED(int, PyTuple_SetItem, (PyObject *, Py_ssize_t, PyObject *)) \
    NEED(Py_ssize_t, PyList_Size, (PyObject *)) \
    NEED(PyObject *, PyList_GetItem, (PyObject *, Py_ssize_t)) \
    NEED(int, PySequence_DelItem, (PyObject *, Py_ssize_t)) \
    NEED(PyObject *, PyCapsule_New, (void *, const char *, void (*)(PyObject *))) \
    NEED(void *, PyCapsule_GetPointer, (PyObject *, const char *)) \
    NEED(long, PyLong_AsLong, (PyObject *)) \
    NEED(PyObject *, PyUnicode_FromString, (const char *)) \
    NEED(PyObject *, PyUnicode_InternFromString, (const char *)) \
    NEED(const char *, PyUnicode_AsUTF8AndSize, (PyObject *, Py_ssize_t *)) \
    MAY(void, PyMem_GetAllocator, (int, struct cpython_allocator *)) \
    MAY(void, PyMem_SetAllocator, (int, const struct cpython_allocator *)) \
    MAY(unsigned long, _PyEval_GetSwitchInterval, (void)) /* to 3.12 */ \
    MAY(void, PyEval_InitThreads, (void)) \
    MAY(int, Py_IsFinalizing, (void)) \
    MAY(int, _Py_IsFinalizing, (void)) \
    MAY(PyInterpreterState *, PyInterpreterState_Main, (void)) \
    MAY(int, PyEval_ThreadsInitialized, (void)) \
    MAY(int, _PyEval_AddPendingCall, (PyInterpreterState *, int (*)(void *), void *, int)) \
    MAY(int, _PyEval_SetTrace, (PyThreadState *, Py_tracefunc, PyObject *)) \
    MAY(PyObject *, PyType_GetName, (PyObject *)) \
    MAY(PyObject *, PyInterpreterState_GetDict, (PyInterpreterState *)) \
    MAY(int, PySys_AddAuditHook, (Py_AuditHookFunction, void *)) \
    MAY(PyInterpreterState *, PyInterpreterState_Get, (void)) \
    MAY(PyInterpreterState *, _PyInterpreterState_Get, (void)) \
    MAY(void *, _PyInterpreterState_GetEvalFrameFunc, (PyInterpreterState *)) \
    MAY(void, _PyInterpreterState_SetEvalFrameFunc, (PyInterpreterState *, void *)) \
    MAY(PyObject *, _PyEval_EvalFrameDefault, (void)) \
    MAY(PyFrameObject *, PyFrame_GetBack, (PyFrameObject *)) \
    MAY(PyObject *, PyFrame_GetGlobals, (PyFrameObject *)) \
    MAY(int, PyFrame_GetLasti, (PyFrameObject *)) \
    /* these four are called in free-threaded builds alone, 3.13+ */ \
    MAY(void, PyCriticalSection_Begin, (struct PyCriticalSection *, PyObject *)) \
    MAY(void, PyCriticalSection_End, (struct PyCriticalSection *)) \
    MAY(int, PyDict_GetItemRef, (PyObject *, PyObject *, PyObject **)) \
    MAY(void, PyUnstable_GC_VisitObjects, (int (*)(PyObject *, void *), void *)) \
    MAY(int64_t, PyInterpreterState_GetID, (PyInterpreterState *)) \
    MAY(PyObject *, PyFrame_GetCode, (PyFrameObject *)) \
    MAY(PyObject *, _PyDict_GetItem_KnownHash, (PyObject *, PyObject *, Py_ssize_t)) \
    MAY(int, _PyCode_GetExtra, (PyObject *, Py_ssize_t, void **)) \
    MAY(int, _PyCode_SetExtra, (PyObject *, Py_ssize_t, void *)) \
    MAY(Py_ssize_t, _PyEval_RequestCodeExtraIndex, (void (*)(void *))) \
    MAY(int, PyUnstable_Code_GetExtra, (PyObject *, Py_ssize_t, void **)) \
    MAY(int, PyUnstable_Code_SetExtra, (PyObject *, Py_ssize_t, void *)) \
    MAY(Py_ssize_t, PyUnstable_Eval_RequestCodeExtraIndex, (void (*)(void *)))

struct cpython {
    int minor; /* 11 for CPython 3.11 */
    bool free_threaded;
    unsigned ob_base_offset; /* see ob_base() */
    /* This version's rows of the tables in shared/cpython_structs.h. */
    const struct frame_offsets *frame;
    const struct code_offsets *code;
    const struct dict_offsets *dict;
    PyObject *none;
    PyObject *cfunction_type, *method_descriptor_type, *method_type, *code_type, *function_type,
        *tuple_type;
    struct _inittab **inittab;           /* &PyImport_Inittab */
    PyThreadState *volatile *finalizing; /* 3.6: &_Py_Finalizing, not NULL in Py_Finalize() */
    PyThreadState **current;             /* 3.6: &_PyThreadState_Current, the holder of the GIL */
    const char *runtime;                 /* 3.7 and later: &_PyRuntime */
    size_t runtime_size;                 /* 0: unknown */
    bool has_debug_offsets;              /* 3.13 and later: by the struct of this version */
#define MEMBER(type, name, parameters) type(*name) parameters;
    CPYTHON_SYMBOLS(MEMBER, MEMBER)
#undef MEMBER
};
extern struct cpython py;

/* The part of an object that the structs of shared/ describe: from struct PyObject_head on.  In a
 * free-threaded build the head begins with more words, and ob_refcnt is ob_ref_shared (struct
 * PyObject_head_nogil). */
static inline void *ob_base(const void *object)
{
    return (char *)object + py.ob_base_offset;
}

/* Reads a variable that other threads may be writing, as when memory is searched. */
#define LOAD_RELAXED(variable) __atomic_load_n(&(variable), __ATOMIC_RELAXED)

static inline char *read_word(const void *object, unsigned offset)
{
    return LOAD_RELAXED(*(char **)((char *)object + offset));
}

/* A member of the struct _Py_DebugOffsets of this version; UINT64_MAX: it has none.  The program
 * may have overwritten it, so each caller compares the value that it leads to. */
#define DEBUG_OFFSET(member) \
    debug_offset(offsetof(struct _Py_DebugOffsets_313, member), \
                 offsetof(struct _Py_DebugOffsets_314, member), \
                 offsetof(struct _Py_DebugOffsets_315, member))
/* A member that 3.13 does not have. */
#define DEBUG_OFFSET_314(member) \
    debug_offset(0, offsetof(struct _Py_DebugOffsets_314, member), \
                 offsetof(struct _Py_DebugOffsets_315, member))
static inline uint64_t debug_offset(size_t in_313, size_t in_314, size_t in_315)
{
    size_t at = py.minor == 13 ? in_313 : py.minor == 14 ? in_314 : in_315;
    return py.has_debug_offsets ? *(const uint64_t *)(py.runtime + at) : UINT64_MAX;
}

/* The offset, if it is that of one of the first `words` words but the first one; else 0. */
static inline unsigned word_offset(uint64_t offset, unsigned words)
{
    return offset % sizeof(void *) == 0 && offset / sizeof(void *) < words ? (unsigned)offset : 0;
}

/* Finds CPython's functions in this process.  library: the loaded file that has them, which then
 * stays loaded; NULL: searches the process.  Any thread, no GIL.  False: the shim does not support
 * this CPython, for the reason *why; *why is NULL in a process without Python. */
bool cpython_load_symbols(const char *library, const char **why);

/* Whether the path's file name is that of a CPython library. */
bool is_libpython(const char *path);

/* NULL: CPython exports no such symbol.  Any thread. */
void *cpython_symbol(const char *name);

/* ---------------------------------------------------------------- helpers, GIL held */

/* The calling thread's interpreter. */
PyInterpreterState *cpython_interpreter(void);
PyInterpreterState *cpython_main_interpreter(void);
/* By struct PyThreadState_head, which is not compared here. */
PyInterpreterState *cpython_interpreter_of(PyThreadState *state);

/* Whether the calling thread's interpreter is the main one, which lives as long as CPython is
 * initialised. */
bool cpython_is_main(void);

/* Whether the functions of atexit have run. */
bool cpython_is_finalizing(void);

/* Whether the main interpreter exists, and does not end.  It may not be initialised yet.  Any
 * thread, with or without the GIL. */
bool cpython_runs_or_starts(void);

/* A module of sys.modules; an attribute of sys.  A new reference; NULL: none, and no exception is
 * set.  No exception in flight. */
PyObject *cpython_sys_module(const char *name);
PyObject *cpython_sys_attr(const char *name);

/* Borrowed from the object. */
PyObject *cpython_type(PyObject *object);

/* A new reference to None, for callbacks to return. */
PyObject *cpython_none(void);

/* Drops the result of a call, or its exception if it failed: result is NULL.  Returns whether the
 * call succeeded.  No other exception in flight. */
bool cpython_ignore_result(PyObject *result);

/* Drops the reference *object, unless it is NULL, and sets it to NULL. */
void cpython_clear_ref(PyObject **object);

/* Repeats a call that may run audit hooks of the program, up to three times:
 *
 *     struct cpython_retries attempts = {0};
 *     do done = ...; while (cpython_retry(&attempts, done));
 *
 * A hook that refuses the call refuses each attempt.  The last exception is dropped, as is a
 * MemoryError of CPython's.  But an exception may come from elsewhere while a hook runs.  A signal
 * handler of the program may raise one (KeyboardInterrupt), or another thread may have set one for
 * this thread (PyThreadState_SetAsyncExc()).  An exception of Python code is taken for one of these
 * two if the next attempt succeeds.  It is raised again soon, on the main thread or on the thread
 * for which it was set. */
struct cpython_retries {
    int failed;
    PyObject *type, *value, *traceback; /* of the latest that failed */
};
bool cpython_retry(struct cpython_retries *attempts, bool done);

/* An attribute that is an int; 0: none.  No exception in flight. */
long cpython_int_attr(PyObject *object, const char *name);

#endif
