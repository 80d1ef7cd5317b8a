/*
 * Reasons not to attach or detach, by /proc.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "lib/files.h"
#include "lib/processes.h"
#include "lib/util.h"

#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---------------------------------------------------------------- rights */

static bool have_cap_sys_ptrace(void)
{
    enum { CAP_SYS_PTRACE = 19 };
    char *capabilities = status_field(proc_file(getpid(), "status"), "CapEff");
    return capabilities && strtoull(capabilities, NULL, 16) >> CAP_SYS_PTRACE & 1;
}

const char *user_refusal(pid_t pid)
{
    unsigned real, effective, saved;
    char *ids = status_field(proc_file(pid, "status"), "Uid");
    if (!ids || sscanf(ids, "%u %u %u", &real, &effective, &saved) != 3)
        return "cannot tell its user";
    if (real != geteuid() || effective != geteuid() || saved != geteuid())
        return format("it belongs to another user (uid %u): run this as that user or root",
                      effective);
    return NULL;
}

const char *open_for_attach(pid_t pid, struct process *process)
{
    const char *why;
    /* Before process_open(), whose reason would be less exact. */
    if (process_start(pid) && !have_cap_sys_ptrace() && (why = user_refusal(pid)))
        return why;
    return process_open(pid, process, &why) ? NULL : why;
}

static const char *refused_by_yama(void)
{
    char *text = read_file(under_root("/proc/sys/kernel/yama/ptrace_scope"), 16);
    int scope = text ? atoi(text) : 0;
    if (scope >= 3)
        return "Yama forbids all tracing until the next boot (kernel.yama.ptrace_scope is 3)";
    if (scope >= 1 && !have_cap_sys_ptrace())
        return format("Yama lets only root trace it (kernel.yama.ptrace_scope is %d): use sudo",
                      scope);
    return NULL;
}

/* ---------------------------------------------------------------- environment */

const char *environment_refusal(const struct process *process)
{
    const char *value = proc_environ(process->pid, "PYTHON_STAP");
    if (!value || !*value || strcmp(value, "auto") == 0 || strcmp(value, "all") == 0)
        return NULL;
    return strcmp(value, "off") == 0 ? "it was started with PYTHON_STAP=off"
                                     : format("it was started with PYTHON_STAP=%.40s, which is "
                                              "off, as it is neither auto nor all",
                                              printable(value));
}

/* ---------------------------------------------------------------- state of the process */

const char another_program[] = "it now runs another program: try again";

const char shadow_stack_refusal[] =
    "its shadow stack forbids injected calls: start it with stap-python run";

/* Until exec() or its end, a child in vfork() has its parent's memory.  A shim that is loaded there
 * stays in the parent, but the watcher ends with the child. */
static const char *refused_by_vfork(pid_t pid, const char *status)
{
    const char *parent = status_field(status, "PPid");
    if (!parent || atoi(parent) <= 0 || syscall(SYS_kcmp, pid, atoi(parent), KCMP_VM, 0L, 0L) != 0)
        return NULL;
    return format("it is in vfork(), in the memory of its parent: attach to %s", parent);
}

static const char *refused_as_stopped(pid_t pid, const char *state)
{
    if (state && strchr("Tt", *state))
        return format("it is stopped: resume it with kill -CONT %d", pid);
    if (state && strchr("ZX", *state))
        return "it has ended";
    return NULL;
}

static const char *refused_by_state(pid_t pid)
{
    const char *status = proc_file(pid, "status"), *why;
    char *state = status_field(status, "State"), *tracer = status_field(status, "TracerPid"),
         *threads = status_field(status, "x86_Thread_features");
    if (tracer && atoi(tracer) > 0)
        return format("process %s already traces it (a debugger or strace?)", tracer);
    if ((why = refused_as_stopped(pid, state)))
        return why;
    if (threads && strstr(threads, "shstk"))
        return shadow_stack_refusal;
    return refused_by_vfork(pid, status);
}

const char *attach_refusal(const struct process *process)
{
    const char *why;
    if ((why = unsupported_reason(&process->python.file)))
        return format("the shim does not support it: %s", why);
    if ((why = refused_by_yama()) || (why = refused_by_state(process->pid)) ||
        (why = seccomp_refusal(process->pid)) || (why = environment_refusal(process)))
        return why;
    if (!process->libc && process->libc_is_gone)
        return "its C library was replaced or deleted while it runs, and only root can read what "
               "it "
               "has of that: run this as root, or restart it";
    if (!process->libc)
        return "it has no dlopen(): it is statically linked, or its C library is not glibc";
    return NULL;
}

const char *refusal_to_detach(const struct process *process)
{
    const char *why = refused_by_yama(), *status = proc_file(process->pid, "status");
    return why ? why : refused_as_stopped(process->pid, status_field(status, "State"));
}
