/*
 * The loader: runs when the library is loaded, finds out whether the process is a CPython, and arms
 * each of its interpreters.  Functions called by the dynamic linker run under its lock; functions
 * called by CPython run with the GIL held.
 *
 * If the library is preloaded, the loader runs before Py_Initialize(), when it must not call
 * CPython yet.  CPython has no callback for the moment when it may.  But each interpreter that
 * starts initialises built-in modules through PyImport_Inittab, a table that programs may change
 * before Py_Initialize().  The loader replaces the table by a copy, in which two modules are
 * initialised through the shim:
 *   marshal  importlib needs it to load the first file: hooks can be set from there on, in each
 *            interpreter.
 *   _codecs  comes after marshal and before the program's first line: the watcher starts there.
 * So a dormant shim costs the program no more than a thread that sleeps.
 *
 * Loaded into a CPython that runs, by dlopen() or an import, the loader begins with the main
 * interpreter; into one that starts, at the latest once that is initialised.
 *
 * SPDX-License-Identifier: MIT
 */

#include "core/core.h"
#include "cpython/code.h"
#include "cpython/offsets.h"
#include "cpython/threads.h"
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

/* ---------------------------------------------------------------- module definitions (PEP 489) */

/* Part of CPython's stable ABI, except for the object header. */

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

/* ---------------------------------------------------------------- modules of the shim */

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

/* ---------------------------------------------------------------- the main interpreter */

/* at_exit() was called for the latest main interpreter.  Atomic: an interpreter with a GIL of its
 * own reads it too. */
static claim_flag has_ended;

/* If the main interpreter that starts, or is new to the shim, comes after Py_Finalize(): forgets
 * what the one before has left.  No other thread is in the shim: the threads of the one before have
 * ended, or hang, maybe with a lock of the shim's. */
static void forget_ended_interpreter(void)
{
    if (!has_ended || !cpython_is_main() || !interp_forget_ended())
        return;
    has_ended = false;
    code_reset_pending();
    offsets_forget_tls();
    sums_set_enabled(0);
}

/* Called by atexit, GIL held. */
static PyObject *at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    rearm_stop();
    watcher_stop_at_exit();
    watcher_allowed = false;
    memory_at_exit();
    sums_flush();
    daemons_at_exit();
    has_ended = true;
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
    arm_interpreter_started(false); /* not yet if this library was loaded after marshal */
    offsets_check_current();
    if (py.minor == 6) /* 3.6 has no GIL before this call */
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

/* The calling thread may have the GIL or not.  It must not wait for the GIL: in dlopen() it holds a
 * lock of the dynamic linker, for which the holder of the GIL may wait.  So the watcher waits
 * instead. */
void attach_running_python(void)
{
    /* In a 3.6 that has had one thread only, there is no GIL to wait for. */
    if (py.minor == 6 && !py.PyEval_ThreadsInitialized()) {
        py.Py_AddPendingCall(attach_pending, NULL);
        return;
    }
    if (!fork_defers_attach() && fork_register_libc())
        watcher_start_attaching();
}

bool setup_attach_again(void)
{
    bool ended = false, undone = detach_undo(&ended);
    if (!undone && detach_is_requested())
        return false;
    /* As in the child of a fork that came before attach_interpreter(). */
    bool lacks_watcher = watcher_is_missing() && !has_ended && cpython_runs_or_starts();
    if (ended || lacks_watcher)
        attach_running_python();
    return undone || lacks_watcher;
}

/* ---------------------------------------------------------------- the start of interpreters */

static PyObject *(*marshal_init)(void);
static PyObject *(*codecs_init)(void);

/* GIL held, in the interpreter that starts; later again if a program imports marshal anew. */
static int start_interpreter(PyObject *unused)
{
    (void)unused;
    /* Only a started interpreter has encodings.  Not posix, which 3.9.2 imports before marshal. */
    PyObject *encodings = cpython_sys_module("encodings");
    if (!encodings && py.PySys_GetObject("modules")) {
        forget_ended_interpreter();
        arm_interpreter_started(true);
    }
    cpython_clear_ref(&encodings);
    return 0;
}

