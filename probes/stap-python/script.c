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

#include "command.h"
#include "file.h"
#include "installed.h"
#include "program.h"
#include "script_bpftrace.h"
#include "shim.h"
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
    char *text = contents(format("%s/%s.meta", scripts_folder(), name), 65536);
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
    return exists(path) ? path : NULL;
}

/* ---------------------------------------------------------------- the command of -c */

/* The word in single quotes, for a shell. */
static char *quoted(const char *word)
{
    char *result = malloc(4 * strlen(word) + 3), *end = result;
    if (!result)
        abort();
    *end++ = '\'';
    for (; *word; word++)
        end = *word == '\'' ? stpcpy(end, "'\\''") : (*end = *word, end + 1);
    strcpy(end, "'");
    return result;
}

/* The same command, with the shim.  stap splits it into words itself unless it needs a shell. */
static char *with_shim(const char *command)
{
    char *preload = quoted(format("LD_PRELOAD=%s", preload_value()));
    if (strpbrk(command, "|&;<>()`\n"))
        return format("env %s sh -c %s", preload, quoted(command));
    return format("env %s %s", preload, command);
}

/* stap's options that take a value, in the same word or the next. */
static const char with_value[] = "aBcdDeEGIlLmopRrsSTx";

/* Puts the shim into the command of each -c among stap's arguments. */
static void add_shim(char **arguments)
{
    for (char **argument = arguments; *argument && strcmp(*argument, "--") != 0; argument++) {
        const char *word = *argument;
        if (word[0] != '-' || word[1] == '-')
            continue;
        size_t at = 1 + strcspn(word + 1, with_value);
        if (!word[at])
            continue;
        bool next = !word[at + 1];
        if (next && !argument[1])
            return;
        if (word[at] == 'c' && next)
            argument[1] = with_shim(argument[1]);
        else if (word[at] == 'c')
            *argument = format("%.*s%s", (int)at + 1, word, with_shim(word + at + 1));
        argument += next;
    }
}

/* ---------------------------------------------------------------- running */

int script_main(const char *path, char **arguments)
{
    if (arguments[0] && strcmp(arguments[0], "--backend") == 0)
        script_backend(path, arguments + 1);
    const char *stap = secure_getenv("STAP");
    stap = stap && *stap ? stap : "stap";
    size_t count = 0;
    while (arguments[count])
        count++;
    char **command = calloc(count + 3, sizeof *command);
    if (!command)
        abort();
    add_shim(arguments);
    command[0] = strdup(stap);
    command[1] = strdup(path);
    memcpy(command + 2, arguments, count * sizeof *arguments);
    if (source_tree)
        setenv("SYSTEMTAP_TAPSET", format("%s/build/tapset", source_tree), 0);
    if (!program_in_path(stap))
        die(127, "%s not found: run stap-python doctor", stap);
    exec_program(command);
}
