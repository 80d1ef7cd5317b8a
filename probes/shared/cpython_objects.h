/*
 * CPython's structs of objects, generators and tasks, version by version.  The tapset reads all of
 * them, and the shim some.  Structs that the tapset does not read are in cpython_structs.h.  The
 * tapset's code runs in the kernel, so this file includes no header of the C library.
 *
 * The number in a name is the first CPython that has the struct so: struct PyUnicodeObject_312 is
 * that of 3.12 and later.  All are those of 64-bit programs.  In a free-threaded build an object
 * has offsets_page.ob_base_offset bytes before its struct.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_CPYTHON_OBJECTS_H
#define SHARED_CPYTHON_OBJECTS_H

#include "shared/versions.h"

/* States that `what` has been compared with CPython 3.minor.  A newer CPYTHON_NEWEST_MINOR does not
 * compile before all statements are updated: CONTRIBUTING.md, "Support CPython 3.16". */
#define COMPARED_WITH(what, minor) \
    _Static_assert((minor) >= CPYTHON_NEWEST_MINOR, \
                   "compare with the newest CPython, and adapt: " what)

typedef struct _object PyObject;
typedef ssize_t Py_ssize_t;

/* PyObject and PyVarObject.  Up to 3.12 a build with Py_TRACE_REFS has another head: such a build
 * has sys.getobjects().  https://github.com/python/cpython/blob/v3.6.0/Include/object.h */
struct PyObject_head {
    Py_ssize_t ob_refcnt;
    PyObject *ob_type;
};
struct PyVarObject_head {
    struct PyObject_head ob_base;
    Py_ssize_t ob_size;
};
COMPARED_WITH("PyObject, PyVarObject (Include/object.h)", 15);

/* ---------------------------------------------------------------- types */

/* Declared up to tp_mro.  3.8+: Include/cpython/object.h.
 * https://github.com/python/cpython/blob/v3.6.0/Include/object.h */
struct PyTypeObject {
    struct PyVarObject_head head;
    const char *tp_name;
    Py_ssize_t tp_basicsize, tp_itemsize;
    void *tp_dealloc;
    Py_ssize_t tp_vectorcall_offset; /* up to 3.7 tp_print, a function */
    void *tp_getattr, *tp_setattr, *tp_as_async, *tp_repr;
    void *tp_as_number, *tp_as_sequence, *tp_as_mapping;
    void *tp_hash, *tp_call, *tp_str, *tp_getattro, *tp_setattro, *tp_as_buffer;
    unsigned long tp_flags;
    const char *tp_doc;
    void *tp_traverse, *tp_clear, *tp_richcompare;
    Py_ssize_t tp_weaklistoffset;
    void *tp_iter, *tp_iternext, *tp_methods, *tp_members, *tp_getset;
    PyObject *tp_base, *tp_dict; /* tp_dict: NULL in built-in types from 3.12 on */
    void *tp_descr_get, *tp_descr_set;
    Py_ssize_t tp_dictoffset; /* negative: from the end of an object with items */
    void *tp_init, *tp_alloc, *tp_new, *tp_free, *tp_is_gc;
    PyObject *tp_bases, *tp_mro;
};

/* tp_flags: Include/object.h. */
enum {
    Py_TPFLAGS_STATIC_BUILTIN = 1 << 1, /* _Py_TPFLAGS_STATIC_BUILTIN, 3.12+ */
    Py_TPFLAGS_INLINE_VALUES = 1 << 2,  /* 3.13+ */
    Py_TPFLAGS_MANAGED_DICT = 1 << 4,   /* 3.11+ */
    Py_TPFLAGS_HEAPTYPE = 1 << 9,       /* made by a class statement or by PyType_FromSpec() */
    Py_TPFLAGS_HAVE_GC = 1 << 14,
    Py_TPFLAGS_LONG_SUBCLASS = 1 << 24,
    Py_TPFLAGS_LIST_SUBCLASS = 1 << 25,
    Py_TPFLAGS_TUPLE_SUBCLASS = 1 << 26,
    Py_TPFLAGS_BYTES_SUBCLASS = 1 << 27,
    Py_TPFLAGS_UNICODE_SUBCLASS = 1 << 28,
    Py_TPFLAGS_DICT_SUBCLASS = 1 << 29,
    Py_TPFLAGS_BASE_EXC_SUBCLASS = 1 << 30,
};
#define Py_TPFLAGS_TYPE_SUBCLASS (1UL << 31)
COMPARED_WITH("PyTypeObject, Py_TPFLAGS (Include/cpython/object.h, Include/object.h)", 15);