/* GIL held.  From 3.13 on CPython calls this in the main interpreter also for the others, which
 * then run only the definition's slots (CPython 3.13 Python/import.c: import_run_extension()). */
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

/* GIL held.  If the table was replaced after the main interpreter had read it, a subinterpreter is
 * the first to come here: attach_interpreter() sets up the main one. */
static PyObject *init_codecs(void)
{
    PyObject *module = codecs_init();
    if (cpython_is_main())
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

void attach_interpreter(void)
{
    if (detach_is_requested() || cpython_is_finalizing()) /* after atexit nothing stops a watcher */
        return;
    forget_ended_interpreter();
    arm_interpreter_started(false);
    rearm_include_unseen();
    if (!cpython_is_main())
        return;
    if (watcher_allowed) /* set up before a detach */
        watcher_start();
    else
        setup_main_interpreter();
}

/* ---------------------------------------------------------------- the process */

/* PYTHON_STAP=auto (or unset): native markers while a tracer probes them, the shim's markers for
 * the rest; all: the shim's markers; off: nothing.  Ignored in a setuid program. */
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
/* PyInit_python_stap() of this file: the exported name may be bound to another file of the shim,
 * which was loaded first.  An alias, as binutils before 2.39 can't link the address of a protected
 * function. */
__attribute__((visibility("hidden"), alias("PyInit_python_stap"))) PyObject *own_init(void);

/* By the linker: where the library's first mapping starts. */
extern const char __ehdr_start __attribute__((visibility("hidden")));

/* Called by stap-python attach through sys.remote_exec(), as the import of python_stap_attach,
 * where the shim is detached or has no watcher. */
__attribute__((visibility("protected"))) PyObject *PyInit_python_stap_attach(void);

/* Whether another file of the shim was loaded into this process first. */
static bool is_second(void)
{
    void *first = dlsym(RTLD_DEFAULT, "PyInit_python_stap");
    return first && first != (void *)own_init;
}

/* The shim supports this CPython, and is active in it, or will be when CPython starts. */
static bool loaded;

/* Called by stap-python attach through ptrace(), as dlopen() is, where the shim is detached or has
 * no watcher.  NULL: that is not so, or the shim can't change it.  Any thread, with or without the
 * GIL. */
static void *attach_again(void)
{
    return setup_attach_again() ? &loaded : NULL;
}

/* library: as for cpython_load_symbols(). */
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
    if (!py.Py_IsInitialized())
        wait_for_interpreters();
    /* While CPython starts it may be too late for that: 3.12 and later have copied the table, and
     * the modules may be initialised. */
    if (cpython_runs_or_starts())
        attach_running_python();
}

static bool loaded_once;

/* Called by the dynamic linker, under its lock; no GIL, or that of the caller of dlopen(). */
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

/* Reports a libpython that a program loads by dlopen(), as uwsgi and Apache do with their Python
 * plugins.  The C library's start files have each loaded library call this function first, if any
 * library defines it; it was made for profilers (glibc crti.S: _init).  Called under ld.so's lock,
 * before the library's own constructors, and long before Py_Initialize().  Not instrumented: the
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
    if (!loaded) /* perhaps preloaded into a program that loaded its Python later */
        start_shim(NULL);
    if (loaded)
        attach_interpreter();
    return 0;
}

/* Makes the library importable for a .pth file, as python_stap, where python_stap.so is a link to
 * it.  The import succeeds in every Python, even where the shim does nothing. */
PyObject *PyInit_python_stap(void)
{
    const char *why;
    if (!py.Py_GetVersion && glibc_find()) /* preloaded into a program that loads Python late */
        cpython_load_symbols(NULL, &why);
    return module_create(exec_module);
}

/* GIL held, no exception in flight. */
PyObject *PyInit_python_stap_attach(void)
{
    attach_again();
    return module_create(exec_module);
}
