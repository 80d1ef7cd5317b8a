/*
 * Module definitions (PEP 489).  They are part of CPython's stable ABI, except for the object
 * header before them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "core/core.h"
#include "cpython/code.h"
#include "cpython/daemons.h"
#include "cpython/offsets.h"
#include "hooks/hook.h"
#include "hooks/rearm.h"
#include "markers/detach.h"
#include "markers/enabled.h"
#include "markers/filter.h"
#include "os/glibc.h"
#include "os/process.h"
#include "sums/sums.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- module */

/* Include/moduleobject.h */
enum { MOD_EXEC = 2, MOD_MULTIPLE_INTERPRETERS = 3, MOD_GIL = 4 };
static void *const PER_INTERPRETER_GIL = (void *)2;
static void *const GIL_NOT_USED = (void *)1;

struct slot {
    int slot;
    void *value;
};

/* PyModuleDef, after PyObject_HEAD. */
struct definition {
    void *init;
    Py_ssize_t index;
    PyObject *copy;
    const char *name, *doc;
    Py_ssize_t size;
    PyMethodDef *methods;
    struct slot *slots;
    void *traverse, *clear, *free;
};

struct object {
    struct PyObject_head head;
    struct definition content;
};

/* ---------------------------------------------------------------- CPython's modules */

bool module_add_exec(PyObject *module, int (*start)(PyObject *))
{
    void *type = cpython_symbol("PyModuleDef_Type");
    struct object *object = module ? ob_base(module) : NULL;
    if (!object || !type || object->head.ob_type != type)
        return false;
    struct definition *definition = &object->content;
    if (!definition->slots)
        return false;
    size_t slots = 0;
    for (; definition->slots[slots].slot; slots++)
        if (definition->slots[slots].value == (void *)start)
            return true;
    /* Never freed: the definition is the interpreter's own, and static. */
    struct slot *more = calloc(slots + 2, sizeof *more);
    if (!more)
        return false;
    memcpy(more, definition->slots, slots * sizeof *more);
    more[slots] = (struct slot){MOD_EXEC, (void *)start};
    definition->slots = more;
    return true;
}

/* ---------------------------------------------------------------- ours */

static void *definition_for_this_cpython(int (*exec)(PyObject *))
{
    static struct slot slots[4];
    slots[0] = (struct slot){MOD_EXEC, (void *)exec};
    if (py.minor >= 12)
        slots[1] = (struct slot){MOD_MULTIPLE_INTERPRETERS, PER_INTERPRETER_GIL};
    if (py.minor >= 13)
        slots[2] = (struct slot){MOD_GIL, GIL_NOT_USED};

#define CONTENT \
    { \
        .name = "python_stap", .doc = "The markers of systemtap-cpython.", .slots = slots \
    }
    static struct object plain = {{.ob_refcnt = 1}, CONTENT};
    static struct {
        struct PyObject_head_trace_refs head;
        struct definition content;
    } traced = {{.head = {.ob_refcnt = 1}}, CONTENT};
    static struct {
        struct PyObject_head_nogil head;
        struct definition content;
    } free_threaded = {{.ob_flags = FLAG_STATICALLY_ALLOCATED, .ob_ref_local = UINT32_MAX},
                       CONTENT};
#undef CONTENT
    if (py.free_threaded)
        return &free_threaded;
    if (cpython_symbol("PyModule_Create2TraceRefs"))
        return &traced;
    return &plain;
}

PyObject *module_create(int (*exec)(PyObject *))
{
    PyObject *(*init)(void *) = (PyObject * (*)(void *)) cpython_symbol("PyModuleDef_Init");
    return init ? init(definition_for_this_cpython(exec)) : NULL;
}

/* ---------------------------------------------------------------- setup */

/*
 * Sets the watcher up when the main interpreter starts, or in one that runs already, and ends the
 * shim's work when atexit calls.
 */

/* Called by atexit, GIL held. */
static PyObject *at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    rearm_stop();
    watcher_stop_at_exit();
    watcher_allowed = false;
    sums_flush();
    daemons_at_exit();
    return cpython_none();
}

static PyMethodDef at_exit_def = {"systemtap_at_exit", at_exit, METH_NOARGS, NULL};

static bool register_at_exit(void)
{
    PyObject *atexit = py.PyImport_ImportModuleLevel("atexit", NULL, NULL, NULL, 0);
    PyObject *callback = atexit ? py.PyCFunction_NewEx(&at_exit_def, NULL, NULL) : NULL;
    bool done = callback &&
                cpython_ignore_result(py.PyObject_CallMethod(atexit, "register", "O", callback));
    if (callback)
        py.Py_DecRef(callback);
    if (atexit)
        py.Py_DecRef(atexit);
    return done;
}

