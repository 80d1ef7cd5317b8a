/*
 * `stap-python attach`; and for `attach` and `detach` the targets that the arguments name, on each
 * of which a child process acts.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/inject.h"
#include "lib/processes.h"
#include "lib/util.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- targets */

/* Whether text (or NULL), or the part of it after a slash, matches the pattern: users type the end
 * of a path, or a path relative to their directory.  A longer text than a path is none: a program
 * may have a command line of a million slashes. */
static bool matches(const char *pattern, const char *text)
{
    if (text && strnlen(text, PATH_MAX) == PATH_MAX)
        return false;
    while (strncmp(pattern, "./", 2) == 0)
        pattern += 2;
    for (const char *at = text; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (fnmatch(pattern, at, 0) == 0)
            return true;
    return false;
}

/* Whether a word of a started_title() matches: gunicorn of "gunicorn: worker [shop]", celeryd or
 * celery of "[celeryd: celery@host:Main] -active-". */
static bool matches_title(const char *pattern, const char *title)
{
    static const char between[] = " :[](){}<>@,;|\"'";
    char *text = strdup(title), *rest = text, *word;
    bool found = false;
    while (!found && (word = strsep(&rest, between)))
        found = *word && matches(pattern, word);
    free(text);
    return found;
}

/* Whether its command name, the first word of its command line, its program, script or title
 * matches one of the names.  The command name does not suffice: uwsgi's workers have their own. */
static bool is_requested_by_name(const struct attach_request *request,
                                 const struct process *process)
{
    char *command = proc_file(process->pid, "comm");
    char *name = strndup(command, strcspn(command, "\n")), *script = proc_script(process);
    char **words = proc_strings(process->pid, "cmdline"), *title = started_title(process);
    bool is = false;
    for (size_t i = 0; i < request->name_count && !is; i++)
        is = matches(request->names[i], name) || matches(request->names[i], words[0]) ||
             matches(request->names[i], process->python.path) ||
             matches(request->names[i], script) ||
             (title && matches_title(request->names[i], title));
    free(name);
    free(script);
    free(words);
    free(title);
    return is;
}

static bool is_among(pid_t pid, const pid_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

static void add_target(struct attach_targets *targets, struct attach_target target)
{
    targets->all = reallocarray(targets->all, targets->count + 1, sizeof *targets->all);
    if (!targets->all)
        abort();
    targets->all[targets->count++] = target;
}

static void add(struct attach_targets *targets, const struct process *process, bool is_named)
{
    add_target(targets, (struct attach_target){process->pid, process->start, is_named,
                                               process->shim, process_is_detached(process)});
}

static void add_named(struct attach_targets *targets, const struct attach_request *request)
{
    for (size_t i = 0; i < request->pid_count; i++) {
        struct process process;
        const char *why;
        if (process_open(request->pids[i], &process, &why) || process.is_hidden || !process.start ||
            !request->children)
            add(targets, &process, true);
    }
}

struct seen {
    struct process process;
    bool is_python; /* a CPython, or another Python, which attach reports */
};

static void choose(struct processes *processes, const struct attach_request *request,
                   const struct seen *seen)
{
    for (size_t i = 0; i < request->pid_count; i++)
        processes_choose(processes, request->pids[i]);
    for (size_t i = 0; i < processes->count; i++)
        if (request->all || (seen[i].is_python && is_requested_by_name(request, &seen[i].process)))
            processes->all[i].chosen = true;
    if (request->children)
        processes_choose_descendants(processes);
}

struct attach_targets attach_find_targets(const struct attach_request *request)
{
    struct attach_targets targets = {0};
    const char *why;
    add_named(&targets, request);
    if (!request->all && !request->children && !request->name_count)
        return targets;
    struct processes processes = processes_find();
    struct seen *seen = calloc(processes.count + 1, sizeof *seen);
    if (!seen)
        abort();
    for (size_t i = 0; i < processes.count; i++)
        seen[i].is_python = process_open(processes.all[i].pid, &seen[i].process, &why) ||
                            seen[i].process.python.file.other;
    choose(&processes, request, seen);
    for (size_t i = 0; i < processes.count; i++) {
        bool is_chosen = processes.all[i].chosen;
        if (is_among(processes.all[i].pid, request->pids, request->pid_count))
            continue;
        targets.hidden += seen[i].process.is_hidden && (is_chosen || request->name_count);
        if (is_chosen && seen[i].is_python)
            add(&targets, &seen[i].process, false);
    }
    free(seen);
    return targets;
}

/* ---------------------------------------------------------------- arguments */

static void refuse_usage(const char *command) __attribute__((noreturn));

static void refuse_usage(const char *command)
{
    die(USAGE, "%s: takes PIDs, --name PATTERN or --all (see stap-python %s --help)", command,
        command);
}

/* The value of the option --name at *argument, which moves to the option's last word; NULL if it is
 * another argument. */
static char *name_at(char ***argument)
{
    static const char option[] = "--name";
    char *word = **argument;
    if (strncmp(word, option, sizeof option - 1) != 0)
        return NULL;
    if (word[sizeof option - 1] == '=')
        return word + sizeof option;
    return word[sizeof option - 1] || !(*argument)[1] ? NULL : *++*argument;
}

static struct attach_request request_of(const char *command, char **arguments)
{
    struct attach_request request = {0};
    size_t most = 0;
    while (arguments[most])
        most++;
    request.pids = calloc(most + 1, sizeof *request.pids);
    request.names = calloc(most + 1, sizeof *request.names);
    if (!request.pids || !request.names)
        abort();
    for (char *name; *arguments; arguments++)
        if (strcmp(*arguments, "--all") == 0)
            request.all = true;
        else if (strcmp(*arguments, "--children") == 0)
            request.children = true;
        else if ((name = name_at(&arguments)))
            request.names[request.name_count++] = name;
        else if (!(request.pids[request.pid_count++] = parse_pid(*arguments)))
            refuse_usage(command);
    size_t chosen = request.pid_count + request.name_count;
    if (request.all ? chosen || request.children : !chosen)
        refuse_usage(command);
    return request;
}

/* ---------------------------------------------------------------- several processes */

/* The outcome for one process, and the child's exit status. */
enum { DONE = 0, REFUSED = FAILED, ENDED = 3 };

/* A child process per target: if a thread of the target does not stop, the child exits, the kernel
 * releases the thread, and the other targets have their turn. */
static int act_in_child(const struct action *action, const struct attach_target *chosen)
{
    int status;
    const char *why;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const struct process process = {.pid = chosen->pid, .start = chosen->start};
        if (!(why = action->act(chosen->pid)))
            finish(DONE);
        if (!chosen->is_named && process_has_ended(&process))
            exit(ENDED);
        die(REFUSED, "%s: %d: %s", action->name, chosen->pid, why);
    }
    if (child < 0)
        warn("%s: %d: cannot start a process for it: %s", action->name, chosen->pid,
             strerror(errno));
    else if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        warn("%s: %d: the process of ours that %s it was killed", action->name, chosen->pid,
             action->did);
    else
        return WEXITSTATUS(status);
    return REFUSED;
}

/* The processes that had their turn, and the numbers of their outcomes. */
struct done {
    struct attach_target *all;
    size_t count, succeeded, refused;
    struct attach_targets successes;
};

static bool is_done(const struct done *done, const struct attach_target *chosen)
{
    for (size_t i = 0; i < done->count; i++)
        if (done->all[i].pid == chosen->pid && done->all[i].start == chosen->start)
            return true;
    return false;
}

/* Acts on the targets that had no turn yet; false: there were none.  again: for action->is_for().
 */
static bool act_on_chosen(const struct action *action, struct done *done,
                          const struct attach_targets *targets, bool again)
{
    bool some = false;
    for (size_t i = 0; i < targets->count; i++) {
        const struct attach_target *chosen = &targets->all[i];
        if (is_done(done, chosen) || !action->is_for(chosen, again))
            continue;
        done->all = reallocarray(done->all, done->count + 1, sizeof *done->all);
        if (!done->all)
            abort();
        done->all[done->count++] = *chosen;
        int outcome = act_in_child(action, chosen);
        done->succeeded += outcome == DONE;
        if (outcome == DONE)
            add_target(&done->successes, *chosen);
        done->refused += outcome == REFUSED;
        some = true;
    }
    return some;
}

/* Returns how many processes are hidden. */
static size_t act_in_rounds(const struct action *action, const struct attach_request *request,
                            struct done *done)
{
    enum { ROUNDS = 5 };
    struct attach_targets targets = attach_find_targets(request);
    size_t hidden = targets.hidden;
    for (int round = 0; round < ROUNDS && act_on_chosen(action, done, &targets, round > 0); round++)
        if (request->all || request->name_count || request->children)
            targets = attach_find_targets(request);
        else
            break;
    processes_warn_of_hidden(hidden);
    return hidden;
}

struct attach_targets attach_request_to(const struct action *action,
                                        const struct attach_request *request)
{
    struct done done = {0};
    size_t hidden = act_in_rounds(action, request, &done);
    if (!done.succeeded)
        die(FAILED, "%s: %s%s", action->name, done.count ? "no process is left" : action->none,
            hidden ? ", as far as can be seen" : "");
    return done.successes;
}

static bool act_on_many(const struct action *action, const struct attach_request *request)
{
    struct done done = {0};
    size_t hidden = act_in_rounds(action, request, &done);
    if (!done.count) {
        const char *seen = hidden ? ", as far as can be seen" : "";
        if (!request->all || !action->none_is_fine)
            die(FAILED, "%s: %s%s", action->name, action->none, seen);
        warn("%s: %s%s", action->name, action->none, seen);
        return true;
    }
    return request->all && action->one_is_enough ? done.succeeded || !done.refused : !done.refused;
}

int attach_many(const struct action *action, char **arguments)
{
    struct attach_request request = request_of(action->name, arguments);
    if (request.pid_count != 1 || request.name_count || request.children)
        return act_on_many(action, &request) ? 0 : FAILED;
    const char *why = action->act(request.pids[0]);
    if (why)
        die(FAILED, "%s: %d: %s", action->name, request.pids[0], why);
    return 0;
}

/* ---------------------------------------------------------------- stap-python attach */

static const char usage[] =
    "usage: stap-python attach [--children] [--name PATTERN]... PID...\n"
    "       stap-python attach [--children] --name PATTERN...\n"
    "       stap-python attach --all\n"
    "\n"
    "Loads the shim into running CPythons 3.6 or later, which have the markers from then on. If\n"
    "that fails, the program runs on unchanged. You must be root or the program's user, and be\n"
    "allowed to trace it.\n"
    "\n"
    "  --name PATTERN  each Python whose command name (ps -o comm), program, script or first word\n"
    "                  of the command line matches the shell pattern. All but the first match by\n"
    "                  their path or the end of it, -m by the module; * matches a slash, too. Of\n"
    "                  one that has set a title, \"gunicorn: worker [shop]\", each word matches.\n"
    "  --children      the descendants of these processes that are Pythons, too; a PID may then "
    "be\n"
    "                  that of another program, a shell say\n"
    "  --all           every Python; the exit status is 0 if one of them has the shim\n"
    "\n"
    "In another root or mount namespace (chroot, containers) that lacks the shim, root mounts it "
    "there.\n"
    "\n"
    "Prints a line for each: \"active\" if tracers see the markers from now on, and \"loaded\" if\n"
    "they will as soon as Python code runs there. The exit status is 1 if one can't be attached "
    "to.\n"
    "A shim that stap-python detach has detached becomes active again. detach undoes attach.\n";

/* A process that was started meanwhile may have inherited the shim. */
static bool is_for(const struct attach_target *chosen, bool again)
{
    return !again || !chosen->has_shim || chosen->is_detached;
}

int attach_main(char **arguments)
{
    static const struct action attaching = {.name = "attach",
                                            .did = "attached to",
                                            .act = attach_to,
                                            .is_for = is_for,
                                            .none = "no such Python runs",
                                            .one_is_enough = true};
    help_if_asked(arguments, usage);
    return attach_many(&attaching, arguments);
}