/* https://github.com/python/cpython/blob/v3.6.0/Include/descrobject.h */
struct PyMemberDescrObject {
    struct PyObject_head head;
    PyObject *d_type, *d_name, *d_qualname;
    struct PyMemberDef *d_member;
};
/* 3.12+: Include/descrobject.h.
 * https://github.com/python/cpython/blob/v3.6.0/Include/structmember.h */
struct PyMemberDef {
    const char *name;
    int type;
    Py_ssize_t offset;
};
enum { Py_T_OBJECT = 6, Py_T_OBJECT_EX = 16 }; /* _Py_T_OBJECT; up to 3.11 T_OBJECT, T_OBJECT_EX */
COMPARED_WITH("PyMemberDescrObject, PyMemberDef (Include/descrobject.h)", 15);

/* ---------------------------------------------------------------- str, bytes, int */

/* The characters follow PyASCIIObject or PyCompactUnicodeObject, or data points to them.  Up
 * to 3.11 these structs have a wstr.
 * https://github.com/python/cpython/blob/v3.12.0/Include/cpython/unicodeobject.h */
struct PyASCIIObject {
    struct PyObject_head head;
    Py_ssize_t length, hash; /* hash: -1 until it is first computed */
    uint32_t state, padding;
};
struct PyCompactUnicodeObject_312 {
    struct PyASCIIObject ascii;
    Py_ssize_t utf8_length;
    char *utf8;
};
struct PyUnicodeObject_312 {
    struct PyCompactUnicodeObject_312 compact;
    void *data;
};
/* https://github.com/python/cpython/blob/v3.6.0/Include/unicodeobject.h */
struct PyASCIIObject_36 {
    struct PyASCIIObject ascii;
    void *wstr;
};
struct PyCompactUnicodeObject_36 {
    struct PyASCIIObject_36 ascii;
    Py_ssize_t utf8_length;
    char *utf8;
    Py_ssize_t wstr_length;
};
struct PyUnicodeObject_36 {
    struct PyCompactUnicodeObject_36 compact;
    void *data;
};

/* Bit fields of PyASCIIObject.state: the number of bytes of a character (1, 2 or 4), and flags.  On
 * a big-endian machine they begin at the highest bit. */
enum {
    UNICODE_KIND_MASK = 7,
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    UNICODE_KIND_SHIFT = 27,
    UNICODE_COMPACT = 1 << 26,
    UNICODE_ASCII = 1 << 25,
    UNICODE_READY = 1 << 24, /* up to 3.11 */
#else
    UNICODE_KIND_SHIFT = 2,
    UNICODE_COMPACT = 1 << 5,
    UNICODE_ASCII = 1 << 6,
    UNICODE_READY = 1 << 7, /* up to 3.11 */
#endif
    /* In a free-threaded build these fields begin this many bits later: the field before them,
     * interned, has eight bits there and not two. */
    UNICODE_NOGIL_SHIFT = 6,
};
COMPARED_WITH("PyUnicodeObject and its state (Include/cpython/unicodeobject.h)", 15);

/* Declared up to its bytes.  3.9+: Include/cpython/bytesobject.h.
 * https://github.com/python/cpython/blob/v3.6.0/Include/bytesobject.h */
struct PyBytesObject {
    struct PyVarObject_head head;
    Py_ssize_t ob_shash;
};
/* 3.9+: Include/cpython/bytearrayobject.h.
 * https://github.com/python/cpython/blob/v3.6.0/Include/bytearrayobject.h */
struct PyByteArrayObject {
    struct PyVarObject_head head;
    Py_ssize_t ob_alloc;
    char *ob_bytes, *ob_start;
};
COMPARED_WITH("PyBytesObject, PyByteArrayObject (Include/cpython)", 15);

/* An int has digits of 30 bits behind a struct PyVarObject_head.  Up to 3.11 ob_size is negative in
 * a negative int.  From 3.12 on lv_tag is in its place; the lowest bits of lv_tag are flags, two of
 * them the sign.  Include/longintrepr.h (3.6-3.10), Include/cpython/longintrepr.h (3.11+). */
enum {
    PyLong_SHIFT = 30,
    SIGN_MASK = 3,
    SIGN_NEGATIVE = 2,
    NON_SIZE_BITS = 3,
};
COMPARED_WITH("_PyLongValue, lv_tag (Include/cpython/longintrepr.h)", 15);

/* ---------------------------------------------------------------- other built-in objects */

