/*
 * Stops the watcher before a fork, and starts it after.  CPython 3.7 and later call before_fork(),
 * after_fork_in_parent() and after_fork_in_child() (os.register_at_fork()), GIL held.  The C
 * library calls prepare_fork(), parent_of_fork() and child_of_fork(), for forks by C also, perhaps
 * without the GIL.  All run on the thread that forks.
 *
 * SPDX-License-Identifier: MIT
 */

#include "core/core.h"
#include "cpython/frame.h"
#include "cpython/threads.h"
#include "hooks/hook.h"
#include "hooks/rearm.h"
#include "markers/enabled.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* How many pending calls may find the fork not done.  CPython makes up to 32 of them in one go. */
enum { MOST_TRIES = 320 };

/* How many forks of CPython's are under way on this thread: it will call after_fork_in_parent() or
 * after_fork_in_child().  More than one if a before-handler of the program forks.  The state of a
 * fork is thread-local, as other threads may fork meanwhile. */
static __thread uint8_t forks_itself;

/* The thread that forks is not the main thread. */
static __thread bool forking_by_thread;

/* From before_fork() until CPython has counted the threads, on the main thread of 3.12 and later:
 * no thread may be started, as CPython would count it. */
static __thread bool counts_threads;

/* Meanwhile an attach (stap-python attach after detach) was interrupted, or came. */
static __thread bool attaches_after_fork;

/* ---------------------------------------------------------------- called by CPython */

/* Where the fork was called: the frame, which is only compared, and the instruction in it. */
static __thread PyFrameObject *forking_frame;
static __thread int forking_instruction;

static PyObject *before_fork(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    if (forks_itself++ > 0) /* the watcher is stopped until the outermost fork is done */
        return cpython_none();
    counts_threads = py.minor >= 12 && gettid() == getpid();
    attaches_after_fork = watcher_stop_for_fork();
    forking_frame = py.PyEval_GetFrame();
    forking_instruction =
        forking_frame && py.PyFrame_GetLasti ? py.PyFrame_GetLasti(forking_frame) : -1;
    return cpython_none();
}

/* Whether os.fork() has not returned yet: the main thread is in a Python function that it called,
 * another after-fork handler.  Main thread, GIL held. */
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

/* How often the start was deferred since the fork.  Main thread, GIL held. */
static __thread int tries;

/* Starts the watcher, on the main thread.  GIL held. */
static void start_now(void)
{
    counts_threads = false;
    (attaches_after_fork ? attach_interpreter : watcher_start)();
}

static void start_or_defer(void);
static int start_pending(void *unused);

/* Has start_or_defer() called soon: by a pending call, on the main thread, between two
 * instructions.  Or when a Python function is next called, if CPython makes no pending calls, or if
 * there were so many that they slow down the program's handlers.  GIL held, or in the child of a
 * fork, where no other thread exists. */
static void defer(void)
{
    if (rearm_pending_calls_stuck() || tries++ >= MOST_TRIES ||
        py.Py_AddPendingCall(start_pending, NULL) < 0)
        rearm_call_soon(start_or_defer);
}

/* A shim that is attached by a before-handler misses the begin of that fork. */
static void end_of_fork(void)
{
    if (forks_itself > 0)
        forks_itself--;
}

/* From 3.12 on CPython counts the threads before os.fork() returns, to warn of them, and that after
 * this call up to 3.13.9 and 3.14.0 (Modules/posixmodule.c: warn_about_fork_with_threads();
 * gh-137109).  So the watcher starts later; but not if another thread than the main one forks:
 * CPython warns then anyway, and the main thread, which makes the pending calls, may not run for
 * long.  Nor without a GIL, in 3.14.4 and later, where another thread's pending call may have
 * CPython forget the main thread's. */
static PyObject *after_fork_in_parent(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    end_of_fork();
    if (forks_itself > 0)
        return cpython_none();
    tries = 0;
    if (counts_threads && py.free_threaded)
        start_now();
    else if (counts_threads)
        defer();
    else if (attaches_after_fork)
        watcher_start_attaching();
    else
        watcher_start();
    return cpython_none();
}

static PyObject *after_fork_in_child(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    end_of_fork();
    counts_threads = false;
    tstate_list_after_fork(true);
    rearm_call_soon(NULL); /* a C program may have forked, and notified CPython after that */
    if (forks_itself == 0) /* else a handler forked: this child may go on with the fork around it */
        watcher_start();
    return cpython_none();
}

