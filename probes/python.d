/*
 * The provider definition: every marker of the shim with its arguments, one a
 * line.  This is the ABI (tapset/README.md, "Probe points and functions").  generate/markers.awk
 * makes the list for the C from it; nothing else names a marker's arguments.  The provider otel_memory,
 * whose markers fire with memory__sample and memory__free, is in shim/markers/markers.c.  A frame is
 * a PyFrameObject up to CPython 3.10, and from 3.11 on a _PyInterpreterFrame.
 *
 * SPDX-License-Identifier: MIT
 */
provider python {
    probe function__entry(const char *filename, const char *funcname, int lineno, void *frame, const char *modulename);
    probe function__return(const char *filename, const char *funcname, int lineno, void *frame, const char *modulename, PyObject *result, PyObject *exception);
    probe function__count(const char *filename, const char *funcname, int lineno, const char *modulename, long calls);
    probe function__summary(const char *filename, const char *funcname, int lineno, const char *modulename, long calls, long nanoseconds, long own);
    probe thread__runs(int number);
    probe line(const char *filename, const char *funcname, int lineno);
    probe cfunction__entry(const char *filename, const char *funcname, int lineno, const char *modulename);
    probe cfunction__return(const char *filename, const char *funcname, int lineno, const char *modulename);
    probe cfunction__count(const char *funcname, const char *modulename, long calls);
    probe cfunction__summary(const char *funcname, const char *modulename, long calls, long nanoseconds, long own);
    probe exception__raise(const char *filename, const char *funcname, int lineno, PyObject *exception, const char *typename);
    probe filtered__function__entry(const char *filename, const char *funcname, int lineno, void *frame, const char *modulename);
    probe filtered__function__return(const char *filename, const char *funcname, int lineno, void *frame, const char *modulename, PyObject *result, PyObject *exception);
    probe filtered__line(const char *filename, const char *funcname, int lineno, const char *modulename);
    probe filtered__cfunction__entry(const char *filename, const char *funcname, int lineno, const char *modulename, const char *caller, const char *callermodule);
    probe filtered__cfunction__return(const char *filename, const char *funcname, int lineno, const char *modulename, const char *caller, const char *callermodule);
    probe filtered__exception__raise(const char *filename, const char *funcname, int lineno, PyObject *exception, const char *typename, const char *modulename);
    probe filter(const char *patterns, long size);
    probe gc__start(int generation);
    probe gc__done(long collected);
    probe import__find__load__start(const char *modulename);
    probe import__find__load__done(const char *modulename, int found);
    probe audit(const char *event, PyObject *args);
    probe memory__period(void *bytes);
    probe memory__sample(void *address, long size, long weight, int domain);
    probe memory__free(void *address);
};
