/*
 * `stap-python precompile`: has stap compile scripts for this kernel before they are needed, and
 * says on a terminal when a run has to wait for that.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"
#include "lib/processes.h"
#include "lib/program.h"
#include "lib/util.h"
#include "script/script.h"
#include "systemtap/systemtap.h"

#include <ctype.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- compiling in advance */

static const char usage[] =
    "usage: stap-python precompile [SCRIPT...]\n"
    "\n"
    "Has stap compile the scripts, all if none is named, for the running kernel, at low priority.\n"
    "From then on they start at once, until the kernel, SystemTap or the scripts change. What "
    "stap\n"
    "has compiled serves for all values of -G, -x, -c, -o and of most arguments; not for a REGEX,\n"
    "and for HZ of pyprof and pywall only 99. pywatch with more than one EXPRESSION is compiled\n"
    "when it first runs.\n"
    "\n"
    "The exit status is 1 if a script could not be compiled.\n";

/* Arguments of a script for which stap compiles once. */
struct way {
    char *words[4]; /* end with NULL */
};

struct ways {
    struct way all[8];
    size_t count;
};

/* A value for the argument at this position: a literal word itself, or what stands for all values.
 * NULL: each value would be compiled apart. */
static char *value_for(const struct script_header *head, const struct usage_word *word,
                       int position)
{
    if (islower((unsigned char)*word->word))
        return format("%.*s", word->length, word->word);
    if (!strstr(head->code, format("__python_argument(%d, @%d)", position, position)))
        return NULL;
    return strdup(usage_word_is_text(word) ? "x" : "1");
}

/* The ways to give a script's arguments: with its literal word, if that is the first, and without;
 * each with and without the optional ones behind it. */
static struct ways ways_of(const struct script_header *head)
{
    enum { WORDS = 3 };
    struct ways ways = {.count = 0};
    struct usage_word words[WORDS], word = {.next = script_usage(head)};
    size_t count = 0, needed = 0, given;
    while (count < WORDS && next_usage_word(&word)) {
        words[count++] = word;
        needed = word.optional ? needed : count;
    }
    bool may_skip = count > 1 && words[0].optional && islower((unsigned char)*words[0].word);
    for (size_t first = 0; first <= may_skip; first++) {
        struct way way = {{NULL}};
        for (given = 0;; given++) {
            if (first + given >= needed && (!first || given))
                ways.all[ways.count++] = way;
            if (first + given == count)
                break;
            way.words[given] = value_for(head, &words[first + given], (int)given + 1);
            if (!way.words[given])
                break;
        }
    }
    return ways;
}

static void show(const char *name, size_t done, size_t count)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (name)
        fprintf(stderr, "\rcompiling %zu of %zu: %-20s", done + 1, count, name);
    else
        fprintf(stderr, "\r%*s\r", 50, "");
}

/* Has stap compile a script for arguments.  Prints why if that fails. */
static bool compile(const char *path, const char *name, const struct way *way)
{
    enum { SECONDS = 600 };
    char *arguments[] = {"-p4", way->words[0], way->words[1], way->words[2], NULL};
    int status;
    char *said =
        run_and_capture((const char *const *)script_command(path, arguments), SECONDS, &status);
    if (status != 0)
        warn("%s %s: %.300s", name, way->words[0] ? way->words[0] : "", stap_error(said));
    return status == 0;
}

/* Only when nothing else wants the processor and the disk. */
static void give_way(void)
{
    enum { IOPRIO_WHO_PROCESS = 1, IDLE_CLASS = 3 << 13 };
    setpriority(PRIO_PROCESS, 0, 19);
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IDLE_CLASS);
}

int precompile_main(char **arguments)
{
    help_if_asked(arguments, usage);
    char **names = arguments[0] ? arguments : script_names();
    const char *named = secure_getenv("STAP");
    size_t count = 0, done = 0, failed = 0;
    int before;
    long long began = monotonic_ms();
    for (char **name = names; *name; name++) {
        if (!script_file(*name))
            die(USAGE, "precompile: there is no script '%s' (see stap-python --list-scripts)",
                *name);
        struct script_header head = script_header(script_file(*name));
        count += ways_of(&head).count;
    }
    /* Whoever sets STAP may compile elsewhere. */
    if (stap_program() && !(named && *named) && !has_headers(kernel_release()))
        die(FAILED, "no headers for the kernel %s: run stap-python doctor", kernel_release());
    give_way();
    for (char **name = names; *name; name++) {
        struct script_header head = script_header(script_file(*name));
        struct ways ways = ways_of(&head);
        for (size_t i = 0; i < ways.count; i++, done++) {
            show(*name, done, count);
            failed += !compile(script_file(*name), *name, &ways.all[i]);
        }
    }
    show(NULL, 0, 0);
    long long seconds = (monotonic_ms() - began + 999) / 1000;
    if (failed)
        die(FAILED, "%zu of %zu could not be compiled: run stap-python doctor", failed, count);
    int each = (int)(seconds / (long long)(count ? count : 1)) + 1;
    /* What is in stap's cache takes no time. */
    if (checked_find(kernel_release(), CHECKED_PROBE, &before) && before > each)
        each = before;
    checked_remember(kernel_release(), CHECKED_PROBE, each);
    if (!arguments[0])
        checked_remember(kernel_release(), CHECKED_SCRIPTS, each);
    printf("%zu compiled for %s, in %lld s\n", count, kernel_release(), seconds);
    return 0;
}

/* ---------------------------------------------------------------- saying that stap compiles */

enum activity { UNKNOWN, COMPILES, RUNS };

/* What stap does, by the programs that it has started: it is the process pid, or a descendant of
 * it. */
static enum activity activity_of(pid_t pid)
{
    enum activity activity = UNKNOWN;
    struct processes processes = processes_find();
    processes_choose(&processes, pid);
    processes_choose_descendants(&processes);
    for (size_t i = 0; i < processes.count; i++) {
        const char *name = processes.all[i].chosen
                               ? read_file(format("/proc/%d/comm", processes.all[i].pid), 64)
                               : NULL;
        /* A command of -c may be called make, too. */
        if (name && (strcmp(name, "staprun\n") == 0 || strcmp(name, "stapio\n") == 0))
            return RUNS;
        if (name && strcmp(name, "make\n") == 0)
            activity = COMPILES;
    }
    return activity;
}

void say_if_compiling(void)
{
    enum { STEP_MS = 200, MOST = 300, FILES = 1024 };
    pid_t stap = getpid();
    int seconds, status;
    fflush(NULL);
    pid_t child = fork();
    if (child > 0)
        waitpid(child, &status, 0);
    if (child != 0 || fork() != 0) {
        if (child == 0)
            _exit(0);
        return;
    }
    /* stap, which has this program's PID from now on, does not wait for this process, and nor does
     * who reads stap's output. */
    for (int fd = 0; fd < FILES; fd++)
        if (fd != STDERR_FILENO)
            close(fd);
    for (int i = 0; i < MOST && kill(stap, 0) == 0; i++) {
        enum activity activity = activity_of(stap);
        if (activity == COMPILES) {
            if (checked_find(kernel_release(), CHECKED_PROBE, &seconds))
                warn("compiling for this kernel, once: about %d s", seconds);
            else
                warn("compiling for this kernel, once");
            break;
        }
        if (activity == RUNS)
            break;
        sleep_ms(STEP_MS);
    }
    _exit(0);
}
