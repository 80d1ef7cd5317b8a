/*
 * Runs bpftrace on the bpftrace script of the same name as one of SystemTap's.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/shim_state.h"
#include "generated/installed.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/processes.h"
#include "lib/util.h"
#include "script/script.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The directory of the bpftrace scripts in which make has filled in the shim's path. */
static const char *bpftrace_scripts(void)
{
    return source_tree ? format("%s/build/bpftrace", source_tree) : SCRIPTS_DIR "/bpftrace";
}

/* ---------------------------------------------------------------- the script */

static int is_script(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".bt") == 0;
}

static char *names(void)
{
    struct dirent **entries;
    char *all = "";
    int count = scandir(bpftrace_scripts(), &entries, is_script, alphasort);
    for (int i = 0; i < count; i++)
        all = format("%s%s%.*s", all, i ? ", " : "", (int)strlen(entries[i]->d_name) - 3,
                     entries[i]->d_name);
    return *all ? all : "none";
}

/* The bpftrace script of the same name as SystemTap's script at path; exits if there is none. */
static char *script_for(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    int length = (int)strcspn(name, ".");
    char *script = format("%s/%.*s.bt", bpftrace_scripts(), length, name);
    if (!file_exists(script))
        die(USAGE, "no bpftrace script %.*s in %s: there are %s", length, name, bpftrace_scripts(),
            names());
    return script;
}

/* ---------------------------------------------------------------- -x and -c */

struct target {
    const char *process; /* value of -x, or NULL */
    const char *command; /* value of -c, or NULL */
    char **rest;         /* the script's own arguments; end with NULL */
};

static struct target read_arguments(char **arguments)
{
    struct target target = {NULL, NULL, arguments};
    for (; *target.rest && (*target.rest)[0] == '-'; target.rest++) {
        const char *word = *target.rest;
        if (strcmp(word, "-x") != 0 && strcmp(word, "-c") != 0)
            die(USAGE, "unknown option '%s': with bpftrace there are -x PID and -c CMD", word);
        if (!*++target.rest)
            die(USAGE, "%s needs a value", word);
        *(word[1] == 'x' ? &target.process : &target.command) = *target.rest;
    }
    if (target.process && target.command)
        die(USAGE, "give either -x or -c");
    return target;
}

/* Exits if tracers don't see the shim in the process of -x.  The path to probe, if bpftrace does
 * not find this shim at its own path: below /proc/PID/map_files; else NULL. */
static const char *check_process(const char *word)
{
    struct process process;
    const char *why;
    pid_t pid = parse_pid(word);
    if (pid <= 0)
        die(USAGE, "-x %s: give a PID", word);
    if (!process_open(pid, &process, &why))
        die(FAILED, "%d: %s", pid, why);
    if (in_pid_namespace())
        die(FAILED,
            "%d: the kernel knows it by another PID, which this PID namespace does not show: run "
            "this outside of the container, or leave out -x",
            pid);
    const char *elsewhere = shim_elsewhere(&process);
    process.has_other_shim &= !elsewhere;
    struct shim_status status = shim_status(&process, ACTIVATION_TIMEOUT_MS);
    if (status.state == SHIM_ABSENT)
        die(FAILED, "%d: the shim is not loaded: run stap-python attach %d", pid, pid);
    if (status.state == SHIM_DETACHED || status.state == SHIM_DETACHES)
        die(FAILED, "%d: the shim is detached: run stap-python attach %d", pid, pid);
    if (status.state == SHIM_SILENT)
        die(FAILED, "%d: %s", pid, shim_complaint(&status));
    if (status.state == SHIM_UNKNOWN)
        warn("%d: %s", pid, shim_complaint(&status));
    if (elsewhere)
        warn("%d: its shim is not the file at %s: bpftrace probes the one that it runs", pid,
             shim_file());
    return elsewhere;
}

/* The text of the script, with path in its probes ("usdt:PATH:python:"). */
static char *script_with_shim(const char *script, const char *path)
{
    static const char before[] = "usdt:", behind[] = ":python:";
    char *text = read_file(script, 1 << 20), *made = "", *end;
    for (char *at = text; at && (at = strstr(text, before)) && (end = strstr(at, behind));) {
        made = format("%s%.*s%s%s", made, (int)(at - text), text, before, path);
        text = end;
        made = format("%s%s", made, behind);
        text += sizeof behind - 1;
    }
    return format("%s%s", made, text ? text : "");
}

/* ---------------------------------------------------------------- bpftrace and the command */

