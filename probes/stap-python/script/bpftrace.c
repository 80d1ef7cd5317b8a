/*
 * Runs bpftrace on the bpftrace script of the same name as one of SystemTap's.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/shim_state.h"
#include "generated/installed.h"
#include "lib/elf.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/processes.h"
#include "lib/program.h"
#include "lib/util.h"
#include "script/script.h"
#include "shared/filter_page.h"
#include "systemtap/systemtap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

static char *name_of(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    return format("%.*s", (int)strcspn(name, "."), name);
}

/* The path of the bpftrace script of the same name as SystemTap's at path; it need not exist. */
static char *bpftrace_script(const char *path)
{
    return format("%s/%s.bt", bpftrace_scripts(), name_of(path));
}

bool has_bpftrace_script(const char *path)
{
    return file_exists(bpftrace_script(path));
}

bool bpftrace_script_takes(const char *path, const char *usage, size_t count)
{
    struct script_header head = script_header(bpftrace_script(path));
    struct usage_word ours = {.next = script_usage(&head)}, stap = {.next = usage};
    if (!next_usage_word(&ours) || !ours.optional) /* PID */
        return false;
    while (count--)
        if (!next_usage_word(&ours) || !next_usage_word(&stap) || ours.length != stap.length ||
            strncmp(ours.word, stap.word, (size_t)ours.length) != 0)
            return false;
    return true;
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
    if (!process.shim || process_lacks_watcher(&process)) {
        /* bpftrace's script probes none of the native markers. */
        script_attach(&(struct script_probes){.code = ""}, pid);
        if (!process_open(pid, &process, &why))
            die(FAILED, "%d: %s", pid, why);
    }
    const char *elsewhere = shim_elsewhere(&process);
    process.has_other_shim &= !elsewhere;
    struct shim_status status = shim_status(&process, ACTIVATION_TIMEOUT_MS);
    if (status.state == SHIM_SILENT)
        die(FAILED, "%d: %s", pid, shim_complaint(&status));
    if (status.state == SHIM_UNKNOWN)
        warn("%d: %s", pid, shim_complaint(&status));
    if (elsewhere)
        warn("%d: its shim is not the file at %s: bpftrace probes the one that it runs", pid,
             shim_file());
    return elsewhere;
}

/* ---------------------------------------------------------------- the script's text */

/* The text of the script, with path in its probes ("usdt:PATH:python:") if it is not NULL. */
static char *script_with_shim(const char *script, const char *path)
{
    static const char before[] = "usdt:", behind[] = ":python:";
    char *text = read_file(script, 1 << 20), *made = "", *end;
    for (char *at = path ? text : NULL;
         at && (at = strstr(text, before)) && (end = strstr(at, behind));) {
        made = format("%s%.*s%s%s", made, (int)(at - text), text, before, path);
        text = end;
        made = format("%s%s", made, behind);
        text += sizeof behind - 1;
    }
    return format("%s%s", made, text ? text : "");
}

/* bpftrace's expression for an argument of a marker, as its note describes it ("-8@8(%rsp)",
 * "-8@x6"); NULL: it has another form. */
static char *operand_expression(const char *operand)
{
    static const char digits[] = "0123456789";
    const char *at = operand ? strchr(operand, '@') : NULL;
    char name[8];
    int distance, end = 0;
    if (at && sscanf(at, "@x%7[0-9]%n", name, &end) == 1 && !at[end])
        return format("(int64)reg(\"r%s\")", name);
    if (!at || (sscanf(at, "@%d(%%r%7[a-z0-9])%n", &distance, name, &end) != 2) || at[end] || !end)
        return NULL;
    return format("*(int64 *)uptr(reg(\"%s%s\") + %d)", strchr(digits, name[0]) ? "r" : "", name,
                  distance);
}

/* The text, which bpftrace 0.17 can read: it has only six arguments of a marker.  The seventh one
 * is where the note of shim's file says. */
