/*
 * Checks the interpreters, the shim, and what attach can do on this architecture.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/inject.h"
#include "doctor/doctor.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/util.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The names of the native markers for which native_marker_state() returns worth. */
static char *own_markers(const struct interpreter *python, const char *worth)
{
    char *names = "";
    for (unsigned i = 0; marker_name(i); i++)
        if (strcmp(native_marker_state(python, i), worth) == 0)
            names = format("%s%s%s", names, *names ? ", " : "", marker_name(i));
    return names;
}

void check_interpreters(void)
{
    struct interpreter *all;
    size_t count = interpreters_find(&all), fit = 0;
    for (size_t i = 0; i < count; i++) {
        const char *reason = unsupported_reason(&all[i].file);
        char *live = own_markers(&all[i], "live"), *dead = own_markers(&all[i], "dead");
        const char *version = short_version(&all[i].file);
        char *text = format("%s, %s: its own live markers: %s%s%s%s", all[i].path,
                            version ? version : "of unknown version", *live ? live : "none",
                            *dead ? "; dead: " : "", dead,
                            pth_of(all[i].path) ? "; loads the shim at each start" : "");
        bool looked_in = *live && tapset_searches(all[i].code);
        fit += !reason || looked_in;
        if (reason)
            report(NOTE, "python", NULL, "%s; the shim does not support it: %s", text, reason);
        else
            report(OK, "python", NULL, "%s", text);
    }
    if (!count)
        report_fix(WRONG, "python", install_fix("python3", "python3", "python3"),
                   "no CPython 3.6 or later found");
    else if (!fit)
        report_fix(WRONG, "python", install_fix("python3", "python3", "python3"),
                   "no interpreter has live markers or can load the shim");
}

/* Loads the file in a child process, which has no CPython; NULL, or why that fails.  *tried:
 * whether there could be a child. */
static const char *load_error(const char *file, bool *tried)
{
    int ends[2];
    pid_t pid = -1;
    fflush(NULL);
    *tried = pipe2(ends, 0) == 0 && (pid = fork()) >= 0;
    if (!*tried)
        return strerror(errno);
    if (pid == 0) {
        alarm(10);
        if (!dlopen(file, RTLD_NOW))
            dprintf(ends[1], "%s", dlerror());
        _exit(0);
    }
    close(ends[1]);
    char *text = calloc(1, 1024);
    ssize_t length = text ? read(ends[0], text, 1023) : 0;
    int status = 0;
    close(ends[0]);
    waitpid(pid, &status, 0);
    if (length > 0)
        return text;
    return WIFSIGNALED(status) ? "dlopen() crashes or takes more than 10 s" : NULL;
}

void check_shim(void)
{
    struct elf_file file;
    bool tried;
    const char *why = NULL, *path = under_root(shim_file());
    if (!file_exists(path))
        report_fix(WRONG, "shim", reinstall_fix(), "%s does not exist", shim_file());
    else if (!elf_read(path, &file, &why) || !file.entries)
        report_fix(WRONG, "shim", reinstall_fix(), "%s is not the shim: %s", shim_file(),
                   why && !file.entries ? why : "it has no markers");
    else if ((why = load_error(path, &tried)) && !tried)
        report(NOTE, "shim", NULL, "whether %s can be loaded is not known: %s", shim_file(), why);
    else if (why)
        report_fix(WRONG, "shim", reinstall_fix(), "%s cannot be loaded: %s", shim_file(), why);
    else if (!file.wide)
        report(NOTE, "shim", NULL,
               "%s, of 32 bits: all markers, but no stacks, values or tasks of programs",
               shim_file());
    else
        report(OK, "shim", NULL, "%s", shim_file());
}

void check_attach(void)
{
    if (!HAS_REMOTE_CALLS)
        report(
            NOTE, "attach", NULL,
            "on this architecture stap-python attach works from CPython 3.14 on: start a program "
            "of an earlier one with stap-python run");
}