enum { STEP_US = 10000 };

/* Whether bpftrace is in poll(), where it waits for events. */
static bool waits(pid_t tracer)
{
    char *where = read_file(format("/proc/%d/wchan", tracer), 128);
    return where && strstr(where, "poll");
}

static size_t open_files(pid_t tracer)
{
    size_t count = 0;
    DIR *folder = opendir(format("/proc/%d/fd", tracer));
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* Waits until bpftrace has attached, or has ended: until it has been in poll() for STEPS * STEP_US.
 * Before it attaches, it polls for only 100 ms, after its BEGIN. */
static void wait_until_attached(pid_t tracer)
{
    enum { STEPS = 30 };
    for (int steps = 0; steps < STEPS && !child_has_ended(tracer); usleep(STEP_US))
        steps = waits(tracer) ? steps + 1 : 0;
}

/* Interrupts bpftrace, which then prints its maps and ends.  It notices a SIGINT only in poll(),
 * and a second one ends it without its maps.  SIGINT is therefore repeated only while bpftrace has
 * not begun to detach, which closes files. */
static void end_tracer(pid_t tracer)
{
    size_t attached = open_files(tracer);
    while (!child_has_ended(tracer)) {
        if (waits(tracer) && open_files(tracer) >= attached)
            kill(tracer, SIGINT);
        for (int i = 0; i < 50 && !child_has_ended(tracer); i++)
            usleep(STEP_US);
    }
}

/* Forks a process that executes the command, with the shim, when *go is closed. */
static pid_t start_command(const char *command, int *go)
{
    int ends[2];
    char *preload = preload_value(), byte;
    if (pipe2(ends, O_CLOEXEC) != 0)
        die(FAILED, "pipe: %s", strerror(errno));
    *go = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        die(FAILED, "fork: %s", strerror(errno));
    if (pid > 0) {
        close(ends[0]);
        return pid;
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 0)
        _exit(127);
    setenv("LD_PRELOAD", preload, 1);
    execl("/bin/sh", "sh", "-c", command, NULL);
    _exit(127);
}

/* Runs bpftrace while the command runs; returns bpftrace's exit status. */
static int trace_command(char **tracing, const char *command)
{
    int go, status = 0;
    pid_t target = start_command(command, &go);
    tracing[2] = format("%d", target);
    pid_t tracer = fork();
    if (tracer < 0) {
        int error = errno;
        kill(target, SIGKILL);
        die(FAILED, "can't start bpftrace: fork: %s", strerror(error));
    }
    if (tracer == 0) {
        /* If this program ignores SIGINT, as one that a script starts with &, bpftrace must not. */
        signal(SIGINT, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGINT);
        set_tracers_umask();
        exec_program(tracing);
    }
    signal(SIGINT, SIG_IGN);
    wait_until_attached(tracer);
    if (child_has_ended(tracer))
        kill(target, SIGKILL);
    close(go);
    while (waitpid(target, NULL, 0) < 0 && errno == EINTR)
        ;
    end_tracer(tracer);
    waitpid(tracer, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* bpftrace's command line.  The PID, or 0 for all Pythons, precedes the script's own arguments. */
static char **bpftrace_command(char *script, const char *shim, const struct target *target)
{
    size_t count = 0, at = 0;
    while (target->rest[count])
        count++;
    char **words = calloc(count + 5, sizeof *words);
    if (!words)
        abort();
    words[at++] = "bpftrace";
    if (shim)
        words[at++] = "-e";
    words[at++] = shim ? script_with_shim(script, shim) : script;
    words[at++] = strdup(target->process ? target->process : "0");
    memcpy(words + at, target->rest, count * sizeof *words);
    return words;
}

int script_backend(const char *path, char **arguments)
{
    if (!arguments[0] || strcmp(arguments[0], "bpftrace") != 0)
        die(USAGE, "--backend is bpftrace, or is left out: for stap");
    char *script = script_for(path);
    struct target target = read_arguments(arguments + 1);
    if (!program_in_path("bpftrace"))
        die(127, "bpftrace not found: install the package bpftrace");
    /* As many bytes of each name as BPF's stack has room for. */
    setenv("BPFTRACE_STRLEN", "128", 0);
    const char *elsewhere = target.process ? check_process(target.process) : NULL;
    char **tracing = bpftrace_command(script, elsewhere, &target);
    if (target.command)
        warn_of_other_python_in(target.command);
    if (target.command)
        finish(trace_command(tracing, target.command));
    set_tracers_umask();
    exec_program(tracing);
}
