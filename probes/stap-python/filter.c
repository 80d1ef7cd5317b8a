/*
 * `stap-python filter`: shows or writes the patterns in a process's filter page.
 *
 * SPDX-License-Identifier: MIT
 */

#include "commands.h"
#include "lib/processes.h"
#include "lib/util.h"
#include "shared/filter_page.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    pid_t pid = arguments[0] ? parse_pid(arguments[0]) : 0;
    if (!pid || (all && arguments[1]))
        die(USAGE, "filter: takes a PID and patterns (see stap-python filter --help)");
    char *patterns = joined(arguments + 1);
    if (!process_open(pid, &process, &why))
        die(FAILED, "%d: %s", pid, why);
    if (process_is_detached(&process))
        die(FAILED, "%d: the shim is detached: stap-python attach %d", pid, pid);
    int memory = page_open(&process, &why);
    uint64_t at = memory < 0 ? 0 : page_read(memory, &process, &page, &why);
    if (!at)
        die(FAILED, "%d: %s", pid, why);
    if (all || *patterns) {
        if ((why = page_write_patterns(memory, at, page.generation, patterns)))
            die(FAILED, "%d: %s", pid, why);
    } else
        puts(*page.patterns ? printable(page.patterns) : "all functions");
    close(memory);
    return 0;
}
