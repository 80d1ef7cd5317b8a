/*
 * See script.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "script.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "file.h"
#include "installed.h"
#include "other_python.h"
#include "process.h"
#include "program.h"
#include "script_bpftrace.h"
#include "script_head.h"
#include "script_target.h"
#include "shim.h"
#include "stap_arguments.h"
#include "stap_cache.h"
#include "text.h"

static const char *scripts_folder(void)
{
    return source_tree ? format("%s/scripts", source_tree) : SCRIPTS_DIR;
}

/* ---------------------------------------------------------------- which there are */

static int is_script(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".stp") == 0;
}

static char *title_of(const char *name)
{
    char *text = read_file(format("%s/%s.meta", scripts_folder(), name), 65536);
    if (!text || strncmp(text, "title: ", 7) != 0)
        return "";
    text += 7;
    text[strcspn(text, "\n")] = '\0';
    return text;
}

int list_scripts(void)
{
    struct dirent **entries;
    int count = scandir(scripts_folder(), &entries, is_script, alphasort);
    if (count <= 0)
        die(FAILED, "no scripts in %s", scripts_folder());
    for (int i = 0; i < count; i++) {
        char *name = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - 4);
        printf("%-12s %s\n", name, title_of(name));
    }
    return 0;
}

char *script_file(const char *name)
{
    size_t length = strlen(name);
    if (strchr(name, '/') || name[0] == '.' || name[0] == '-')
        return NULL;
    bool whole = length > 4 && strcmp(name + length - 4, ".stp") == 0;
    char *path = format("%s/%s%s", scripts_folder(), name, whole ? "" : ".stp");
    return file_exists(path) ? path : NULL;
}

/* ---------------------------------------------------------------- the command of -c */

/* The same command, with the shim.  stap splits it into words itself unless it needs a shell. */
static char *with_shim(const char *command, const char *stap)
{
    char *preload = shell_quoted(format("LD_PRELOAD=%s", preload_value()));
    if (strpbrk(command, "|&;<>()`\n"))
        command = format("sh -c %s", shell_quoted(command));
    return with_callers_umask(format("env %s %s", preload, command), stap);
}

/* Puts the shim into the command of each -c among stap's arguments. */
static void add_shim(char **arguments, const char *stap)
{
    struct stap_argument argument = {.next = arguments};
    while (next_stap_argument(&argument)) {
        if (argument.option != 'c')
            continue;
        int before = (int)(argument.value - *argument.word);
        *argument.word = format("%.*s%s", before, *argument.word, with_shim(argument.value, stap));
    }
}

/* ---------------------------------------------------------------- running */

/* Says what the script will see of the Pythons that run, and makes that of -x visible. */
static void look_at_processes(const struct script_header *head, const struct stap_arguments *given)
{
    struct script_probes script = {.code = head->code};
    while (given->own[script.arguments])
        script.arguments++;
    if (given->target && parse_pid(given->target))
        script_prepare_target(&script, parse_pid(given->target));
    else if (given->command)
        warn_of_other_python_in(given->command);
    else if (!given->target)
        script_list_running(&script);
}

/* stap's command line.  On a terminal it has a second script, which says when the first begins;
 * with -c the command's own start shows that. */
static char **stap_command(const char *stap, const char *path, char **arguments, bool says)
{
    char *begins[] = {"-E", "probe begin { __python_output_begins() }"};
    size_t count = 0, more = says ? 2 : 0;
    while (arguments[count])
        count++;
    char **command = calloc(count + 5, sizeof *command);
    if (!command)
        abort();
    command[0] = strdup(stap);
    command[1] = strdup(path);
    memcpy(command + 2, begins, more * sizeof *begins);
    memcpy(command + 2 + more, arguments, count * sizeof *arguments);
    return command;
}

/* The same, once all is looked at that stap needs. */
static char **prepared_command(const char *path, const struct script_header *head, char **arguments)
{
    const char *stap = secure_getenv("STAP");
    struct stap_arguments given = stap_arguments(arguments);
    script_check_arguments(head, &given);
    stap = stap && *stap ? stap : "stap";
    if (!program_in_path(stap))
        die(127, "%s not found: run stap-python doctor", stap);
    keep_others_out();
    if (source_tree)
        setenv("SYSTEMTAP_TAPSET", format("%s/build/tapset", source_tree), 0);
    if (given.is_run)
        look_at_processes(head, &given);
    add_shim(arguments, stap);
    bool says = given.is_run && !given.command && isatty(STDERR_FILENO);
    return stap_command(stap, path, arguments, says);
}

char **script_command(const char *path, char **arguments)
{
    struct script_header head = script_header(path);
    return prepared_command(path, &head, arguments);
}

int script_main(const char *path, char **arguments)
{
    if (arguments[0] && strcmp(arguments[0], "--backend") == 0)
        script_backend(path, arguments + 1);
    struct script_header head = script_header(path);
    if (stap_arguments(arguments).help) {
        script_print_help(&head);
        return 0;
    }
    exec_program(prepared_command(path, &head, arguments));
}