/* Some objects need no struct here, as their content follows a struct PyObject_head directly: the
 * cell (Include/cpython/cellobject.h), range and slice (Objects/rangeobject.c,
 * Include/sliceobject.h), the method with function and self (Include/cpython/classobject.h), the
 * module with its dict (Include/internal/pycore_moduleobject.h), the exception with dict and args
 * (Include/cpython/pyerrors.h), the weak reference (Include/cpython/weakrefobject.h), coroutine
 * wrappers (Objects/genobject.c), and complex with two doubles (Include/cpython/complexobject.h).
 * In a list the address of the items follows a struct PyVarObject_head
 * (Include/cpython/listobject.h). */
COMPARED_WITH("objects without a struct in shared/cpython_objects.h", 15);

/* An entry of the table is a key and its hash.  3.11+: Include/cpython/setobject.h.
 * https://github.com/python/cpython/blob/v3.6.0/Include/setobject.h */
struct PySetObject {
    struct PyObject_head head;
    Py_ssize_t fill, used, mask;
    void *table;
};
COMPARED_WITH("PySetObject (Include/cpython/setobject.h)", 15);

/* lockobject and, with an owner, rlockobject; lock_lock is the address of a sem_t.  In a later
 * 3.13 it is a PyMutex in a lockobject, of one byte, which no semaphore's address equals, and
 * from 3.14 on in both. https://github.com/python/cpython/blob/v3.6.0/Modules/_threadmodule.c */
struct lockobject_36 {
    struct PyObject_head head;
    unsigned long lock_lock, rlock_owner;
};
enum { CPYTHON_RLOCK_IS_SEMAPHORE = 13 };
COMPARED_WITH("CPYTHON_RLOCK_IS_SEMAPHORE (Modules/_threadmodule.c: rlockobject)", 15);

/* Flags in co_flags: Include/code.h (3.6-3.8), Include/cpython/code.h (3.9+).  Kinds of variables
 * in co_localspluskinds: Include/internal/pycore_code.h (3.11+). */
enum { CO_OPTIMIZED = 1, CO_VARARGS = 4, CO_VARKEYWORDS = 8 };
enum { CO_FAST_CELL = 0x40, CO_FAST_FREE = 0x80 };
COMPARED_WITH("CO_ flags, CO_FAST_ kinds (Include/cpython/code.h, internal/pycore_code.h)", 15);

/* In PyCodeObject up to 3.10, from co_code, a bytes with the instructions, to co_filename. */
enum { CO_CODE_BEFORE_FILENAME = 7 * sizeof(void *) };

/* Words before an instance with Py_TPFLAGS_MANAGED_DICT.  Directly before it are two words of the
 * garbage collector, but not in a free-threaded build.  The address of its dict is before these.
 * In 3.11 the address of its values is before that of its dict
 * (Include/internal/pycore_object.h). */
enum {
    MANAGED_DICT_BEFORE = 3 * sizeof(void *),
    MANAGED_DICT_BEFORE_NOGIL = sizeof(void *),
    MANAGED_VALUES_BEFORE_311 = 4 * sizeof(void *),
};
COMPARED_WITH("managed dicts (Include/internal/pycore_object.h)", 15);

/* In a reference on a frame's stack the lowest bits are flags, 3.14+ (Include/internal/
 * pycore_stackref.h). */
#define STACKREF_TAGS 7UL
COMPARED_WITH("_PyStackRef (Include/internal/pycore_stackref.h)", 15);

/* ---------------------------------------------------------------- standard library's objects */

/* These, and PyDateTime_Date.  data: year, month, day, hour, minute, second, microsecond, fold,
 * those that the type has.  https://github.com/python/cpython/blob/v3.6.0/Include/datetime.h */
struct PyDateTime_DateTime {
    struct PyObject_head head;
    Py_ssize_t hashcode;
    uint8_t hastzinfo, data[15];
    PyObject *tzinfo;
};
struct PyDateTime_Time {
    struct PyObject_head head;
    Py_ssize_t hashcode;
    uint8_t hastzinfo, data[7];
    PyObject *tzinfo;
};
struct PyDateTime_Delta {
    struct PyObject_head head;
    Py_ssize_t hashcode;
    int days, seconds, microseconds;
};
/* https://github.com/python/cpython/blob/v3.6.0/Modules/_datetimemodule.c */
struct PyDateTime_TimeZone {
    struct PyObject_head head;
    PyObject *offset, *name; /* offset: a timedelta; name: NULL if none was given */
};
/* The first version in which repr() of a timedelta names its parts (Modules/_datetimemodule.c:
 * delta_repr()). */