static char *without_seventh(const char *text, const char *shim)
{
    static const char seventh[] = "arg6";
    struct elf_file file;
    const char *why;
    if (!strstr(text, seventh) || !elf_read(shim, &file, &why))
        return strdup(text);
    char *expression = operand_expression(file.own_operand);
    return expression ? replaced(text, seventh, expression) : strdup(text);
}

/* How many arguments the script takes behind the PID, and how many of them at least. */
static void count_usage(const struct script_header *head, size_t *least, size_t *most)
{
    struct usage_word word = {.next = script_usage(head)};
    bool optional = next_usage_word(&word) && word.optional;
    *least = *most = 0;
    while (next_usage_word(&word)) {
        optional |= word.optional;
        ++*most;
        *least += !optional;
    }
}

static void check_count(const struct script_header *head, const char *script, char **rest)
{
    size_t count = 0, least, most;
    count_usage(head, &least, &most);
    while (rest[count])
        count++;
    if (count > most)
        die(USAGE, "%s: with bpftrace it takes %zu argument%s, and no '%s': see the head of %s",
            head->name, most, most == 1 ? "" : "s", rest[most], script);
    if (count < least)
        die(USAGE, "%s: an argument is missing: see the head of %s", head->name, script);
}

/* As many bytes of each name as BPF's stack has room for: the script's head says how many, behind
 * the variable's name. */
static void set_length_of_names(const char *text)
{
    static const char variable[] = "BPFTRACE_STRLEN";
    const char *at = strstr(text, variable);
    at = at ? strpbrk(at, "0123456789") : NULL;
    setenv(variable, at ? format("%d", atoi(at)) : "64", 0);
}

/* ---------------------------------------------------------------- patterns */

/* The processes whose patterns this program has replaced, for restore_patterns(). */
struct patterns {
    const char *written;
    struct replaced {
        pid_t pid;
        char *before;
    } * all;
    size_t count;
};

/* Whether the script's first argument is a PATTERN: its probes are filtered markers. */
static bool takes_pattern(const char *text)
{
    return strstr(text, ":python:filtered__") != NULL;
}

static const char *write_pattern(struct patterns *patterns, pid_t pid)
{
    char *before;
    const char *why = process_replace_patterns(pid, patterns->written, NULL, &before);
    if (why)
        return why;
    patterns->all = reallocarray(patterns->all, patterns->count + 1, sizeof *patterns->all);
    if (!patterns->all)
        abort();
    patterns->all[patterns->count++] = (struct replaced){pid, before};
    return NULL;
}

/* Writes the pattern into the process and its children.  Exits if that of the process fails;
 * children may have no shim. */
static struct patterns write_patterns(pid_t pid, const char *pattern)
{
    struct patterns patterns = {.written = pattern};
    const char *why = write_pattern(&patterns, pid);
    if (why)
        die(FAILED, "%d: %s", pid, why);
    struct processes processes = processes_find();
    for (size_t i = 0; i < processes.count; i++)
        if (processes.all[i].parent == pid)
            write_pattern(&patterns, processes.all[i].pid);
    return patterns;
}

/* The patterns that were there before, unless somebody has written others since.  A child that the
 * process has forked since then has the process's. */
static void restore_patterns(const struct patterns *patterns)
{
    pid_t parent = patterns->all[0].pid;
    char *ignored;
    for (size_t i = 0; i < patterns->count; i++)
        process_replace_patterns(patterns->all[i].pid, patterns->all[i].before, patterns->written,
                                 &ignored);
    struct processes processes = processes_find();
    for (size_t i = 0; i < processes.count; i++)
        if (processes.all[i].parent == parent)
            process_replace_patterns(processes.all[i].pid, patterns->all[0].before,
                                     patterns->written, &ignored);
}

/* ---------------------------------------------------------------- bpftrace alone */

