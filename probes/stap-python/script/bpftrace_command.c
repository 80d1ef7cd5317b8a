/*
 * Runs bpftrace for as long as a command runs, from its first event to its last.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"
#include "script/bpftrace.h"
#include "systemtap/systemtap.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the script */

/*
 * bpftrace says when it has attached, and is told to end, by a marker of this program,
 * stap_python:command, which this program fires every STEP_MS until the answer is there:
 *
 *   0  "Are you attached?"  bpftrace prints `attached`.  It prints no event before it has attached
 *      all probes.  To depend on no order of these, the first and the last probe must answer.
 *   1  "End."  The probe calls exit(): bpftrace then prints all events that came before, and its
 *      maps.  On SIGINT bpftrace drops events; 0.17 misses a SIGINT while it reads events, and a
 *      second SIGINT ends it without its maps.
 *
 * This holds for bpftrace 0.17 and 0.27.  Their messages of the probes attached differ: 0.17 prints
 * one before it attaches, 0.27 one afterwards, and not with every option.
 */
enum { ASK, END };
enum { STEP_MS = 20 };

static const char attached[] = "stap-python attached";

/* The script between the probes of stap_python:command.  number: distinguishes this program from
 * others of its file. */
static char *script_that_answers(const char *text, unsigned number)
{
    const char *path = own_program();
    if (!path)
        die(FAILED, "/proc/self/exe: %s", strerror(errno));
    const char *quote = strchr(path, ' ') ? "\"" : "";
    char *probe =
        format("usdt:%s%s%s:stap_python:command /arg1 == %u/ ", quote, path, quote, number);
    char *answer = format("printf(\"%s %%d\\n\", ", attached);
    if (strncmp(text, "#!", 2) == 0)
        text += strcspn(text, "\n");
    return format("%s { if (arg0 == %d) { %s1); } }\n%s\n%s { if (arg0 == %d) { %s2); } else { "
                  "exit(); } }\n",
                  probe, ASK, answer, text, probe, ASK, answer);
}

/* ---------------------------------------------------------------- output */

/* bpftrace's output, which is passed on by whole lines. */
struct output {
    int from;
    size_t used;
    unsigned answers; /* bit 0: of the first probe; bit 1: of the last one */
    char text[1 << 16];
};

/* Passes on the lines, but for the answers; all: also the rest, which has no end. */
static void pass_lines(struct output *output, bool all)
{
    char *line = output->text, *end = output->text + output->used;
    for (char *next; line < end; line = next) {
        next = memchr(line, '\n', (size_t)(end - line));
        if (!next && !all)
            break;
        next = next ? next + 1 : end;
        if ((size_t)(next - line) == sizeof attached + 2 &&
            strncmp(line, attached, sizeof attached - 1) == 0)
            output->answers |= 1u << (line[sizeof attached] == '2');
        else
            fwrite(line, 1, (size_t)(next - line), stdout);
    }
    output->used = (size_t)(end - line);
    memmove(output->text, line, output->used);
    fflush(stdout);
}

/* Reads what is there.  False: bpftrace has ended. */
static bool read_output(struct output *output)
{
    ssize_t got;
    do
        got = read(output->from, output->text + output->used, sizeof output->text - output->used);
    while (got < 0 && errno == EINTR);
    output->used += got > 0 ? (size_t)got : 0;
    pass_lines(output, got <= 0 || output->used == sizeof output->text);
    return got > 0;
}

/* ---------------------------------------------------------------- the two programs */

/* The command for sh -c, so that the program that it names is the process that is traced: dash
 * forks for it, and its children would be grandchildren, which the scripts leave out. */
static const char *without_shell(const char *command)
{
    char *first = format("%.*s", (int)strcspn(command, " "), command);
    if (strpbrk(command, ";&|<>()`\n#") || !program_in_path(first))
        return command;
    return format("exec %s", command);
}

/* Forks a process that executes the command, with the shim and the pattern, when a byte is written
 * to *go. */
static pid_t start_command(const char *command, const char *pattern, int *go)
{
    char *preload = preload_value(), byte;
    pid_t pid = fork_with_pipe("the command", 1, go);
    if (pid > 0)
        return pid;
    if (read(*go, &byte, 1) != 1)
        _exit(127);
    setenv("LD_PRELOAD", preload, 1);
    if (pattern)
        setenv("PYTHON_STAP_FILTER", pattern, 1);
    execl("/bin/sh", "sh", "-c", without_shell(command), NULL);
    _exit(127);
}

/* Starts bpftrace; *from is its output. */
static pid_t start_tracer(char **tracing, int *from)
{
    pid_t pid = fork_with_pipe("bpftrace", 0, from);
    if (pid > 0)
        return pid;
    /* If this program ignores SIGINT, as one that a script starts with &, bpftrace must not. */
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGINT);
    set_tracers_umask();
    if (dup2(*from, 1) < 0)
        _exit(126);
    exec_program(tracing);
}

/* Writes to go when bpftrace is attached, and tells it to end when the command has ended.  Returns
 * when bpftrace has ended. */
static void trace_until_end(struct output *output, unsigned number, pid_t target, int go)
{
    bool runs = false, ended = false;
    long long next = 0;
    for (;;) {
        struct pollfd ready = {.fd = output->from, .events = POLLIN};
        if (!runs && output->answers == 3)
            runs = write(go, "", 1) == 1;
        ended = ended || (runs && child_has_ended(target));
        if (runs == ended && monotonic_ms() >= next) {
            STAP_PROBE2(stap_python, command, ended ? END : ASK, number);
            next = monotonic_ms() + STEP_MS;
        }
        if (poll(&ready, 1, STEP_MS) > 0 && !read_output(output))
            return;
    }
}

int trace_command(const char *text, const char *command, const char *pattern, char **rest)
{
    static struct output output;
    unsigned number = (unsigned)(monotonic_ms() ^ getpid() << 12) & INT_MAX;
    int go, status = 0, ignored;
    text = script_that_answers(text, number);
    pid_t target = start_command(command, pattern, &go);
    pid_t pid = start_tracer(bpftrace_command(text, format("%d", target), rest), &output.from);
    signal(SIGINT, SIG_IGN);
    trace_until_end(&output, number, target, go);
    close(go);
    wait_for_child(target, &ignored);
    wait_for_child(pid, &status);
    return status;
}
