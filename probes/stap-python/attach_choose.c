/*
 * See attach_choose.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach_choose.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "processes.h"
#include "started.h"

/* Whether text, which may be NULL, or what follows one of its slashes matches the pattern: of a
 * path users type the end, or that from their directory. */
static bool matches(const char *pattern, const char *text)
{
    while (strncmp(pattern, "./", 2) == 0)
        pattern += 2;
    for (const char *at = text; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (fnmatch(pattern, at, 0) == 0)
            return true;
    return false;
}

/* Whether a word of the title that a program has written over its command line matches: of
 * "gunicorn: worker [shop]" or "[celeryd: celery@host:Main] -active-" gunicorn, celeryd, celery. */
static bool matches_title(const char *pattern, const char *title)
{
    static const char between[] = " :[](){}<>@,;|\"'";
    char *text = strdup(title), *word;
    while ((word = strsep(&text, between)))
        if (*word && matches(pattern, word))
            return true;
    return false;
}

/* Whether its command name, the word that called it, its program or script matches one of the
 * names.  uwsgi's workers have command names of their own. */
static bool is_wanted_by_name(const struct attach_request *wish, const struct process *process)
{
    char *command = proc_file(process->pid, "comm");
    char *name = strndup(command, strcspn(command, "\n")), *script = proc_script(process);
    const char *called = proc_strings(process->pid, "cmdline")[0], *title = started_title(process);
    for (size_t i = 0; i < wish->name_count; i++)
        if (matches(wish->names[i], name) || matches(wish->names[i], called) ||
            matches(wish->names[i], process->python.path) || matches(wish->names[i], script) ||
            (title && matches_title(wish->names[i], title)))
            return true;
    return false;
}

static bool is_among(pid_t pid, const pid_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

static void add(struct attach_targets *choice, const struct process *process, bool is_named)
{
    choice->all = reallocarray(choice->all, choice->count + 1, sizeof *choice->all);
    if (!choice->all)
        abort();
    choice->all[choice->count++] = (struct attach_target){
        process->pid, process->start, is_named, process->shim, process_is_detached(process)};
}

static void add_named(struct attach_targets *choice, const struct attach_request *wish)
{
    for (size_t i = 0; i < wish->pid_count; i++) {
        struct process process;
        const char *why;
        if (process_open(wish->pids[i], &process, &why) || process.is_hidden || !process.start ||
            !wish->children)
            add(choice, &process, true);
    }
}

/* A process, as process_open() saw it. */
struct seen {
    struct process process;
    bool is_python; /* or another Python, of which attach says so */
};

/* Chooses the processes of the PIDs and names, or all. */
static void choose(struct processes *processes, const struct attach_request *wish,
                   const struct seen *seen)
{
    for (size_t i = 0; i < wish->pid_count; i++)
        processes_choose(processes, wish->pids[i]);
    for (size_t i = 0; i < processes->count; i++)
        if (wish->all || (seen[i].is_python && is_wanted_by_name(wish, &seen[i].process)))
            processes->all[i].chosen = true;
    if (wish->children)
        processes_choose_descendants(processes);
}

struct attach_targets attach_find_targets(const struct attach_request *wish)
{
    struct attach_targets choice = {0};
    const char *why;
    add_named(&choice, wish);
    if (!wish->all && !wish->children && !wish->name_count)
        return choice;
    struct processes processes = processes_find();
    struct seen *seen = calloc(processes.count + 1, sizeof *seen);
    if (!seen)
        abort();
    for (size_t i = 0; i < processes.count; i++)
        seen[i].is_python = process_open(processes.all[i].pid, &seen[i].process, &why) ||
                            seen[i].process.python.file.other;
    choose(&processes, wish, seen);
    for (size_t i = 0; i < processes.count; i++) {
        bool is_chosen = processes.all[i].chosen;
        if (is_among(processes.all[i].pid, wish->pids, wish->pid_count))
            continue;
        choice.hidden += seen[i].process.is_hidden && (is_chosen || wish->name_count);
        if (is_chosen && seen[i].is_python)
            add(&choice, &seen[i].process, false);
    }
    free(seen);
    return choice;
}