/* Runs bpftrace with the pattern in the process and its children; returns bpftrace's status. */
static int trace_with_pattern(char **command, pid_t pid, const char *pattern)
{
    hold_interrupts();
    struct patterns patterns = write_patterns(pid, pattern);
    int status = run_in_foreground(command);
    restore_patterns(&patterns);
    return status;
}

/* ---------------------------------------------------------------- bpftrace and the command */

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
    if (read(ends[0], &byte, 1) != 1)
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
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        die(FAILED, "pipe: %s", strerror(errno));
    *from = ends[0];
    pid_t pid = fork();
    if (pid < 0)
        die(FAILED, "can't start bpftrace: fork: %s", strerror(errno));
    if (pid > 0) {
        close(ends[1]);
        return pid;
    }
    /* If this program ignores SIGINT, as one that a script starts with &, bpftrace must not. */
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGINT);
    set_tracers_umask();
    if (dup2(ends[1], 1) < 0)
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

/* Runs bpftrace while the command runs; returns bpftrace's exit status. */
static int trace_command(char **tracing, const char *command, const char *pattern, unsigned number)
{
    static struct output output;
    int go, status = 0, ignored;
    pid_t target = start_command(command, pattern, &go);
    tracing[4] = format("%d", target);
    pid_t pid = start_tracer(tracing, &output.from);
    signal(SIGINT, SIG_IGN);
    trace_until_end(&output, number, target, go);
    close(go);
    wait_for_child(target, &ignored);
    wait_for_child(pid, &status);
    return status;
}

/* bpftrace's command line.  The PID, or 0 for all Pythons, precedes the script's own arguments.
 * Warnings are off: bpftrace 0.27 has many of what 0.17 needs in the scripts. */
static char **bpftrace_command(char *text, const struct target *target)
{
    size_t count = 0, at = 0;
    while (target->rest[count])
        count++;
    char **words = calloc(count + 6, sizeof *words);
    if (!words)
        abort();
    words[at++] = "bpftrace";
    words[at++] = "--no-warnings";
    words[at++] = "-e";
    words[at++] = text;
    words[at++] = strdup(target->process ? target->process : "0");
    memcpy(words + at, target->rest, count * sizeof *words);
    return words;
}

int script_backend(const char *path, char **arguments)
{
    char *script = bpftrace_script(path);
    if (!file_exists(script))
        die(USAGE, "no bpftrace script %s in %s: there are %s", name_of(path), bpftrace_scripts(),
            names());
    struct script_header head = script_header(script);
    if (stap_arguments(arguments).help) {
        fputs(head.text, stdout);
        finish(0);
    }
    struct target target = read_arguments(arguments);
    char *text = script_with_shim(script, NULL);
    check_count(&head, script, target.rest);
    if (!program_in_path("bpftrace"))
        die(127, "bpftrace not found: install the package bpftrace");
    set_length_of_names(text);
    const char *elsewhere = target.process ? check_process(target.process) : NULL;
    const char *pattern = takes_pattern(text) ? target.rest[0] : NULL;
    if (pattern && strlen(pattern) >= sizeof((struct filter_page *)0)->patterns)
        die(USAGE, "PATTERN has more than %zu bytes",
            sizeof((struct filter_page *)0)->patterns - 1);
    text =
        without_seventh(script_with_shim(script, elsewhere), elsewhere ? elsewhere : shim_file());
    if (target.command) {
        unsigned number = (unsigned)(monotonic_ms() ^ getpid() << 12) & INT_MAX;
        warn_of_other_python_in(target.command);
        char **tracing = bpftrace_command(script_that_answers(text, number), &target);
        finish(trace_command(tracing, target.command, pattern, number));
    }
    char **tracing = bpftrace_command(text, &target);
    set_tracers_umask();
    if (pattern && target.process)
        finish(trace_with_pattern(tracing, parse_pid(target.process), pattern));
    if (pattern)
        warn("without -x and -c the PATTERN is not set in any process: stap-python filter PID "
             "PATTERN sets it");
    exec_program(tracing);
}