#define CALLBACK(function) \
    { \
        "systemtap_" #function, function, METH_NOARGS, NULL \
    }
static PyMethodDef before_fork_def = CALLBACK(before_fork);
static PyMethodDef after_fork_in_parent_def = CALLBACK(after_fork_in_parent);
static PyMethodDef after_fork_in_child_def = CALLBACK(after_fork_in_child);

static bool add_callback(PyObject *keywords, const char *name, PyMethodDef *def)
{
    PyObject *callback = py.PyCFunction_NewEx(def, NULL, NULL);
    bool done = callback && py.PyDict_SetItemString(keywords, name, callback) == 0;
    if (callback)
        py.Py_DecRef(callback);
    return done;
}

/* os.register_at_fork(before=..., after_in_parent=..., after_in_child=...) */
bool fork_register_python(void)
{
    PyObject *posix = py.PyImport_ImportModuleLevel("posix", NULL, NULL, NULL, 0);
    PyObject *function = posix ? py.PyObject_GetAttrString(posix, "register_at_fork") : NULL;
    PyObject *arguments = function ? py.PyTuple_New(0) : NULL;
    PyObject *keywords = function ? py.PyDict_New() : NULL;
    bool done = arguments && keywords && add_callback(keywords, "before", &before_fork_def) &&
                add_callback(keywords, "after_in_parent", &after_fork_in_parent_def) &&
                add_callback(keywords, "after_in_child", &after_fork_in_child_def) &&
                cpython_ignore_result(py.PyObject_Call(function, arguments, keywords));
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

/* ---------------------------------------------------------------- the child, 3.6 */

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

/* Whether threading._after_fork() is on the stack.  PyOS_AfterFork() calls that function, and then
 * destroys all thread states but its own (CPython 3.6 Python/ceval.c: PyEval_ReInitThreads()).
 * Main thread, GIL held. */
static bool in_after_fork(void)
{
    PyFrameObject *frame = frame_current();
    bool found = false;
    while (frame && !found) {
        found = is_named(frame_code(frame), "_after_fork");
        PyFrameObject *back = found ? NULL : frame_back(frame);
        py.Py_DecRef((PyObject *)frame);
        frame = back;
    }
    return found;
}

/* ---------------------------------------------------------------- the start after a fork */

/* Starts the watcher once the fork is done.  GIL held. */
static void start_or_defer(void)
{
    if (gettid() != getpid())
        rearm_call_soon(start_or_defer);
    else if (py.minor == 6 ? in_after_fork() : still_forking())
        defer();
    else
        start_now();
}

/* A pending call: the main thread, between two instructions. */
static int start_pending(void *unused)
{
    (void)unused;
    start_or_defer();
    return 0;
}

bool fork_defers_attach(void)
{
    attaches_after_fork |= counts_threads;
    return counts_threads;
}

/* ---------------------------------------------------------------- called by the C library */

static void prepare_fork(void)
{
    forking_by_thread = gettid() != getpid();
    rearm_lock_for_fork(forks_itself);
}

static void parent_of_fork(void)
{
    rearm_unlock_after_fork();
}

/* In the child of any fork(), also of one by C of which CPython is not notified: the child has no
 * watcher.  CPython 3.6 has no at-fork callbacks, so its child starts a watcher from here, as soon
 * as PyOS_AfterFork() has made the GIL anew.  A child that C code has forked, as uwsgi does its
 * workers, starts a watcher when it runs Python. */
static void child_of_fork(void)
{
    watcher_after_fork(forks_itself || py.minor == 6);
    watcher_forbidden |= forking_by_thread;
    tries = 0;
    markers_forked();
    if (!watcher_allowed)
        return;
    if (py.minor == 6)
        defer();
    else if (!forks_itself && !watcher_forbidden)
        rearm_call_soon(watcher_start);
}

/* pthread_atfork() calls this, but is itself part of each program rather than of libc.  Weak, as
 * another C library lacks the function, and its programs must start. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *)
    __attribute__((weak));

bool fork_supported(void)
{
    return __register_atfork;
}

bool fork_register_libc(void)
{
    static bool done; /* for the process, not for the interpreter */
    if (!done) {
        watcher_detect_children();
        done = __register_atfork(prepare_fork, parent_of_fork, child_of_fork, NULL) == 0;
    }
    return done;
}
