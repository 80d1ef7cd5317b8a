/*
 * Sets the watcher up when the main interpreter starts, or in one that runs already, and ends the
 * shim's work when atexit calls.
 *
 * SPDX-License-Identifier: MIT
 */
#include "setup.h"

#include "arm.h"
#include "ask.h"
#include "code.h"
#include "daemons.h"
#include "debug.h"
#include "detach.h"
#include "fork.h"
#include "layout.h"
#include "main_thread.h"
#include "parting.h"
#include "tally.h"
#include "watcher.h"

#include <stddef.h>

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
