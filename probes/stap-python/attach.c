/*
 * See attach.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach_choose.h"
#include "attach_load.h"
#include "command.h"
#include "process.h"
#include "processes.h"

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
    "to.\n";

/* ---------------------------------------------------------------- what is asked for */

static void refuse_usage(void) __attribute__((noreturn));

static void refuse_usage(void)
{
    die(USAGE, "attach: takes PIDs, --name PATTERN or --all (see stap-python attach --help)");
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

static struct wish wish_of(char **arguments)
{
    struct wish wish = {0};
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
        else if (!(wish.pids[wish.pid_count++] = pid_of(*arguments)))
            refuse_usage();
    size_t chosen = wish.pid_count + wish.name_count;
    if (wish.all ? chosen || wish.children : !chosen)
        refuse_usage();
    return wish;
}

/* ---------------------------------------------------------------- many */

/* How one of them went; the child's exit status. */
enum { ATTACHED = 0, REFUSED = FAILED, ENDED = 3 };

/* In a child process: if it must leave a thread that does not stop, the kernel releases that when
 * the child ends, and the others have their turn. */
static int attach_in_child(const struct chosen *chosen)
{
    int status;
    const char *why;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const struct process process = {.pid = chosen->pid, .start = chosen->start};
        if (!(why = attach_to(chosen->pid)))
            finish(ATTACHED);
        if (!chosen->is_named && process_has_ended(&process))
            exit(ENDED);
        die(REFUSED, "attach: %d: %s", chosen->pid, why);
    }
    if (child < 0)
        warn("attach: %d: cannot start a process for it: %s", chosen->pid, strerror(errno));
    else if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        warn("attach: %d: the process of ours that attached to it was killed", chosen->pid);
    else
        return WEXITSTATUS(status);
    return REFUSED;
}

/* The processes that had their turn, and how many went which way. */
struct done {
    struct chosen *all;
    size_t count, attached, refused;
};

static bool is_done(const struct done *done, const struct chosen *chosen)
{
    for (size_t i = 0; i < done->count; i++)
        if (done->all[i].pid == chosen->pid && done->all[i].start == chosen->start)
            return true;
    return false;
}

/* Attaches to those that had no turn yet; false: there were none.  again: they were started
 * meanwhile, and what has inherited the shim is left out. */
static bool attach_to_chosen(struct done *done, const struct choice *choice, bool again)
{
    bool some = false;
    for (size_t i = 0; i < choice->count; i++) {
        const struct chosen *chosen = &choice->all[i];
        if (is_done(done, chosen) || (again && chosen->has_shim))
            continue;
        done->all = reallocarray(done->all, done->count + 1, sizeof *done->all);
        if (!done->all)
            abort();
        done->all[done->count++] = *chosen;
        int outcome = attach_in_child(chosen);
        done->attached += outcome == ATTACHED;
        done->refused += outcome == REFUSED;
        some = true;
    }
    return some;
}

static int attach_to_many(const struct wish *wish)
{
    enum { ROUNDS = 5 };
    struct done done = {0};
    struct choice choice = attach_choose(wish);
    size_t hidden = choice.hidden;
    for (int round = 0; round < ROUNDS && attach_to_chosen(&done, &choice, round > 0); round++)
        if (wish->all || wish->name_count || wish->children)
            choice = attach_choose(wish);
        else
            break;
    processes_warn_of_hidden(hidden);
    if (!done.count)
        die(FAILED, "attach: no such Python runs%s", hidden ? ", as far as can be seen" : "");
    return wish->all ? !done.attached && done.refused : done.refused;
}

int attach_main(char **arguments)
{
    help_if_asked(arguments, usage);
    struct wish wish = wish_of(arguments);
    if (wish.pid_count != 1 || wish.name_count || wish.children)
        return attach_to_many(&wish) ? FAILED : 0;
    const char *why = attach_to(wish.pids[0]);
    if (why)
        die(FAILED, "attach: %d: %s", wish.pids[0], why);
    return 0;
}
