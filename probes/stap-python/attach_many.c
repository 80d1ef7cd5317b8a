/*
 * See attach_many.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach_many.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "process.h"
#include "processes.h"

/* ---------------------------------------------------------------- what is asked for */

static void refuse_usage(const char *command) __attribute__((noreturn));

static void refuse_usage(const char *command)
{
    die(USAGE, "%s: takes PIDs, --name PATTERN or --all (see stap-python %s --help)", command,
        command);
}

/* The value of --name at *argument, which moves to its last word; NULL: it is something else. */
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

static struct attach_request wish_of(const char *command, char **arguments)
{
    struct attach_request wish = {0};
    size_t most = 0;
    while (arguments[most])
        most++;
    wish.pids = calloc(most + 1, sizeof *wish.pids);
    wish.names = calloc(most + 1, sizeof *wish.names);
    if (!wish.pids || !wish.names)
        abort();
    for (char *name; *arguments; arguments++)
        if (strcmp(*arguments, "--all") == 0)
            wish.all = true;
        else if (strcmp(*arguments, "--children") == 0)
            wish.children = true;
        else if ((name = name_at(&arguments)))
            wish.names[wish.name_count++] = name;
        else if (!(wish.pids[wish.pid_count++] = parse_pid(*arguments)))
            refuse_usage(command);
    size_t chosen = wish.pid_count + wish.name_count;
    if (wish.all ? chosen || wish.children : !chosen)
        refuse_usage(command);
    return wish;
}

/* ---------------------------------------------------------------- many */

/* How one of them went; the child's exit status. */
enum { DONE = 0, REFUSED = FAILED, ENDED = 3 };

/* In a child process: if it must leave a thread that does not stop, the kernel releases that when
 * the child ends, and the others have their turn. */
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

/* The processes that had their turn, and how many went which way. */
struct done {
    struct attach_target *all;
    size_t count, succeeded, refused;
};

static bool is_done(const struct done *done, const struct attach_target *chosen)
{
    for (size_t i = 0; i < done->count; i++)
        if (done->all[i].pid == chosen->pid && done->all[i].start == chosen->start)
            return true;
    return false;
}

/* Acts on those that had no turn yet; false: there were none.  again: they were started meanwhile.
 */
static bool act_on_chosen(const struct action *action, struct done *done,
                          const struct attach_targets *choice, bool again)
{
    bool some = false;
    for (size_t i = 0; i < choice->count; i++) {
        const struct attach_target *chosen = &choice->all[i];
        if (is_done(done, chosen) || !action->is_for(chosen, again))
            continue;
        done->all = reallocarray(done->all, done->count + 1, sizeof *done->all);
        if (!done->all)
            abort();
        done->all[done->count++] = *chosen;
        int outcome = act_in_child(action, chosen);
        done->succeeded += outcome == DONE;
        done->refused += outcome == REFUSED;
        some = true;
    }
    return some;
}

static bool act_on_many(const struct action *action, const struct attach_request *wish)
{
    enum { ROUNDS = 5 };
    struct done done = {0};
    struct attach_targets choice = attach_find_targets(wish);
    size_t hidden = choice.hidden;
    for (int round = 0; round < ROUNDS && act_on_chosen(action, &done, &choice, round > 0); round++)
        if (wish->all || wish->name_count || wish->children)
            choice = attach_find_targets(wish);
        else
            break;
    processes_warn_of_hidden(hidden);
    if (!done.count) {
        const char *seen = hidden ? ", as far as can be seen" : "";
        if (!wish->all || !action->none_is_fine)
            die(FAILED, "%s: %s%s", action->name, action->none, seen);
        warn("%s: %s%s", action->name, action->none, seen);
        return true;
    }
    return wish->all && action->one_is_enough ? done.succeeded || !done.refused : !done.refused;
}

int attach_many(const struct action *action, char **arguments)
{
    struct attach_request wish = wish_of(action->name, arguments);
    if (wish.pid_count != 1 || wish.name_count || wish.children)
        return act_on_many(action, &wish) ? 0 : FAILED;
    const char *why = action->act(wish.pids[0]);
    if (why)
        die(FAILED, "%s: %d: %s", action->name, wish.pids[0], why);
    return 0;
}