void setup_main_interpreter(void)
{
    if (watcher_allowed)
        return;
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    offsets_forget_tls();
    code_reset_pending();
    offsets_check_current();
    if (py.minor == 6) /* it has no GIL until one is asked for */
        py.PyEval_InitThreads();
    main_thread_remember();
    exit_flush_find();
    watcher_allowed =
        fork_register_libc() && register_at_exit() && (py.minor == 6 || fork_register_python());
    py.PyErr_Clear();
    py.PyErr_Restore(type, value, traceback);
    if (watcher_allowed) {
        rearm_start();
        watcher_start();
    } else
        debug_log("no atexit or no register_at_fork: a tracer that attaches later is not noticed");
}

static int attach_pending(void *unused)
{
    (void)unused;
    attach_interpreter();
    return 0;
}

/* dlopen() may have been called with the GIL or without; and the thread that holds the GIL may wait
 * for a lock of the dynamic linker, which this one holds.  So another thread asks for it. */
void attach_running_python(void)
{
    /* In a 3.6 that has had one thread only, there is no GIL to wait for. */
    if (py.PyEval_ThreadsInitialized && !py.PyEval_ThreadsInitialized()) {
        py.Py_AddPendingCall(attach_pending, NULL);
        return;
    }
    if (fork_register_libc())
        watcher_start_attaching();
}

bool setup_attach_again(void)
{
    bool ended;
    if (!detach_undo(&ended))
        return false;
    if (ended)
        attach_running_python();
    return true;
}

/* ---------------------------------------------------------------- loader */

/*
 * The loader: runs when the library is loaded, finds out whether the process is a CPython, and gets
 * the hooks into each of its interpreters.
 *
 * Preloaded, it runs before Py_Initialize(): nothing may be called yet, and there is no callback
 * for the moment from which on it may.  But each interpreter, as it starts, initialises built-in
 * modules through PyImport_Inittab, which programs may change before Py_Initialize().  The loader
 * puts a copy in its place in which two modules are initialised through the shim.  The first is
 * marshal, which importlib needs before it can load the first file: hooks can be set from there on,
 * in each interpreter.  The second is _codecs, after marshal and before the program's first line:
 * the watcher is set up there.  So a dormant shim costs the program nothing more than a thread that
 * sleeps.
 *
 * Loaded into a running CPython, by dlopen() or an import, it begins with the main interpreter.
 */

/* ---------------------------------------------------------------- modules as a starting signal */

static PyObject *(*marshal_init)(void);
static PyObject *(*codecs_init)(void);

/* GIL held, in the interpreter that starts; or later, if a program imports marshal anew. */
static int start_interpreter(PyObject *unused)
{
    (void)unused;
    /* Not posix, which 3.9.2 imports before marshal. */
    PyObject *encodings = cpython_sys_module("encodings");
    if (!encodings && py.PySys_GetObject("modules"))
        arm_interpreter_started(true);
    cpython_clear_ref(&encodings);
    return 0;
}

/* GIL held.  From 3.13 on it is called in the main interpreter for others too, which then run only
 * the definition's slots (Python/import.c, import_run_extension). */
static PyObject *init_marshal(void)
{
    PyObject *module = marshal_init();
    if (py.minor < 13)
        start_interpreter(NULL);
    else if (!module_add_exec(module, start_interpreter))
        debug_log("no markers in subinterpreters: the marshal module is not as in the release of "
                  "CPython 3.13");
    return module;
}

/* GIL held. */
static PyObject *init_codecs(void)
{
    PyObject *module = codecs_init();
    setup_main_interpreter();
    return module;
}

/* Any thread, no GIL: CPython is not initialised. */
static void wait_for_interpreters(void)
{
    size_t modules = 0;
    while ((*py.inittab)[modules].name)
        modules++;
    /* Never freed: CPython reads it at each Py_Initialize(). */
    struct _inittab *table = calloc(modules + 1, sizeof *table);
    if (!table)
        return;
    memcpy(table, *py.inittab, modules * sizeof *table);
    for (struct _inittab *module = table; module->name; module++) {
        if (strcmp(module->name, "marshal") == 0) {
            marshal_init = module->initfunc;
            module->initfunc = init_marshal;
        } else if (strcmp(module->name, "_codecs") == 0) {
            codecs_init = module->initfunc;
            module->initfunc = init_codecs;
        }
    }
    *py.inittab = table;
}

/* ---------------------------------------------------------------- a running CPython */

/* GIL held.  Each part of it does nothing if that is done already. */
static void attach_here(void)
{
    if (cpython_is_finalizing()) /* nothing would end what began now */
        return;
    arm_interpreter_started(false);
    rearm_include_unseen();
    if (cpython_is_main())
        setup_main_interpreter();
}

void attach_interpreter(void)
{
    if (detach_is_asked())
        return;
    attach_here();
    if (watcher_allowed && cpython_is_main()) /* it was before the shim was detached */
        watcher_start();
}

/* ---------------------------------------------------------------- the process */

