/*
 * Fuzzes the shim with what a Python program gives it: names in code objects of any kind that a
 * str has, line tables, modules, imports, audit events.  A CPython is in this program, and the shim
 * with all its markers wanted; what reaches a marker is compared with what names.py says.
 *
 * There is no Python.h, as there is none in the shim: its own table of functions will do.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hooks/hook.h"
#include "os/glibc.h"
#include "sums/sums.h"
#include "markers/enabled.h"

#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This program is linked with all that the shim looks up. */
bool glibc_find(void)
{
    return true;
}

static PyObject *make, *run, *others;

/* What the function has that runs now; in_it: its own entries and returns are expected. */
static struct {
    PyObject *code_file;
    const char *filename, *funcname, *module;
    bool is_on;
    unsigned entries, returns, lines, cfunctions, counted, summed;
} expected;
static const char *expected_event;
static bool has_event;
static unsigned long fired;

static void check(bool holds, const char *what, const char *wanted, const char *got)
{
    if (holds)
        return;
    fprintf(stderr, "names: %s: expected %s, got %s\n", what, wanted ? wanted : "NULL",
            got ? got : "NULL");
    abort();
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ASan looks at each of its bytes. */
static void read_all(const char *text)
{
    if (text)
        (void)*(volatile const char *)(text + strlen(text));
    fired++;
}

/* Whether it is the function's own: the others have plain names. */
static bool is_own(const char *filename, const char *funcname)
{
    return expected.is_on && same(filename, expected.filename) && same(funcname, expected.funcname);
}

/* ---------------------------------------------------------------- the markers (ld's --wrap) */

#define WRAPPED(name, ...) \
    void __wrap_marker_##name(__VA_ARGS__); \
    void __wrap_marker_##name(__VA_ARGS__)

static void function_marker(const char *filename, const char *funcname, void *frame,
                            const char *modulename, unsigned *count)
{
    read_all(filename);
    read_all(funcname);
    read_all(modulename);
    check(frame != NULL, "frame", "one", NULL);
    if (!is_own(filename, funcname))
        return;
    check(same(modulename, expected.module), "module", expected.module, modulename);
    ++*count;
}

WRAPPED(function__entry, const char *filename, const char *funcname, int lineno, void *frame,
        const char *modulename)
{
    (void)lineno;
    function_marker(filename, funcname, frame, modulename, &expected.entries);
}

WRAPPED(function__return, const char *filename, const char *funcname, int lineno, void *frame,
        const char *modulename, PyObject *result, PyObject *exception)
{
    (void)lineno;
    check(!result != !exception, "outcome", "a result or an exception", NULL);
    function_marker(filename, funcname, frame, modulename, &expected.returns);
}

/* The sums of one code object: also of one that another function of the same names had. */
static void sums_marker(const char *filename, const char *funcname, const char *modulename,
                        long calls, unsigned *sum)
{
    read_all(filename);
    read_all(funcname);
    read_all(modulename);
    check(calls >= 0, "calls", "a count", NULL);
    if (is_own(filename, funcname))
        *sum += (unsigned)calls;
}

WRAPPED(function__count, const char *filename, const char *funcname, int lineno,
        const char *modulename, long calls)
{
    (void)lineno;
    sums_marker(filename, funcname, modulename, calls, &expected.counted);
}

WRAPPED(function__summary, const char *filename, const char *funcname, int lineno,
        const char *modulename, long calls, long nanoseconds, long own)
{
    (void)lineno;
    check(nanoseconds >= 0 && own >= 0, "nanoseconds", "a time", NULL);
    sums_marker(filename, funcname, modulename, calls, &expected.summed);
}

static void c_sums_marker(const char *funcname, const char *modulename, long calls)
{
    read_all(funcname);
    read_all(modulename);
    check(calls > 0, "calls", "a count", NULL);
}

WRAPPED(cfunction__count, const char *funcname, const char *modulename, long calls)
{
    c_sums_marker(funcname, modulename, calls);
}

WRAPPED(cfunction__summary, const char *funcname, const char *modulename, long calls,
        long nanoseconds, long own)
{
    check(nanoseconds >= 0 && own >= 0, "nanoseconds", "a time", NULL);
    c_sums_marker(funcname, modulename, calls);
}

WRAPPED(thread__runs, int number)
{
    check(number == 1, "thread", "the first", NULL);
}

WRAPPED(line, const char *filename, const char *funcname, int lineno)
{
    (void)lineno;
    read_all(filename);
    read_all(funcname);
    expected.lines += is_own(filename, funcname);
}

WRAPPED(cfunction__entry, const char *filename, const char *funcname, int lineno,
        const char *modulename)
{
    (void)lineno;
    read_all(filename);
    read_all(funcname);
    read_all(modulename);
    expected.cfunctions += expected.is_on;
}

WRAPPED(cfunction__return, const char *filename, const char *funcname, int lineno,
        const char *modulename)
{
    (void)lineno;
    read_all(filename);
    read_all(funcname);
    read_all(modulename);
}

WRAPPED(exception__raise, const char *filename, const char *funcname, int lineno,
        PyObject *exception, const char *typename)
{
    (void)lineno;
    check(exception != NULL, "exception", "one", NULL);
    read_all(filename);
    read_all(funcname);
    read_all(typename);
}

/* The filtered ones pass what the plain ones do, and names of the function more. */
static void filtered_marker(const char *filename, const char *funcname, const char *modulename)
{
    read_all(filename);
    read_all(funcname);
    read_all(modulename);
}

WRAPPED(filtered__function__entry, const char *filename, const char *funcname, int lineno,
        void *frame, const char *modulename)
{
    (void)lineno;
    check(frame != NULL, "frame", "one", NULL);
    filtered_marker(filename, funcname, modulename);
}

WRAPPED(filtered__function__return, const char *filename, const char *funcname, int lineno,
        void *frame, const char *modulename, PyObject *result, PyObject *exception)
{
    (void)lineno;
    check(frame && !result != !exception, "outcome", "a result or an exception", NULL);
    filtered_marker(filename, funcname, modulename);
}

WRAPPED(filtered__line, const char *filename, const char *funcname, int lineno,
        const char *modulename)
{
    (void)lineno;
    filtered_marker(filename, funcname, modulename);
}

WRAPPED(filtered__cfunction__entry, const char *filename, const char *funcname, int lineno,
        const char *modulename, const char *caller, const char *callermodule)
{
    (void)lineno;
    read_all(caller);
    read_all(callermodule);
    filtered_marker(filename, funcname, modulename);
}

WRAPPED(filtered__cfunction__return, const char *filename, const char *funcname, int lineno,
        const char *modulename, const char *caller, const char *callermodule)
{
    (void)lineno;
    read_all(caller);
    read_all(callermodule);
    filtered_marker(filename, funcname, modulename);
}

WRAPPED(filtered__exception__raise, const char *filename, const char *funcname, int lineno,
        PyObject *exception, const char *typename, const char *modulename)
{
    (void)lineno;
    check(exception != NULL, "exception", "one", NULL);
    read_all(typename);
    filtered_marker(filename, funcname, modulename);
}

/* No pattern: all functions pass. */
WRAPPED(filter, const char *patterns, long size)
{
    check(size > 1 && !patterns[size - 1], "patterns", "zeros at their end", NULL);
}

WRAPPED(gc__start, int generation)
{
    check(generation >= 0 && generation < 4, "generation", "0 to 3", NULL);
}

WRAPPED(gc__done, long collected)
{
    check(collected >= 0, "collected", "a count", NULL);
}

WRAPPED(memory__period, void *bytes)
{
    check(bytes != NULL, "bytes", "an address", NULL);
}

WRAPPED(memory__sample, void *address, long size, long weight, int domain)
{
    (void)address;
    check(size >= 0 && weight >= size, "weight", "the size or more", NULL);
    check(domain == 1 || domain == 2, "domain", "1 or 2", NULL);
}

WRAPPED(memory__free, void *address)
{
    check(address != NULL, "address", "an address", NULL);
}

WRAPPED(import__find__load__start, const char *modulename)
{
    read_all(modulename);
}

WRAPPED(import__find__load__done, const char *modulename, int found)
{
    read_all(modulename);
    check(found == 0 || found == 1, "found", "0 or 1", NULL);
}

WRAPPED(audit, const char *event, PyObject *arguments)
{
    read_all(event);
    check(arguments != NULL, "audit", "arguments", NULL);
    if (has_event && same(event, expected_event))
        has_event = false;
}

/* ---------------------------------------------------------------- a CPython */

/* Beside what the shim uses of it. */
static void (*Py_InitializeEx)(int);
static PyObject *(*PyBytes_FromStringAndSize)(const char *, Py_ssize_t);
static char *(*PyBytes_AsString)(PyObject *);
static int (*PyRun_SimpleString)(const char *);
static void (*PyErr_Print)(void);

static void find(void *function, const char *name)
{
    *(void **)function = dlsym(RTLD_DEFAULT, name);
    check(*(void **)function != NULL, "libpython", name, NULL);
}

/* expect_event(): the event of which the marker must tell next, or None. */
static PyObject *expect_event(PyObject *self, PyObject *arguments)
{
    static PyObject *kept;
    (void)self;
    PyObject *event = py.PyTuple_GetItem(arguments, 0);
    check(!has_event, "an audit event that the marker has not told of", expected_event, NULL);
    if (event) {
        py.Py_IncRef(event);
        if (kept)
            py.Py_DecRef(kept);
        kept = event;
        has_event = event != py.none;
        expected_event = has_event ? PyBytes_AsString(event) : NULL;
    }
    return cpython_none();
}

static PyMethodDef expect_event_def = {"expect_event", expect_event, METH_VARARGS, NULL};

static void raise_all(unsigned short value)
{
    for (int i = 0; i < MARKERS; i++)
        *(volatile unsigned short *)(uintptr_t)marker_info[i].semaphore = value;
}

static PyObject *call_with(PyObject *function, PyObject *argument)
{
    PyObject *arguments = py.PyTuple_New(1);
    py.Py_IncRef(argument);
    py.PyTuple_SetItem(arguments, 0, argument);
    PyObject *result = py.PyObject_Call(function, arguments, NULL);
    py.Py_DecRef(arguments);
    return result;
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    const char *why = "no CPython in this program";
    check(py.Py_GetVersion || cpython_load_symbols(NULL, &why), why, "one", NULL);
    find(&Py_InitializeEx, "Py_InitializeEx");
    find(&PyBytes_FromStringAndSize, "PyBytes_FromStringAndSize");
    find(&PyBytes_AsString, "PyBytes_AsString");
    find(&PyRun_SimpleString, "PyRun_SimpleString");
    find(&PyErr_Print, "PyErr_Print");
    fire_native_too = true;
    raise_all(1);
    Py_InitializeEx(0);
    check(arm_current(), "the shim is not armed", "armed", NULL);

    PyObject *modules = py.PySys_GetObject("modules");
    PyObject *space =
        py.PyObject_GetAttrString(py.PyDict_GetItemString(modules, "__main__"), "__dict__");
    py.PyDict_SetItemString(space, "expect_event",
                            py.PyCFunction_NewEx(&expect_event_def, NULL, NULL));
    char text[1024];
    snprintf(text, sizeof text, "exec(compile(open('%s').read(), 'names.py', 'exec'))",
             getenv("FUZZ_NAMES"));
    check(PyRun_SimpleString(text) == 0, "names.py", "to run", NULL);
    make = py.PyDict_GetItemString(space, "make");
    run = py.PyDict_GetItemString(space, "run");
    others = py.PyDict_GetItemString(space, "others");
    check(make && run && others && fired > 100, "markers", "to have fired", NULL);
    return 0;
}

static const char *text_of(PyObject *bytes)
{
    return bytes == py.none ? NULL : PyBytes_AsString(bytes);
}

/* Also what the watcher is just telling. */
static void tell_all(void)
{
    while (!sums_flush())
        sched_yield();
}

static void run_function(PyObject *made)
{
    tell_all();
    memset(&expected, 0, sizeof expected);
    expected.filename = text_of(py.PyTuple_GetItem(made, 1));
    expected.funcname = text_of(py.PyTuple_GetItem(made, 2));
    expected.module = text_of(py.PyTuple_GetItem(made, 3));
    expected.is_on = true;
    PyObject *result = call_with(run, py.PyTuple_GetItem(made, 0));
    tell_all();
    expected.is_on = false;
    if (!result)
        PyErr_Print();
    check(result != NULL, "run()", "no exception", NULL);
    py.Py_DecRef(result);
    check(expected.entries > 0, "entries", "some", "none");
    check(expected.entries == expected.returns, "returns", "as many as entries", "others");
    check(expected.entries == expected.counted, "calls counted", "as many as entries", "others");
    check(expected.entries == expected.summed, "calls summed up", "as many as entries", "others");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)data + 1, (Py_ssize_t)size - 1);
    PyObject *made = call_with(*data & 1 ? make : others, bytes);
    py.Py_DecRef(bytes);
    if (!made) /* what CPython itself refuses: a line number, a table */
        py.PyErr_Clear();
    else if (*data & 1)
        run_function(made);
    if (made)
        py.Py_DecRef(made);
    return 0;
}
