/*
 * See attach.h.  From CPython 3.14 on by sys.remote_exec(); before, and if the main thread does not
 * run Python code soon, with ptrace().
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach_ptrace.h"
#include "attach_refusal.h"
#include "attach_remote_exec.h"
#include "attach_root.h"
#include "attach_seccomp.h"
#include "clock.h"
#include "command.h"
#include "file.h"
#include "process.h"
#include "shim.h"
#include "text.h"

static const char usage[] =
    "usage: stap-python attach PID\n"
    "\n"
    "Loads the shim into a running CPython 3.6 or later, which has the markers from then on. If\n"
    "that fails, the program runs on unchanged. You must be root or the program's user, and be\n"
    "allowed to trace it.\n"
    "\n"
    "In another root or mount namespace (chroot, containers) that lacks the shim, root mounts it "
    "there.\n"
    "\n"
    "Prints \"active\" if tracers see the markers from now on, and \"loaded\" if they will as soon "
    "as\n"
    "Python code runs there.\n";

enum {
    REMOTE_MS = 2000, /* for the main thread to run Python code */
    ACTIVE_MS = 1000, /* for any thread to do so */
};

static bool is_loaded_within(const struct process *process, long ms)
{
    for (long end = now_ms() + ms; !process_has_shim(process); sleep_ms(10))
        if (now_ms() > end || process_start(process->pid) != process->start)
            return false;
    return true;
}

/* since: "already " or "" */
static void print_state(const char *since, const struct process *process, const char *shim)
{
    bool active = process_is_active(process, ACTIVE_MS);
    const char *why = active ? NULL : refused_by_environment(process);
    if (why)
        die(FAILED, "attach: %d: the shim is loaded but does nothing: %s", process->pid, why);
    printf("%d: %s%s: %s%s\n", process->pid, since, active ? "active" : "loaded", printable(shim),
           active ? "" : "; it becomes active when Python code next runs there");
}

/* By what the tracers find the shim in another root. */
static void print_place(const struct process *process)
{
    const char *path = printable(process->load_path), *ours = printable(shim_file());
    if (process_sees_our_files(process))
        return;
    if (!loads_our_file(process))
        printf("%d: that is a copy in its root: bpftrace and perf find it as /proc/%d/root%s, stap "
               "if it is of the same build and not on overlayfs\n",
               process->pid, process->pid, path);
    else if (strcmp(path, ours) != 0)
        printf("%d: that is %s, mounted in its root, and found as that by bpftrace and perf; stap "
               "does not find it there\n",
               process->pid, ours);
    else if (process->is_mounted)
        printf("%d: that is our file, mounted in its root\n", process->pid);
}

/* Loads the shim; NULL, or why that fails. */
static const char *attach(const struct process *process)
{
    char *script = NULL;
    const char *why;
    bool asked = process_has_remote_exec(process) && may_start_its_python(process) &&
                 !has_filters(process->pid);
    if (asked && (why = attach_by_remote_exec(process, &script)))
        return why;
    /* A main thread that waits in C may do so for long. */
    why = asked && is_loaded_within(process, REMOTE_MS) ? NULL : attach_by_ptrace(process);
    if (!why && !process_has_shim(process))
        why = "dlopen() returned, but the shim is not loaded";
    if (!why)
        return NULL;
    /* While it runs, its main thread still wants the script: another user must not take its name.
     */
    if (process_has_ended(process)) {
        if (script)
            unlink(script);
        return "it has ended";
    }
    if (script && exists(script))
        why = format("%s; its main thread will load it when it next runs Python code", why);
    return why;
}

int attach_main(char **arguments)
{
    struct process process;
    const char *why;
    help_if_asked(arguments, usage);
    const char *word = arguments[0];
    if (!word || arguments[1] || !pid_of(word))
        die(USAGE, "attach: takes one PID (see stap-python attach --help)");
    pid_t pid = pid_of(word);
    /* Before process_open(), which would know less of the reason. */
    if (process_start(pid) && !may_trace_all() && (why = refused_by_user(pid)))
        die(FAILED, "attach: %d: %s", pid, why);
    if (!process_open(pid, &process, &why))
        die(FAILED, "attach: %d: %s", pid, why);
    if (process.shim && !unfit(&process.python.file)) {
        print_state("already ", &process, process.shim);
        return 0;
    }
    if ((why = refusal(&process)) || (why = bring_shim(&process)))
        die(FAILED, "attach: %d: %s", pid, process_has_ended(&process) ? "it has ended" : why);
    if ((why = attach(&process)))
        die(FAILED, "attach: %d: %s", pid, why);
    print_state("", &process, process.load_path);
    print_place(&process);
    return 0;
}
