/*
 * `stap-python doctor --fix`: runs the commands that fix what doctor's checks report, in rounds of
 * checks, a question and commands.
 *
 * SPDX-License-Identifier: MIT
 */

#include "doctor/doctor.h"
#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"
#include "systemtap/systemtap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the commands of a round */

static bool has(const struct texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->count; i++)
        if (strcmp(texts->all[i], text) == 0)
            return true;
    return false;
}

struct round {
    struct texts commands;
    char *install;         /* the command among them that installs all packages; NULL: none */
    struct texts if_fails; /* what to do if it fails */
};

static struct texts taken; /* the fixes that this or an earlier round has, by their texts */
static bool updated;       /* whether a round has had update_command() */

/* This program's path, before a command replaces the file; NULL: unknown. */
static char *own_path;

/* The command, with this program's path for "stap-python" if a shell would not find that, or, in a
 * checkout, would find another. */
static char *with_own_path(char *command)
{
    static const char sudo[] = "sudo ", name[] = "stap-python ";
    bool has_sudo = strncmp(command, sudo, strlen(sudo)) == 0;
    const char *rest = command + (has_sudo ? strlen(sudo) : 0);
    bool is_found = !source_tree && program_in_path("stap-python");
    if (strncmp(rest, name, strlen(name)) != 0 || is_found || !own_path)
        return command;
    return format("%s%s %s", has_sudo ? sudo : "", shell_word(own_path), rest + strlen(name));
}

/* Takes the commands of all fixes that no round has had: one that installs all packages, then the
 * others. */
static struct round take_commands(void)
{
    const struct reported *reported;
    size_t count = reported_fixes(&reported);
    struct round round = {0};
    struct texts others = {0};
    char *packages = "", *update = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct fix *fix = &reported[i].fix;
        if (!fix->command || has(&taken, fix->text))
            continue;
        texts_add(&taken, fix->text);
        if (fix->packages)
            packages = format("%s%s%s", packages, *packages ? " " : "", fix->packages);
        else
            texts_add(&others, with_own_path(fix->command));
        if (fix->if_fails)
            texts_add(&round.if_fails, fix->if_fails);
        update = fix->downloads && !updated ? update_command() : update;
    }
    if (update)
        texts_add(&round.commands, update);
    updated |= update != NULL;
    if (*packages)
        texts_add(&round.commands, round.install = unattended_install(packages));
    for (size_t i = 0; i < others.count; i++)
        texts_add(&round.commands, others.all[i]);
    return round;
}

/* ---------------------------------------------------------------- asking */

static void show(const struct texts *commands)
{
    puts("");
    for (size_t i = 0; i < commands->count; i++)
        printf("  %s\n", commands->all[i]);
}

static bool is_wanted(size_t count)
{
    char answer[16] = "";
    /* What was typed while the checks ran is no answer. */
    tcflush(0, TCIFLUSH);
    if (count == 1)
        printf("Run this command? [y/N] ");
    else
        printf("Run these %zu commands? [y/N] ", count);
    fflush(stdout);
    if (!fgets(answer, sizeof answer, stdin)) {
        puts("");
        return false;
    }
    answer[strcspn(answer, "\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

/* ---------------------------------------------------------------- running */

/* Runs the command in a shell.  False, after an error line, if it fails. */
static bool run(char *command)
{
    printf("+ %s\n", command);
    fflush(NULL);
    int status = system(command);
    if (status == 0)
        return true;
    if (status == -1)
        warn("doctor: can't run '%s': %s", command, strerror(errno));
    else if (WIFSIGNALED(status))
        warn("doctor: '%s' was ended by signal %d", command, WTERMSIG(status));
    else
        warn("doctor: '%s' failed with exit status %d", command, WEXITSTATUS(status));
    return false;
}

/* Runs the commands up to the first that fails; whether none does. */
static bool run_all(const struct round *round)
{
    char **commands = round->commands.all;
    size_t count = round->commands.count, i = 0;
    while (i < count && run(commands[i]))
        i++;
    if (i == count)
        return true;
    for (size_t j = 0; commands[i] == round->install && j < round->if_fails.count; j++)
        puts(printable(round->if_fails.all[j]));
    for (i++; i < count; i++)
        printf("not run: %s\n", commands[i]);
    return false;
}

/* ---------------------------------------------------------------- the rounds */

static void print_left(void)
{
    const struct reported *reported;
    size_t count = reported_fixes(&reported);
    if (count)
        puts("\nleft to do by hand:");
    for (size_t i = 0; i < count; i++) {
        const struct fix *fix = &reported[i].fix;
        bool was_run = fix->command && has(&taken, fix->text);
        printf("  %s: %s%s\n", reported[i].topic,
               printable(fix->by_hand ? fix->by_hand : fix->text),
               was_run ? " (it was run, and did not help)" : "");
    }
}

int fix_all(bool unasked)
{
    enum { ROUNDS = 5 };
    if (getauxval(AT_SECURE))
        die(FAILED, "doctor: --fix runs nothing with more rights than its caller has");
    if (!unasked && !(isatty(0) && isatty(1)))
        die(USAGE, "doctor: --fix needs a terminal, on which it asks, or --yes");
    own_path = own_program();
    unsigned problems = check_all();
    for (int i = 0; i < ROUNDS; i++) {
        struct round round = take_commands();
        if (!round.commands.count)
            break;
        show(&round.commands);
        if (!unasked && !is_wanted(round.commands.count)) {
            puts("nothing of this was run");
            return problems ? FAILED : 0;
        }
        /* The checks may have changed the umask, for stap's cache. */
        umask(callers_umask());
        if (!run_all(&round))
            return FAILED;
        puts("");
        problems = check_all();
    }
    print_left();
    return problems ? FAILED : 0;
}
