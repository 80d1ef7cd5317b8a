/*
 * See stap_arguments.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stap_arguments.h"

#include <stdlib.h>
#include <string.h>

/* stap's options that take a value, in the same word or the next. */
static const char with_value[] = "aBcdDeEGIlLmopRrsSTx";

/* An option of one or more letters, the last of which may take a value. */
static bool read_letters(struct stap_argument *argument)
{
    char *word = *argument->word;
    size_t at = 1 + strcspn(word + 1, with_value);
    if (!word[at])
        return true;
    argument->option = word[at];
    argument->value = word + at + 1;
    if (word[at + 1])
        return true;
    argument->word = argument->next;
    argument->value = *argument->next++;
    return argument->value;
}

bool next_stap_argument(struct stap_argument *argument)
{
    argument->word = argument->next;
    argument->value = *argument->word;
    if (!argument->value)
        return false;
    argument->next++;
    if (!argument->ended && strcmp(argument->value, "--") == 0) {
        argument->ended = true;
        return next_stap_argument(argument);
    }
    bool is_option = !argument->ended && argument->value[0] == '-' && argument->value[1];
    argument->option = is_option ? '-' : 0;
    return !is_option || argument->value[1] == '-' || read_letters(argument);
}

/* An option without a value of one letter. */
static void note_option(struct stap_arguments *arguments, const struct stap_argument *argument)
{
    arguments->help |= strcmp(argument->value, "--help") == 0 || strcmp(argument->value, "-h") == 0;
    if (strncmp(argument->value, "--remote", 8) == 0)
        arguments->is_run = false;
}

/* Whether the word before a script's argument is a long option, whose value that may be: which ones
 * take one differs among stap's versions. */
static bool may_be_value(const struct stap_argument *argument, char **first)
{
    const char *before = argument->word > first ? argument->word[-1] : "";
    return !argument->ended && strncmp(before, "--", 2) == 0 && !strchr(before, '=');
}

struct stap_arguments stap_arguments(char **words)
{
    struct stap_arguments all = {.is_run = true};
    struct stap_argument argument = {.next = words};
    size_t count = 0, globals = 0, own = 0;
    while (words[count])
        count++;
    all.globals = calloc(count + 1, sizeof *all.globals);
    all.own = calloc(count + 1, sizeof *all.own);
    if (!all.globals || !all.own)
        abort();
    while (next_stap_argument(&argument)) {
        if (argument.option == '-')
            note_option(&all, &argument);
        else if (argument.option == 'x')
            all.target = argument.value;
        else if (argument.option == 'c')
            all.command = argument.value;
        else if (argument.option == 'G')
            all.globals[globals++] = (char *)argument.value;
        else if (argument.option == 'l' || argument.option == 'L' ||
                 (argument.option == 'p' && strcmp(argument.value, "5") != 0))
            all.is_run = false;
        else if (!argument.option && !may_be_value(&argument, words))
            all.own[own++] = (char *)argument.value;
    }
    return all;
}