/* PYTHON_STAP=auto (or unset): CPython's own markers while a tracer probes them, the shim's for the
 * rest; all: the shim's; off: nothing.  Ignored in a setuid program. */
static enum { MODE_AUTO, MODE_ALL, MODE_OFF } chosen_mode(void)
{
    const char *word = secure_getenv("PYTHON_STAP");
    if (!word || !*word || strcmp(word, "auto") == 0)
        return MODE_AUTO;
    if (strcmp(word, "all") == 0)
        return MODE_ALL;
    if (strcmp(word, "off") != 0)
        debug_log("PYTHON_STAP=%s is none of auto, all, off: off", word);
    return MODE_OFF;
}

/* Imports the library as python_stap. */
__attribute__((visibility("default"))) PyObject *PyInit_python_stap(void);
/* This file's, where that may be another file's that was loaded first.  A second name, as binutils
 * before 2.39 can't link the address of a protected function. */
__attribute__((visibility("hidden"), alias("PyInit_python_stap"))) PyObject *own_init(void);

/* By the linker: where the library's first mapping starts. */
extern const char __ehdr_start __attribute__((visibility("hidden")));

/* What stap-python attach has called where the shim is detached, by ptrace() as it has dlopen()
 * called, NULL if it is not detached; and by sys.remote_exec(), as the module python_stap_attach.
 */
__attribute__((visibility("protected"))) void *python_stap_attach(void);
__attribute__((visibility("protected"))) PyObject *PyInit_python_stap_attach(void);

/* Another file of the shim is in this process: one is enough. */
static bool is_second(void)
{
    void *first = dlsym(RTLD_DEFAULT, "PyInit_python_stap");
    return first && first != (void *)own_init;
}

/* The shim supports this CPython, and is or will be in it. */
static bool loaded;

/* What stap-python attach has called where the shim is detached, by ptrace() as it has dlopen()
 * called.  NULL: it is not detached.  Any thread, with the GIL or without. */
static void *attach_again(void)
{
    return setup_attach_again() ? &loaded : NULL;
}

/* library: as cpython_load_symbols() takes it. */
static void start_shim(const char *library)
{
    const char *debug = secure_getenv("PYTHON_STAP_DEBUG");
    debug_on = debug && *debug;
    const char *why;
    if (!glibc_find())
        return;
    if (!cpython_load_symbols(library, &why)) {
        if (why)
            debug_log("%s", why);
        return;
    }
    if (!fork_supported()) {
        debug_log("the C library is not glibc");
        return;
    }
    int mode = chosen_mode();
    if (mode == MODE_OFF)
        return;
    if (is_second()) {
        debug_log("another libpython-stap is in this process: this one does nothing");
        return;
    }
    fire_native_too = mode == MODE_ALL;
    loaded = true;
    markers_choose_sites();
    offsets_publish();
    filter_map_page();
    detach_publish((uint32_t)((uintptr_t)attach_again - (uintptr_t)&__ehdr_start));
    if (py.Py_IsInitialized())
        attach_running_python();
    else
        wait_for_interpreters();
}

static bool loaded_once;

/* Called by the dynamic linker, under its lock; no GIL, or the caller's of dlopen(). */
__attribute__((constructor)) static void on_load(void)
{
    start_shim(NULL);
    loaded_once = true;
}

static void find_library(const void *within)
{
    Dl_info library;
    if (!loaded && dladdr(within, &library) && is_libpython(library.dli_fname))
        start_shim(library.dli_fname);
}

/* The C library's start files have each library that is loaded call this first of all (crti.S,
 * _init), if a library defines it: it was made for profilers.  So it tells of a libpython that a
 * program loads while it runs, by dlopen(), as uwsgi and Apache do with their Python plugins: under
 * ld.so's lock, before that library's own constructors, and long before Py_Initialize().  The
 * libraries that a program starts with call it before a sanitizer has begun. */
void __gmon_start__(void)
    __attribute__((visibility("default"), no_sanitize("address", "undefined")));
void __gmon_start__(void)
{
    if (loaded_once)
        find_library(__builtin_return_address(0));
}

/* ---------------------------------------------------------------- the import */

/* GIL held, no exception in flight. */
static int exec_module(PyObject *module)
{
    (void)module;
    if (!loaded) /* perhaps preloaded into a program that found its Python only later */
        start_shim(NULL);
    if (loaded)
        attach_here();
    return 0;
}

/* Makes the library importable, for a .pth file:
 *
 *   import python_stap     loads the shim, where python_stap.so is a link to it
 *
 * It can be imported wherever a Python runs, also where the shim does nothing. */
PyObject *PyInit_python_stap(void)
{
    const char *why;
    if (!py.Py_GetVersion && glibc_find()) /* preloaded into a program that found its Python late */
        cpython_load_symbols(NULL, &why);
    return module_create(exec_module);
}

/* GIL held, no exception in flight. */
PyObject *PyInit_python_stap_attach(void)
{
    attach_again();
    return module_create(exec_module);
}
