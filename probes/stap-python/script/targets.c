/*
 * Several processes for a script in place of -x: loads the shim into each, and passes their PIDs to
 * the tapset (tapset/python_target.stp) by -G, which is not a part of what stap compiles.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "lib/processes.h"
#include "lib/util.h"
#include "script/script.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- which processes */

void targets_add_pids(const char *command, struct attach_request *request, const char *list)
{
    char *rest = strdup(list), *word;
    while ((word = strsep(&rest, ","))) {
        pid_t pid = parse_pid(word);
        if (!pid)
            die(USAGE, "%s: '%s' is not a PID", command, word);
        request->pids = reallocarray(request->pids, request->pid_count + 1, sizeof *request->pids);
        if (!request->pids)
            abort();
        request->pids[request->pid_count++] = pid;
    }
}

void targets_add_name(struct attach_request *request, char *pattern)
{
    request->names = reallocarray(request->names, request->name_count + 1, sizeof *request->names);
    if (!request->names)
        abort();
    request->names[request->name_count++] = pattern;
}

bool targets_are_one(const struct attach_request *request)
{
    return request->pid_count == 1 && !request->name_count && !request->children && !request->all;
}

/* ---------------------------------------------------------------- the shim in each of them */

/* In a child process, which may exit with an error line. */
static const char *load(pid_t pid)
{
    static const struct script_probes none = {.code = ""};
    struct process process;
    const char *why;
    if (!process_open(pid, &process, &why))
        return why;
    script_attach(&none, pid);
    return NULL;
}

static bool is_for(const struct attach_target *chosen, bool again)
{
    (void)chosen, (void)again;
    return true;
}

/* ---------------------------------------------------------------- their PIDs for the tapset */

bool is_targets_global(const char *word)
{
    return strncmp(word, "__python_targets", 16) == 0;
}

/* As many globals as the tapset has, and the text that fits into one of stap's strings. */
enum { GLOBALS = 8, LONGEST = 500 };

static void add_globals(const char *command, const struct attach_targets *targets,
                        struct texts *words)
{
    size_t next = 0;
    for (int number = 1; next < targets->count; number++) {
        char *pids = format("%d", targets->all[next++].pid);
        if (number > GLOBALS)
            die(FAILED, "%s: %zu processes are too many: name fewer", command, targets->count);
        for (; next < targets->count && strlen(pids) < LONGEST; next++)
            pids = format("%s_%d", pids, targets->all[next].pid);
        texts_add_two(words, "-G", format("__python_targets%d=%s", number, pids));
    }
}

size_t targets_prepare(const char *command, const struct attach_request *request,
                       struct texts *words)
{
    const struct action loading = {.name = command,
                                   .did = "loaded the shim into",
                                   .act = load,
                                   .is_for = is_for,
                                   .none = "no such Python runs"};
    struct attach_targets targets = attach_request_to(&loading, request);
    if (in_pid_namespace())
        warn("the kernel knows these processes by other PIDs, which this PID namespace does not "
             "show: nothing is seen of them here: run this outside of the container");
    add_globals(command, &targets, words);
    return targets.count;
}