enum { TIMEDELTA_NAMES_FIRST_MINOR = 7 };
COMPARED_WITH("datetime's objects (Include/datetime.h, Modules/_datetimemodule.c)", 15);

/* With libmpdec's mpd_t (mpdecimal.h), whose words have 19 digits each, the lowest word first.
 * https://github.com/python/cpython/blob/v3.6.0/Modules/_decimal/_decimal.c */
struct PyDecObject {
    struct PyObject_head head;
    Py_ssize_t hash;
    uint8_t flags, padding[7];
    Py_ssize_t exp, digits, len, alloc;
    void *data;
};
enum {
    MPD_NEG = 1,
    MPD_INF = 2,
    MPD_NAN = 4,
    MPD_SNAN = 8,
    MPD_RDIGITS = 19,
};
COMPARED_WITH("PyDecObject, mpd_t (Modules/_decimal/_decimal.c)", 15);

/* ---------------------------------------------------------------- generators */

/* PyGenObject, PyCoroObject, PyAsyncGenObject: Include/genobject.h (3.6-3.10), Include/cpython/
 * genobject.h (3.11+), Include/internal/pycore_interpframe_structs.h (3.14+).  Up to 3.10 the head
 * is followed by gi_frame, which points to a PyFrameObject.  From 3.11 on the object ends with the
 * frame itself, gi_iframe, of which the type's __basicsize__ counts all but the variables.
 * gi_frame_state is before gi_iframe. */
enum { GI_FRAME_OFFSET = sizeof(struct PyObject_head), GI_FRAME_STATE_BEFORE_IFRAME = 5 };

/* How a frame shows the top of its value stack.  The object that its generator awaits is
 * awaited_before_top words before the top. */
enum stack_top_format {
    STACK_TOP_POINTER,      /* up to 3.9: f_stacktop; NULL while the frame runs */
    STACK_TOP_DEPTH,        /* 3.10: f_stackdepth, an int, from f_valuestack on */
    STACK_TOP_COUNT,        /* 3.11-3.13: stacktop, an int, counts variables and stack */
    STACK_TOP_STACKPOINTER, /* 3.14+: stackpointer, behind the last object */
};
/* What shows that a generator awaits an object. */
enum awaits_format {
    AWAITS_BY_OPCODE, /* up to 3.10: the next instruction is YIELD_FROM: _PyGen_yf() */
    AWAITS_BY_RESUME, /* 3.11, 3.12: by the argument of RESUME, the next: 2 yield from, 3 await */
    AWAITS_BY_STATE,  /* 3.13+: gi_frame_state */
};
enum { OPCODE_YIELD_FROM_36 = 72, RESUME_OPARG_LOCATION_MASK = 3, RESUME_AFTER_YIELD_FROM = 2 };

struct generator_offsets {
    enum stack_top_format stack_top_format;
    enum awaits_format awaits_format;
    /* In a frame: f_stacktop, f_stackdepth, stacktop or stackpointer; in 3.10 also f_valuestack and
     * f_state. */
    int stack_top, f_valuestack, f_state;
    /* Values of the state (Include/internal/pycore_frame.h).  executing: the generator runs.  A
     * value above cleared_above: it has ended.  suspended, suspended_locked: it is suspended, and
     * may await. */
    int executing, cleared_above, suspended, suspended_locked;
    int awaited_before_top; /* the awaited object is so many words before the top */
};
static const struct generator_offsets generator_offsets[] = {
    [8] = {STACK_TOP_POINTER, AWAITS_BY_OPCODE, 72, 0, 0, 0, 0, 0, 0, 1},
    [9] = {STACK_TOP_POINTER, AWAITS_BY_OPCODE, 72, 0, 0, 0, 0, 0, 0, 1},
    [10] = {STACK_TOP_DEPTH, AWAITS_BY_OPCODE, 80, 64, 108, 0, 0, 0, 0, 1},
    [11] = {STACK_TOP_COUNT, AWAITS_BY_RESUME, 64, 0, 0, 0, 0, -1, -1, 1},
    [12] = {STACK_TOP_COUNT, AWAITS_BY_RESUME, 64, 0, 0, 0, 0, -1, -1, 1},
    [13] = {STACK_TOP_COUNT, AWAITS_BY_STATE, 64, 0, 0, 0, 0, -1, -1, 1},
    [14] = {STACK_TOP_STACKPOINTER, AWAITS_BY_STATE, 64, 0, 0, 0, 0, -1, -1, 1},
    [15] = {STACK_TOP_STACKPOINTER, AWAITS_BY_STATE, 64, 0, 0, 4, 4, 2, 3, 2},
};
COMPARED_WITH("generator_offsets[] (Objects/genobject.c, internal/pycore_frame.h)", 15);

