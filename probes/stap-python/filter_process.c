/*
 * See filter_process.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "filter_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "filter_page.h"
#include "command.h"
#include "process.h"
#include "text.h"

static const char usage[] =
    "usage: stap-python filter PID [PATTERN...]\n"
    "       stap-python filter --all PID\n"
    "\n"
    "Says for which functions the filtered markers of a process fire, for perf, bpftrace and "
    "DTrace:\n"
    "filtered__function__entry and the like, which cost the other functions next to nothing. "
    "Scripts\n"
    "for stap say so themselves, by python_filter(), and are not changed by this.\n"
    "\n"
    "  app.views.*          functions by module and name\n"
    "  execute              by the name alone\n"
    "  'app/views.py:*'     by file and name, a file by the end of its path too\n"
    "\n"
    "A * is any text, a ? any byte. Without a PATTERN the present ones are shown; --all "
    "takes\n"
    "them away. They are gone when the process executes another program; one that is to have them "
    "from\n"
    "its start gets them in PYTHON_STAP_FILTER, with spaces between.\n";

static int open_memory(const struct process *process)
{
    int memory = open(format("/proc/%d/mem", process->pid), O_RDWR | O_CLOEXEC);
    if (memory < 0)
        die(FAILED, "%d: its memory can't be opened (%s): run as root", process->pid,
            strerror(errno));
    return memory;
}

/* Returns where it is. */
static uint64_t read_page(int memory, const struct process *process, struct filter_page *page)
{
    for (int i = 0; process->shim && i < FILTER_ADDRESSES; i++) {
        if (pread(memory, page, sizeof *page, (off_t)filter_addresses[i]) !=
                (ssize_t)sizeof *page ||
            page->magic != FILTER_MAGIC)
            continue;
        page->patterns[sizeof page->patterns - 1] = '\0';
        return filter_addresses[i];
    }
    die(FAILED, "%d: the shim of this version isn't active in it: stap-python attach %d",
        process->pid, process->pid);
}

static void put(int memory, const struct process *process, uint64_t at, const void *data,
                size_t size)
{
    if (pwrite(memory, data, size, (off_t)at) != (ssize_t)size)
        die(FAILED, "%d: its memory can't be written: %s", process->pid, strerror(errno));
}

/* The shim reads the patterns while the generation is even, and when it is another one. */
static void write_patterns(int memory, const struct process *process, uint64_t page,
                           uint32_t generation, const char *patterns)
{
    uint32_t during = (generation + 1) | 1, after = during + 1;
    put(memory, process, page + offsetof(struct filter_page, generation), &during, sizeof during);
    put(memory, process, page + offsetof(struct filter_page, patterns), patterns,
        strlen(patterns) + 1);
    put(memory, process, page + offsetof(struct filter_page, generation), &after, sizeof after);
}

static char *joined(char **patterns)
{
    char *all = "";
    for (; *patterns; patterns++) {
        if (**patterns == '-')
            die(USAGE, "filter: unknown option '%s' (see stap-python filter --help)", *patterns);
        if (!**patterns || strpbrk(*patterns, " \t\n"))
            die(USAGE, "filter: '%s' is empty or contains a space: write ? for that", *patterns);
        all = format("%s%s%s", all, *all ? " " : "", *patterns);
    }
    if (strlen(all) >= sizeof((struct filter_page *)0)->patterns)
        die(USAGE, "filter: these are more than %zu bytes of patterns",
            sizeof((struct filter_page *)0)->patterns - 1);
    return all;
}

int filter_main(char **arguments)
{
    struct process process;
    struct filter_page page;
    const char *why;
    help_if_asked(arguments, usage);
    bool all = arguments[0] && strcmp(arguments[0], "--all") == 0;
    arguments += all;
    pid_t pid = arguments[0] ? pid_of(arguments[0]) : 0;
    if (!pid || (all && arguments[1]))
        die(USAGE, "filter: takes a PID and patterns (see stap-python filter --help)");
    char *patterns = joined(arguments + 1);
    if (!process_open(pid, &process, &why))
        die(FAILED, "%d: %s", pid, why);
    int memory = open_memory(&process);
    uint64_t at = read_page(memory, &process, &page);
    if (all || *patterns)
        write_patterns(memory, &process, at, page.generation, patterns);
    else
        puts(*page.patterns ? printable(page.patterns) : "all functions");
    close(memory);
    return 0;
}
