/*
 * See attach_refusal.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach_refusal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach_seccomp.h"
#include "file.h"
#include "text.h"

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

/* ---------------------------------------------------------------- how it was started */

/* Whether one of the strings in text, each ended by NUL, starts with word. */
static bool has_word(const char *text, size_t size, const char *word)
{
    for (const char *at = text; at < text + size; at += strlen(at) + 1)
        if (strncmp(at, word, strlen(word)) == 0)
            return true;
    return false;
}

/* The same of the first MB of /proc/PID/name. */
static bool has_word_in(pid_t pid, const char *name, const char *word)
{
    enum { LIMIT = 1 << 20 };
    char *text = calloc(1, LIMIT + 2);
    int fd = open(rooted(format("/proc/%d/%s", pid, name)), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t length = 0;
    ssize_t got;
    while (text && fd >= 0 && length < LIMIT && (got = read(fd, text + length, LIMIT - length)) > 0)
        length += (size_t)got;
    if (fd >= 0)
        close(fd);
    return text && has_word(text, length, word);
}

const char *refused_by_environment(const struct process *process)
{
    return has_word_in(process->pid, "environ", "PYTHON_STAP=off")
               ? "it was started with PYTHON_STAP=off"
               : NULL;
}

static bool forbids_remote_exec(const struct process *process)
{
    return has_word_in(process->pid, "environ", "PYTHON_DISABLE_REMOTE_DEBUG=") ||
           has_word_in(process->pid, "cmdline", "disable-remote-debug") ||
           has_word_in(process->pid, "cmdline", "-Xdisable-remote-debug");
}

/* ---------------------------------------------------------------- all of it */

/* Why its state, by /proc/PID/status, forbids to trace it. */
static const char *refused_by_state(pid_t pid)
{
    const char *status = process_text(pid, "status");
    char *state = field_of(status, "State"), *tracer = field_of(status, "TracerPid"),
         *threads = field_of(status, "x86_Thread_features");
    if (tracer && atoi(tracer) > 0)
        return format("process %s already traces it (a debugger or strace?)", tracer);
    if (state && strchr("Tt", *state))
        return format("it is stopped: resume it with kill -CONT %d", pid);
    if (state && strchr("ZX", *state))
        return "it has ended";
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
        (why = refused_by_seccomp(process->pid)) || (why = refused_by_environment(process)))
        return why;
    if (process_has_remote_exec(process) && forbids_remote_exec(process))
        return "it was started with remote debugging off (PYTHON_DISABLE_REMOTE_DEBUG or -X "
               "disable-remote-debug)";
    if (!process->libc)
        return "it has no dlopen(): it is statically linked, or its C library is not glibc";
    return NULL;
}
