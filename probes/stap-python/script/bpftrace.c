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
#include "script/bpftrace.h"
#include "script/script.h"
#include "shared/filter_page.h"
#include "systemtap/systemtap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory of the bpftrace scripts in which make has filled in the shim's path. */
static const char *bpftrace_scripts(void)
{
    return source_tree ? format("%s/build/bpftrace", source_tree) : SCRIPTS_DIR "/bpftrace";
}

/* ---------------------------------------------------------------- the script */

static int is_script(const struct dirent *entry)
{
    return ends_with(entry->d_name, ".bt");
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

/* Options stand before the script's own arguments and behind them, as with stap. */
static struct target read_arguments(char **arguments)
{
    struct target target = {NULL, NULL, arguments};
    size_t count = 0;
    for (char **word = arguments; *word; word++) {
        const char *option = *word;
        if (option[0] != '-') {
            target.rest[count++] = *word;
            continue;
        }
        if (strcmp(option, "-x") != 0 && strcmp(option, "-c") != 0)
            die(USAGE, "unknown option '%s': with bpftrace there are -x PID and -c CMD", option);
        if (!*++word)
            die(USAGE, "%s needs a value", option);
        *(option[1] == 'x' ? &target.process : &target.command) = *word;
    }
    target.rest[count] = NULL;
    if (target.process && target.command)
        die(USAGE, "give either -x or -c");
    return target;
}

/* A path for bpftrace of the process's shim, which is not ours.  Exits if another user can change
 * the file: bpftrace would read it as root, and 0.17 crashes at some.  Opened here, as the process
 * may map another file in its place by then. */
static const char *open_elsewhere(const struct process *process, const char *path)
{
    struct stat status;
    int fd = open_regular(path, &status);
    if (fd < 0)
        die(FAILED, "%d: its shim can't be opened: %s", process->pid, strerror(errno));
    if (others_can_change(fd, &status))
        die(FAILED,
            "%d: its shim is %s, a file that other users can change: bpftrace is not to read it as "
            "root: restart the program",
            process->pid, process->shim);
    fcntl(fd, F_SETFD, 0);
    return format("/proc/self/fd/%d", fd);
}

/* Exits if tracers don't see the shim in the process of -x.  The path to probe, if bpftrace does
 * not find this shim at its own path; else NULL. */
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
    elsewhere = elsewhere ? open_elsewhere(&process, elsewhere) : NULL;
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

/* ---------------------------------------------------------------- running bpftrace */

char **bpftrace_command(const char *text, const char *pid, char **rest)
{
    struct texts words = {0};
    /* bpftrace 0.27 warns of much that 0.17 needs in the scripts. */
    texts_add_two(&words, "bpftrace", "--no-warnings");
    texts_add_two(&words, "-e", text);
    texts_add(&words, pid);
    for (; *rest; rest++)
        texts_add(&words, *rest);
    return words.all;
}

/* Runs bpftrace with the pattern in the process and its children; returns bpftrace's status. */
static int trace_with_pattern(char **command, pid_t pid, const char *pattern)
{
    hold_interrupts();
    struct patterns patterns = write_patterns(pid, pattern);
    int status = run_in_foreground(command);
    restore_patterns(&patterns);
    return status;
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
        warn_of_other_python_in(target.command);
        finish(trace_command(text, target.command, pattern, target.rest));
    }
    char **tracing = bpftrace_command(text, target.process ? target.process : "0", target.rest);
    set_tracers_umask();
    if (pattern && target.process)
        finish(trace_with_pattern(tracing, parse_pid(target.process), pattern));
    if (pattern)
        warn("without -x and -c the PATTERN is not set in any process: stap-python filter PID "
             "PATTERN sets it");
    exec_program(tracing);
}
