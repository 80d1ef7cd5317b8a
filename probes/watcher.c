/*
 * The watcher thread.  Set up by the loader, once per Py_Initialize().
 *
 * The thread holds the GIL only while it sets hooks.  It is joined before os.fork() (3.7 and later)
 * and when the interpreter ends; so it never meets an interpreter that is going away.
 *
 * SPDX-License-Identifier: MIT
 */
#include "watcher.h"

#include "arm.h"
#include "debug.h"
#include "frame.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_MS = 50, PERIODS_UNTIL_LOOK = 20, STACK_SIZE = 512 * 1024 };
/* A tracer raises its semaphores one after another, each for both of the marker's sites, within a
 * millisecond. */
enum { REST_MS = 2, RESTS = 10 };

/* One watcher thread.  A fork may come while another thread is ending one, so each has its own. */
struct watcher {
    pthread_t thread;
    void (*attach)(void); /* what it does first, with the GIL; or NULL */
    /* Under the lock: */
    bool stopping;
    bool takes_gil; /* it has the GIL or waits for it */
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake; /* broadcast when one is to stop */

/* Changed with the GIL held. */
static bool set_up; /* atexit has our function: the interpreter lives */
static struct watcher *running;

/* The thread of watcher_attach(), until start() takes it for the running one. */
static struct watcher *attaching;

/* The process was forked by a thread other than the main one.  When that thread's function returns
 * the process ends, unless another thread lives: ours must not be it. */
static bool forked_by_thread;

/* What all interpreters were last brought to, or asked to be; by whatever watcher. */
static unsigned settled;

static bool arm(unsigned wanted)
{
    bool done = arm_here();
    return arm_knock_at_others(wanted) && done;
}

/* Waits for so long, or until it is to stop.  Under the lock, which is free meanwhile. */
static void wait_ms(struct watcher *self, long ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    while (!self->stopping && pthread_cond_timedwait(&wake, &lock, &until) == 0)
        ;
}

/* What is wanted, by tracers that have come, or gone, altogether.  Under the lock, as wait_ms(). */
static unsigned wanted_at_rest(struct watcher *self)
{
    unsigned wanted = arm_wanted();
    bool rests = wanted == settled;
    for (int i = 0; i < RESTS && !rests && !self->stopping; i++) {
        unsigned before = wanted, raised = arm_raised();
        wait_ms(self, REST_MS);
        wanted = arm_wanted();
        rests = wanted == before && arm_raised() == raised;
    }
    return wanted;
}

/* Begins in a Python that runs already.  False: nobody would end the thread.  No lock, no GIL. */
static bool attach_first(struct watcher *self)
{
    /* Nobody waits for the attaching thread at the end of Python. */
    if (!py.Py_IsInitialized()) {
        attaching = NULL;
        return false;
    }
    int state = py.PyGILState_Ensure();
    self->attach();
    bool useful = set_up;
    if (!useful)
        attaching = NULL;
    py.PyGILState_Release(state);
    return useful;
}

static void *watch(void *data)
{
    struct watcher *self = data;
    unsigned periods = 0;
    if (self->attach && !attach_first(self))
        return NULL;
    pthread_mutex_lock(&lock);
    self->takes_gil = false;
    while (!self->stopping) {
        unsigned wanted = wanted_at_rest(self);
        bool look = wanted && ++periods % PERIODS_UNTIL_LOOK == 0;
        if ((wanted != settled || look) && !self->stopping) {
            self->takes_gil = true;
            pthread_mutex_unlock(&lock);
            int state = py.PyGILState_Ensure();
            bool useful = set_up;
            bool done = useful && arm(wanted);
            py.PyGILState_Release(state);
            if (useful && arm_ask_others(wanted) && done)
                settled = wanted;
            pthread_mutex_lock(&lock);
            self->takes_gil = false;
            if (!useful)
                break;
        }
        wait_ms(self, PERIOD_MS);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void make_wake(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

static bool make_thread(struct watcher *watcher)
{
    /* The program's signals are for the program's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    bool made = pthread_create(&watcher->thread, &attributes, watch, watcher) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (made)
        pthread_setname_np(watcher->thread, "python-stap");
    return made;
}

static void start(void)
{
    if (running || !set_up || forked_by_thread)
        return;
    if (attaching) {
        running = attaching;
        attaching = NULL;
        return;
    }
    struct watcher *watcher = calloc(1, sizeof *watcher);
    if (watcher && make_thread(watcher)) {
        running = watcher;
        return;
    }
    free(watcher);
    debug_log("no thread could be made: a tracer that comes later is not noticed");
}

static void stop(void)
{
    struct watcher *watcher = running;
    if (!watcher)
        return;
    running = NULL;
    pthread_mutex_lock(&lock);
    watcher->stopping = true;
    pthread_cond_broadcast(&wake);
    bool release = watcher->takes_gil; /* stopping, it won't begin to */
    pthread_mutex_unlock(&lock);
    /* Not released without need: the program's other threads would run in the middle of a fork. */
    PyThreadState *state = release ? py.PyEval_SaveThread() : NULL;
    pthread_join(watcher->thread, NULL);
    if (release)
        py.PyEval_RestoreThread(state);
    free(watcher);
}

/* ---------------------------------------------------------------- exit and fork */

static PyObject *at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    stop();
    set_up = false;
    return cpython_none();
}

/* Where the fork was called: the frame, which is only compared, and the instruction in it. */
static PyFrameObject *forking_frame;
static int forking_instruction;

static PyObject *before_fork(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    stop();
    forking_frame = py.PyEval_GetFrame();
    forking_instruction =
        forking_frame && py.PyFrame_GetLasti ? py.PyFrame_GetLasti(forking_frame) : -1;
    return cpython_none();
}

/* Whether the main thread is in a Python function that the call of os.fork() called: another
 * after-fork handler.  Main thread, GIL held. */
static bool still_forking(void)
{
    PyFrameObject *frame = py.PyEval_GetFrame();
    if (!frame || !py.PyFrame_GetBack || !py.PyFrame_GetLasti)
        return false;
    py.Py_IncRef((PyObject *)frame);
    bool found = false;
    while (frame && !found) {
        PyFrameObject *back = py.PyFrame_GetBack(frame);
        py.Py_DecRef((PyObject *)frame);
        frame = back;
        found =
            frame && frame == forking_frame && py.PyFrame_GetLasti(frame) == forking_instruction;
    }
    if (frame)
        py.Py_DecRef((PyObject *)frame);
    return found;
}

/* A pending call: the main thread, between two instructions, GIL held. */
static int start_when_forked(void *unused)
{
    (void)unused;
    if (!still_forking() || py.Py_AddPendingCall(start_when_forked, NULL) < 0)
        start();
    return 0;
}

/* CPython counts the threads, to warn of them, after this but before os.fork() returns (3.12+,
 * Modules/posixmodule.c, warn_about_fork_with_threads): so there the thread starts when it has,
 * unless the main thread is another one, which CPython counts anyway and which may not run for
 * long. */
static PyObject *after_fork_in_parent(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    if (py.minor < 12 || gettid() != getpid() || py.Py_AddPendingCall(start_when_forked, NULL) < 0)
        start();
    return cpython_none();
}

static PyObject *after_fork_in_child(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    start();
    return cpython_none();
}

#define CALLBACK(function) \
    { \
        "systemtap_" #function, function, METH_NOARGS, NULL \
    }
static PyMethodDef at_exit_def = CALLBACK(at_exit);
static PyMethodDef before_fork_def = CALLBACK(before_fork);
static PyMethodDef after_fork_in_parent_def = CALLBACK(after_fork_in_parent);
static PyMethodDef after_fork_in_child_def = CALLBACK(after_fork_in_child);

static PyObject *import(const char *name)
{
    return py.PyImport_ImportModuleLevel(name, NULL, NULL, NULL, 0);
}

static bool register_at_exit(void)
{
    PyObject *atexit = import("atexit");
    PyObject *callback = atexit ? py.PyCFunction_NewEx(&at_exit_def, NULL, NULL) : NULL;
    bool done = callback && cpython_done(py.PyObject_CallMethod(atexit, "register", "O", callback));
    if (callback)
        py.Py_DecRef(callback);
    if (atexit)
        py.Py_DecRef(atexit);
    return done;
}

static bool add_callback(PyObject *keywords, const char *name, PyMethodDef *def)
{
    PyObject *callback = py.PyCFunction_NewEx(def, NULL, NULL);
    bool done = callback && py.PyDict_SetItemString(keywords, name, callback) == 0;
    if (callback)
        py.Py_DecRef(callback);
    return done;
}

/* os.register_at_fork(before=..., after_in_parent=..., after_in_child=...), CPython 3.7 and later
 */
static bool register_at_fork(void)
{
    PyObject *posix = import("posix");
    PyObject *function = posix ? py.PyObject_GetAttrString(posix, "register_at_fork") : NULL;
    PyObject *arguments = function ? py.PyTuple_New(0) : NULL;
    PyObject *keywords = function ? py.PyDict_New() : NULL;
    bool done = arguments && keywords && add_callback(keywords, "before", &before_fork_def) &&
                add_callback(keywords, "after_in_parent", &after_fork_in_parent_def) &&
                add_callback(keywords, "after_in_child", &after_fork_in_child_def) &&
                cpython_done(py.PyObject_Call(function, arguments, keywords));
    if (keywords)
        py.Py_DecRef(keywords);
    if (arguments)
        py.Py_DecRef(arguments);
    if (function)
        py.Py_DecRef(function);
    if (posix)
        py.Py_DecRef(posix);
    return done;
}

static bool is_named(PyObject *code, const char *expected)
{
    PyObject *name = py.PyObject_GetAttrString(code, "co_name");
    const char *utf8 = name ? py.PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    bool same = utf8 && strcmp(utf8, expected) == 0;
    py.PyErr_Clear();
    if (name)
        py.Py_DecRef(name);
    return same;
}

/* Whether threading._after_fork() is on the stack.  PyOS_AfterFork() calls it, and then destroys
 * all thread states but its own (3.6, Python/ceval.c, PyEval_ReInitThreads).  Main thread, GIL
 * held. */
static bool in_after_fork(void)
{
    PyFrameObject **frames;
    size_t depth = frame_stack(frame_current(), &frames), i = 0;
    while (i < depth && !is_named(frame_code(frames[i]), "_after_fork"))
        i++;
    frame_release(frames, depth);
    return i < depth;
}

/* A pending call, as start_when_forked(). */
static int start_pending(void *unused)
{
    (void)unused;
    if (!in_after_fork())
        start();
    else
        py.Py_AddPendingCall(start_pending, NULL);
    return 0;
}

static bool forking_by_thread;

static void prepare_fork(void)
{
    forking_by_thread = gettid() != getpid();
}

/* In the child of any fork(), of CPython's or of a C library's that asks nobody: the thread is not
 * there.  CPython 3.6 has no at-fork callbacks, so there the child starts its own from here, as
 * soon as PyOS_AfterFork() has made the GIL anew. */
static void child_of_fork(void)
{
    running = attaching = NULL;
    arm_forked();
    forked_by_thread |= forking_by_thread;
    pthread_mutex_init(&lock, NULL);
    make_wake();
    if (py.minor == 6 && set_up)
        py.Py_AddPendingCall(start_pending, NULL);
}

/* What pthread_atfork() calls, which is part of each program rather than of libc.  In another C
 * library there is no such function, and no reason to keep its programs from starting. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *)
    __attribute__((weak));

bool watcher_fits(void)
{
    return __register_atfork;
}

static bool prepare_process(void)
{
    static bool done; /* for the process, not for the interpreter */
    if (!done) {
        make_wake();
        done = __register_atfork(prepare_fork, NULL, child_of_fork, NULL) == 0;
    }
    return done;
}

void watcher_setup(void)
{
    if (set_up)
        return;
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    if (py.minor == 6) /* it has no GIL until somebody asks for one */
        py.PyEval_InitThreads();
    set_up = prepare_process() && register_at_exit() && (py.minor == 6 || register_at_fork());
    py.PyErr_Clear();
    py.PyErr_Restore(type, value, traceback);
    if (set_up)
        start();
    else
        debug_log("no atexit or no register_at_fork: a tracer that comes later is not noticed");
}

/* ---------------------------------------------------------------- a CPython that runs already */

static void (*pending_attach)(void);

static int attach_pending(void *unused)
{
    (void)unused;
    pending_attach();
    return 0;
}

/* dlopen() may have been called with the GIL or without; and whoever holds the GIL may wait for a
 * lock of the dynamic linker, which we hold.  So another thread does it. */
void watcher_attach(void (*attach)(void))
{
    /* In a 3.6 that has had one thread only, there is no GIL to wait for. */
    if (py.PyEval_ThreadsInitialized && !py.PyEval_ThreadsInitialized()) {
        pending_attach = attach;
        py.Py_AddPendingCall(attach_pending, NULL);
        return;
    }
    struct watcher *watcher = prepare_process() ? calloc(1, sizeof *watcher) : NULL;
    if (!watcher)
        return;
    watcher->attach = attach;
    watcher->takes_gil = true;
    attaching = watcher;
    if (!make_thread(watcher)) {
        attaching = NULL;
        free(watcher);
        debug_log("no thread could be made: this running Python is left alone");
    }
}
