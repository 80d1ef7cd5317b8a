/*
 * The loader: runs when the library is loaded, finds out whether the process is a CPython, and gets
 * the hooks into each of its interpreters at their start.
 *
 * Nothing may be called before Py_Initialize() has made an interpreter, and there is no callback
 * for that moment.  But each interpreter, as it starts, initialises built-in modules through
 * PyImport_Inittab, which is there for programs to change before Py_Initialize().  The loader puts
 * a copy in its place in which two modules are initialised by way of the shim:
 *   posix    the first that importlib needs: hooks can be put in from here on
 *   _codecs  after posix, before the program's first line: the watcher is set up
 * So a dormant shim costs the program nothing more than a thread that sleeps.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm.h"
#include "debug.h"
#include "watcher.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- modules as a starting signal */

static PyObject *(*posix_init)(void);
static PyObject *(*codecs_init)(void);

static void arm_if_wanted(void)
{
    unsigned wanted = arm_wanted();
    if (wanted)
        arm_here(wanted);
}

/* GIL held, in the interpreter that starts.  (CPython 3.13 and later call it in the main
 * interpreter also for others: Python/import.c, import_run_extension.) */
static PyObject *init_posix(void)
{
    PyObject *module = posix_init();
    if (!py.Py_IsInitialized())
        arm_new_interpreter();
    arm_if_wanted();
    return module;
}

static PyObject *init_codecs(void)
{
    PyObject *module = codecs_init();
    arm_if_wanted();
    watcher_setup();
    return module;
}

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
        if (strcmp(module->name, "posix") == 0) {
            posix_init = module->initfunc;
            module->initfunc = init_posix;
        } else if (strcmp(module->name, "_codecs") == 0) {
            codecs_init = module->initfunc;
            module->initfunc = init_codecs;
        }
    }
    *py.inittab = table;
}

/* ---------------------------------------------------------------- the process */

/* PYTHON_STAP=auto (or unset): CPython's own markers where the tapset probes them, the shim's for
 * the rest; all: the shim's; off: nothing.  Ignored in a setuid program. */
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

__attribute__((constructor)) static void load(void)
{
    const char *debug = secure_getenv("PYTHON_STAP_DEBUG");
    debug_on = debug && *debug;
    const char *why;
    if (!cpython_find(&why)) {
        if (why)
            debug_log("%s", why);
        return;
    }
    int mode = chosen_mode();
    if (mode == MODE_OFF)
        return;
    arm_all = mode == MODE_ALL;
    if (py.Py_IsInitialized())
        debug_log("loaded into a running Python: not supported yet");
    else
        wait_for_interpreters();
}