/* ---------------------------------------------------------------- lazy imports */

/* Lazy imports (PEP 810): the instructions that resolve one as they load a name or an attribute
 * (Python/bytecodes.c, Objects/moduleobject.c), by Include/opcode_ids.h.  None has another form
 * here: CPython specialises an instruction only for a name that is resolved. */
enum {
    LAZY_IMPORTS_OLDEST_MINOR = 15,
    OPCODE_IMPORT_FROM_315 = 71,
    OPCODE_LOAD_ATTR_315 = 79,
    OPCODE_LOAD_FROM_DICT_OR_GLOBALS_315 = 90,
    OPCODE_LOAD_GLOBAL_315 = 91,
    OPCODE_LOAD_NAME_315 = 92,
};
/* The instruction by which each frame starts or resumes, and its form with PY_START or PY_RESUME.
 */
enum { OPCODE_RESUME_315 = 128, OPCODE_INSTRUMENTED_RESUME_315 = 244 };
COMPARED_WITH("OPCODE_*_315 (Include/opcode_ids.h)", 15);

/* ---------------------------------------------------------------- asyncio */

/* FutureObj and TaskObj: Modules/_asynciomodule.c.  The type's __basicsize__ selects the row.
 * task_coro and task_name follow task_fut_waiter, the future for which the task waits. */
struct future_offsets {
    int first, last; /* CPython 3.first to 3.last */
    int task_size, future_size, fut_state, task_fut_waiter;
};
enum { FUTURE_OFFSETS_LAST_MINOR = 15 };
static const struct future_offsets future_offsets[] = {
    {8, 8, 144, 104, 72, 104},
    {9, 10, 184, 144, 80, 144},
    {9, 10, 192, 152, 88, 152},
    {11, 12, 176, 128, 88, 128},
    {13, 13, 144, 104, 96, 112},
    {14, FUTURE_OFFSETS_LAST_MINOR, 168, 112, 104, 120},
    /* free-threaded: with the id of the thread that made the task */
    {14, FUTURE_OFFSETS_LAST_MINOR, 176, 112, 104, 120},
};
enum { FUTURE_PENDING = 0 };       /* a value of fut_state */
enum { ASYNCIO_OLDEST_MINOR = 8 }; /* the oldest version in these tables */
COMPARED_WITH("future_offsets[] (Modules/_asynciomodule.c)", 15);

/* Where CPython keeps the tasks that do not run. */
enum tasks_format {
    TASKS_ALL,       /* up to 3.11: asyncio.tasks._all_tasks, a WeakSet */
    TASKS_SCHEDULED, /* 3.12, 3.13: _scheduled_tasks, a WeakSet, and _eager_tasks, a set */
    TASKS_LINKED,    /* 3.14+: in lists of each thread state and interpreter */
};
/* In a PyThreadState: thread_id, up to 3.13 (Include/pystate.h, Include/cpython/pystate.h).  Where
 * the lists of 3.14+ are is in the offsets page. */
struct asyncio_offsets {
    enum tasks_format tasks_format;
    int thread_id;
    int task_node; /* in a TaskObj, 3.14+: its links in such a list */
};
static const struct asyncio_offsets asyncio_offsets[] = {
    [8] = {TASKS_ALL, 176, 0},        [9] = {TASKS_ALL, 176, 0},
    [10] = {TASKS_ALL, 176, 0},       [11] = {TASKS_ALL, 152, 0},
    [12] = {TASKS_SCHEDULED, 136, 0}, [13] = {TASKS_SCHEDULED, 152, 0},
    [14] = {TASKS_LINKED, 0, 152},    [15] = {TASKS_LINKED, 0, 152},
};
COMPARED_WITH("asyncio_offsets[] (Modules/_asynciomodule.c: TaskObj)", 15);

_Static_assert(sizeof generator_offsets / sizeof *generator_offsets == CPYTHON_NEWEST_MINOR + 1,
               "generator_offsets[] has a row for the newest CPython");
_Static_assert(FUTURE_OFFSETS_LAST_MINOR - CPYTHON_NEWEST_MINOR == 0,
               "future_offsets[] has a row for the newest CPython");
_Static_assert(sizeof asyncio_offsets / sizeof *asyncio_offsets == CPYTHON_NEWEST_MINOR + 1,
               "asyncio_offsets[] has a row for the newest CPython");

#endif
