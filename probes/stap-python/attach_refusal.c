/*
 * See attach_refusal.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach_refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "shim.h"
#include "started.h"
#include "text.h"
#include "trust.h"

/* ---------------------------------------------------------------- rights */

bool may_trace_all(void)
{
    enum { CAP_SYS_PTRACE = 19 };
    char *capabilities = field_of(process_text(getpid(), "status"), "CapEff");
    return capabilities && strtoull(capabilities, NULL, 16) >> CAP_SYS_PTRACE & 1;
}

const char *refused_by_user(pid_t pid)
{
    unsigned real, effective, saved;
    char *ids = field_of(process_text(pid, "status"), "Uid");
    if (!ids || sscanf(ids, "%u %u %u", &real, &effective, &saved) != 3)
        return "cannot tell its user";
    if (real != geteuid() || effective != geteuid() || saved != geteuid())
        return format("it belongs to another user (uid %u): run this as that user or root",
                      effective);
    return NULL;
}

static const char *refused_by_yama(void)
{
    char *text = contents(rooted("/proc/sys/kernel/yama/ptrace_scope"), 16);
    int scope = text ? atoi(text) : 0;
    if (scope >= 3)
        return "Yama forbids all tracing until the next boot (kernel.yama.ptrace_scope is 3)";
    if (scope >= 1 && !may_trace_all())
        return format("Yama lets only root trace it (kernel.yama.ptrace_scope is %d): use sudo",
                      scope);
    return NULL;
}

/* ---------------------------------------------------------------- the shim in its root */

/* The users who may choose what is loaded into the process: root; its own, if it has no more rights
 * than that one; the root of its user namespace.  users has room for three; returns their number.
 */
static size_t users_of(const struct process *process, uid_t *users)
{
    const char *status = process_text(process->pid, "status"), *ids = field_of(status, "Uid"),
               *rights = field_of(status, "CapPrm");
    char ours[64] = "", its[64] = "";
    unsigned real, effective, saved, root;
    size_t count = 0;
    users[count++] = 0;
    if (ids && rights && sscanf(ids, "%u %u %u", &real, &effective, &saved) == 3 &&
        real == effective && real == saved && strtoull(rights, NULL, 16) == 0)
        users[count++] = real;
    if (readlink("/proc/self/ns/user", ours, sizeof ours - 1) > 0 &&
        readlink(format("/proc/%d/ns/user", process->pid), its, sizeof its - 1) > 0 &&
        strcmp(ours, its) != 0 &&
        sscanf(process_text(process->pid, "uid_map"), " 0 %u", &root) == 1)
        users[count++] = root;
    return count;
}

const char *refused_by_root(const struct process *process)
{
    struct elf_file elf;
    uid_t users[3];
    const char *why;
    char *root = format("/proc/%d/root", process->pid), *file;
    if (process_sees_our_files(process))
        return elf_read(shim_file(), &elf, &why) && elf.entries ? NULL : shim_not_found();
    const char *unsafe = unsafe_path_in(root, shim_file(), users, users_of(process, users), &file);
    struct stat status;
    if (unsafe && lstat(file, &status) == 0)
        return format("it is in a container or another root, whose shim others can change: %s",
                      unsafe);
    if (!unsafe && elf_read(file, &elf, &why) && elf.entries)
        return NULL;
    return format("it is in a container or another root, which lacks the shim: copy %s to the same "
                  "path there",
                  shim_file());
}

/* ---------------------------------------------------------------- how it was started */

const char *refused_by_environment(const struct process *process)
{
    const char *value = started_variable(process->pid, "PYTHON_STAP");
    return value && strcmp(value, "off") == 0 ? "it was started with PYTHON_STAP=off" : NULL;
}

static bool forbids_remote_exec(const struct process *process)
{
    static const char option[] = "-Xdisable-remote-debug";
    if (started_variable(process->pid, "PYTHON_DISABLE_REMOTE_DEBUG"))
        return true;
    for (char **word = started_strings(process->pid, "cmdline"); *word; word++)
        if (strncmp(*word, option, sizeof option - 1) == 0 ||
            strncmp(*word, option + 2, sizeof option - 3) == 0)
            return true;
    return false;
}

/* ---------------------------------------------------------------- all of it */

/* Why its state, by /proc/PID/status, forbids to trace it. */
static const char *refused_by_state(pid_t pid)
{
    const char *status = process_text(pid, "status");
    char *state = field_of(status, "State"), *tracer = field_of(status, "TracerPid"),
         *seccomp = field_of(status, "Seccomp"), *threads = field_of(status, "x86_Thread_features");
    if (tracer && atoi(tracer) > 0)
        return format("process %s already traces it (a debugger or strace?)", tracer);
    if (state && strchr("Tt", *state))
        return format("it is stopped: resume it with kill -CONT %d", pid);
    if (state && strchr("ZX", *state))
        return "it has ended";
    if (seccomp && atoi(seccomp) > 0)
        return "seccomp filters its system calls and might kill it: start it with stap-python run";
    if (threads && strstr(threads, "shstk"))
        return "its shadow stack forbids injected calls: start it with stap-python run";
    return NULL;
}

const char *refusal(const struct process *process)
{
    const char *why;
    if ((why = unfit(&process->python.file)))
        return format("the shim does not support it: %s", why);
    if ((why = refused_by_yama()) || (why = refused_by_state(process->pid)) ||
        (why = refused_by_environment(process)))
        return why;
    if (process_has_remote_exec(process) && forbids_remote_exec(process))
        return "it was started with remote debugging off (PYTHON_DISABLE_REMOTE_DEBUG or -X "
               "disable-remote-debug)";
    if (!process->libc)
        return "it has no dlopen(): it is statically linked, or its C library is not glibc";
    return refused_by_root(process);
}
