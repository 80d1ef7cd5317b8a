/*
 * See attach_load.h.  From CPython 3.14 on by sys.remote_exec(); before, and if the main thread
 * does not run Python code soon, with ptrace().
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach_load.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach_ptrace.h"
#include "attach_refusal.h"
#include "attach_remote_exec.h"
#include "attach_root.h"
#include "attach_seccomp.h"
#include "clock.h"
#include "file.h"
#include "shim.h"
#include "shim_state.h"
#include "text.h"

/* For the main thread to run Python code. */
enum { REMOTE_MS = 2000 };

bool process_lacks_watcher(const struct process *process)
{
    enum shim_state state = shim_status(process, 0).state;
    return state == SHIM_DETACHED || state == SHIM_DETACHES;
}

/* Whether the shim is loaded, and attached if it was detached. */
static bool is_attached(const struct process *process)
{
    return process_has_shim(process) && !(process->shim && process_lacks_watcher(process));
}

static bool is_attached_within(const struct process *process, long ms)
{
    for (long long end = monotonic_ms() + ms; !is_attached(process); sleep_ms(10))
        if (monotonic_ms() > end || process_start(process->pid) != process->start)
            return false;
    return true;
}

/* since: "already " or "", again: " again" or "".  NULL, or why the shim there does nothing. */
static const char *print_state(const char *since, const struct process *process, const char *again,
                               const char *shim)
{
    struct process now = *process;
    const char *why;
    if (!process_open(process->pid, &now, &why))
        return why;
    struct shim_status status = shim_status(&now, ACTIVATION_TIMEOUT_MS);
    if (status.state == SHIM_SILENT || status.state == SHIM_UNKNOWN)
        return shim_complaint(&status);
    bool active = status.state == SHIM_ACTIVE;
    printf("%d: %s%s%s: %s%s\n", process->pid, since, active ? "active" : "loaded", again,
           printable(shim), active ? "" : "; it becomes active when Python code next runs there");
    /* Of what was loaded just now print_place() says it. */
    if (status.why && (*since || *again))
        printf("%d: %s\n", process->pid, status.why);
    return NULL;
}

/* By what the tracers find the shim in another root. */
static void print_place(const struct process *process)
{
    const char *path = printable(process->load_path), *ours = printable(shim_file());
    if (process_shares_our_mounts(process) || process_has_ended(process))
        return;
    if (!load_path_is_our_shim(process))
        printf("%d: %s\n", process->pid, shim_place(process, process->load_path));
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
    bool asked = process_has_remote_exec(process) && can_run_its_python(process) &&
                 !has_seccomp_filter(process->pid) &&
                 (!process->shim || strcmp(process->shim, shim_file()) == 0);
    if (asked && (why = attach_by_remote_exec(process, &script)))
        return why;
    /* A main thread that waits in C may do so for long. */
    why = asked && is_attached_within(process, REMOTE_MS) ? NULL : attach_by_ptrace(process);
    if (!why && !is_attached_within(process, process->shim ? ACTIVATION_TIMEOUT_MS : 0))
        why = process->shim ? "it is still detached: try again"
                            : "dlopen() returned, but the shim is not loaded";
    if (!why)
        return NULL;
    /* While it runs, its main thread still wants the script: another user must not take its name.
     */
    if (process_has_ended(process)) {
        if (script)
            unlink(script);
        return "it has ended";
    }
    if (script && file_exists(script))
        why = format("%s; its main thread will load it when it next runs Python code", why);
    return why;
}

const char *attach_process(struct process *process)
{
    const char *why = attach_refusal(process);
    if (why || (!process->shim && (why = mount_shim(process))))
        return process_has_ended(process) ? "it has ended" : why;
    return attach(process);
}

const char *attach_to(pid_t pid)
{
    struct process process;
    const char *why;
    /* Before process_open(), which would know less of the reason. */
    if (process_start(pid) && !have_cap_sys_ptrace() && (why = user_refusal(pid)))
        return why;
    if (!process_open(pid, &process, &why))
        return why;
    bool again = process.shim && process_lacks_watcher(&process);
    if (process.shim && !again && !unsupported_reason(&process.python.file))
        return print_state("already ", &process, "", process.shim);
    if ((why = attach_process(&process)))
        return why;
    if (again)
        return print_state("", &process, " again", process.shim);
    if ((why = print_state("", &process, "", process.load_path)))
        return why;
    print_place(&process);
    return NULL;
}
