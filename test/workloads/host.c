/*
 * A program that loads CPython as a plugin, as uwsgi and Apache do, and runs Python code only for
 * requests: in between there is no Python frame.
 *
 * usage: host LIBRARY local|global REQUESTS [SHIM [sub]|fork]
 *
 * SHIM is loaded after a few requests, as by stap-python attach.  sub: a subinterpreter serves, as in
 * mod_wsgi, and the main interpreter runs no code.  fork: a child serves, of a fork that CPython does
 * not know of.  A request is a call of a function that calls no other, every 10 ms.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUESTS_BEFORE_SHIM = 5 };

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    int scope = strcmp(arguments[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    library = dlopen(arguments[1], RTLD_NOW | scope);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    ((void (*)(int))function("Py_InitializeEx"))(0);
    void *(*swap)(void *) = (void *(*)(void *))function("PyThreadState_Swap");
    void *main_state = swap(NULL), *sub_state = NULL;
    swap(main_state);
    if (count > 5)
        sub_state = ((void *(*)(void))function("Py_NewInterpreter"))();
    int failed = ((int (*)(const char *))function("PyRun_SimpleString"))(
        "served = 0\ndef serve():\n    global served\n    served += 1\n");
    void *main_module = ((void *(*)(const char *))function("PyImport_AddModule"))("__main__");
    void *serve =
        ((void *(*)(void *, const char *))function("PyObject_GetAttrString"))(main_module, "serve");
    void *(*call)(void *, void *) = (void *(*)(void *, void *))function("PyObject_CallObject");
    void *(*save)(void) = (void *(*)(void))function("PyEval_SaveThread");
    void (*restore)(void *) = (void (*)(void *))function("PyEval_RestoreThread");
    bool forks = count > 4 && strcmp(arguments[4], "fork") == 0;
    if (forks) {
        pid_t child = fork();
        int status;
        if (child)
            return waitpid(child, &status, 0) != child || status;
        usleep(200000);
    }
    for (int i = 0; i < atoi(arguments[3]); i++) {
        void *state = save();
        if (i == REQUESTS_BEFORE_SHIM && count > 4 && !forks && !dlopen(arguments[4], RTLD_NOW))
            fprintf(stderr, "%s\n", dlerror());
        usleep(10000);
        restore(state);
        failed |= !call(serve, NULL);
    }
    failed |= ((int (*)(const char *))function("PyRun_SimpleString"))("print(served)");
    if (sub_state) {
        ((void (*)(void *))function("Py_EndInterpreter"))(sub_state);
        swap(main_state);
    }
    return failed || ((int (*)(void))function("Py_FinalizeEx"))();
}
