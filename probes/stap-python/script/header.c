/*
 * Reads stap's arguments and the header comment of a script, and checks the arguments by it.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"
#include "lib/util.h"
#include "script/script.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- stap arguments */

/* stap's options that take a value, in the same word or the next. */
static const char with_value[] = "aBcdDeEGIlLmopRrsSTx";

/* Reads a word of option letters; the last one may take a value.  False: the value is missing. */
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

/* A long option, or letters without a value. */
static void note_option(struct stap_arguments *arguments, const struct stap_argument *argument)
{
    arguments->help |= strcmp(argument->value, "--help") == 0 || strcmp(argument->value, "-h") == 0;
    arguments->has_runtime |= strcmp(argument->value, "--bpf") == 0 ||
                              strcmp(argument->value, "--dyninst") == 0 ||
                              (strncmp(argument->value, "--runtime", 9) == 0 &&
                               strcmp(argument->value, "--runtime=kernel") != 0);
    if (strncmp(argument->value, "--remote", 8) == 0)
        arguments->is_run = false;
}

bool is_script_file(const char *path)
{
    return ends_with(path, ".stp") && file_exists(path);
}

/* Whether the argument may be the value of a long option in the word before it.  Which long options
 * take a value differs among stap's versions; no value is a script. */
static bool may_be_value(const struct stap_argument *argument, char **first)
{
    const char *before = argument->word > first ? argument->word[-1] : "";
    return !argument->ended && strncmp(before, "--", 2) == 0 && !strchr(before, '=') &&
           !is_script_file(argument->value);
}

struct stap_arguments stap_arguments(char **words)
{
    struct stap_arguments all = {.is_run = true, .is_compiled = true};
    struct stap_argument argument = {.next = words};
    size_t count = 0, globals = 0, own = 0;
    while (words[count])
        count++;
    all.globals = calloc(count + 1, sizeof *all.globals);
    all.own = calloc(count + 1, sizeof *all.own);
    if (!all.globals || !all.own)
        abort();
    while (next_stap_argument(&argument)) {
        all.has_more |= argument.option && argument.option != 'x' && argument.option != 'c';
        if (argument.option == '-')
            note_option(&all, &argument);
        else if (argument.option == 'x')
            all.target = argument.value;
        else if (argument.option == 'c')
            all.command = argument.value;
        else if (argument.option == 'e' && !all.script)
            all.script = argument.value;
        else if (argument.option == 'r')
            all.kernel = argument.value;
        else if (argument.option == 'G' && is_targets_global(argument.value))
            all.has_targets = true;
        else if (argument.option == 'G')
            all.globals[globals++] = (char *)argument.value;
        else if (argument.option == 'l' || argument.option == 'L')
            all.is_listing = true;
        else if (argument.option == 'R')
            all.has_runtime = true;
        else if (argument.option == 'p') {
            all.is_run &= strcmp(argument.value, "5") == 0;
            all.is_compiled &= *argument.value >= '4';
        } else if (!argument.option && !may_be_value(&argument, words))
            all.own[own++] = (char *)argument.value;
    }
    all.is_run &= !all.is_listing;
    all.is_compiled &= !all.is_listing;
    return all;
}

/* ---------------------------------------------------------------- reading a header */

/* Removes the " * " before each line. */
static void uncomment(char *text)
{
    char *to = text;
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        line += strspn(line, " ");
        line += *line == '*';
        line += *line == ' ';
        memmove(to, line, (size_t)(end - line));
        to += end - line;
    }
    *to = '\0';
}

struct script_header script_header(const char *path)
{
    struct script_header head;
    char *all = read_file(path, 1 << 20);
    const char *slash = strrchr(path, '/');
    head.text = all ? strstr(all, "\n/*\n") : NULL;
    head.code = head.text ? strstr(head.text, "*/") : NULL;
    if (!head.code)
        die(FAILED, "%s: cannot read the comment at its head", path);
    head.text += 4;
    *head.code = '\0';
    head.code += 2;
    char *licence = strstr(head.text, "\n *\n * SPDX");
    if (licence)
        licence[1] = '\0';
    uncomment(head.text);
    head.file = strdup(slash + 1);
    head.name = format("%.*s", (int)(strrchr(slash, '.') - slash) - 1, head.file);
    head.folder = format("%.*s", (int)(slash - path), path);
    return head;
}

/* ---------------------------------------------------------------- usage line */

/* The arguments in the first usage line: what follows the script's name, and -x PID, up to two
 * blanks, such as "[cfunctions] [SECONDS]"; "" if that does not begin with [ or a capital letter.
 * *needs_process: -x PID is there. */
static char *usage_of(const struct script_header *head, bool *needs_process)
{
    *needs_process = false;
    const char *usage = strstr(head->text, "usage: "), *file = format(" %s ", head->file);
    const char *start = usage ? strstr(usage, file) : NULL;
    if (!start)
        return "";
    start += strlen(file);
    *needs_process = strncmp(start, "-x PID ", 7) == 0;
    start += *needs_process ? 7 : 0;
    if (*start != '[' && !isupper((unsigned char)*start))
        return "";
    size_t length = strcspn(start, "\n");
    const char *end = strstr(start, "  ");
    return format("%.*s", end && end < start + length ? (int)(end - start) : (int)length, start);
}

char *script_usage(const struct script_header *head)
{
    bool needs_process;
    return usage_of(head, &needs_process);
}

bool next_usage_word(struct usage_word *word)
{
    const char *usage = word->next;
    if (!*usage)
        return false;
    word->optional = *usage == '[';
    word->word = usage + word->optional;
    word->length = (int)strcspn(word->word, " .]");
    word->again = word->word[word->length] == '.';
    word->leads = word->optional && word->word[word->length] == ' ';
    usage += strcspn(usage, " ");
    word->next = usage + (*usage == ' ');
    return true;
}

static bool is_word(const struct usage_word *word, const char *text)
{
    return (int)strlen(text) == word->length && strncmp(text, word->word, strlen(text)) == 0;
}

bool usage_word_is_text(const struct usage_word *word)
{
    return is_word(word, "PATTERN") || is_word(word, "REGEX") || is_word(word, "EXPRESSION");
}

/* ---------------------------------------------------------------- printing a header */

/* Prints a line of the header, with "stap-python NAME -o FILE" for "stap -o FILE NAME.stp". */
static void print_line(const struct script_header *head, const char *line, size_t length)
{
    char *text = format("%.*s", (int)length, line);
    char *stap = strstr(text, "stap "), *file = format(" %s", head->file);
    char *name = stap ? strstr(stap, file) : NULL;
    if (name)
        printf("%.*sstap-python %s%.*s%s\n", (int)(stap - text), text, head->name,
               (int)(name - stap - 4), stap + 4, name + strlen(file));
    else
        puts(text);
}

void script_print_help(const struct script_header *head)
{
    for (const char *line = head->text; *line;) {
        size_t length = strcspn(line, "\n");
        print_line(head, line, length);
        line += length + (line[length] == '\n');
    }
    bool takes_command = strstr(head->text, " -c 'COMMAND");
    printf("\nexample: stap-python %s %s\n", head->name,
           takes_command ? "-c 'python3 PROGRAM.py'" : "-x PID");
    printf("its output: %s/%s_example.txt\n", head->folder, head->name);
}

/* ---------------------------------------------------------------- checking arguments */

/* The length of the name of a global at text. */
static size_t name_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return length;
}

/* The NAME of the next line "-G NAME=..." in text, and its *length; NULL: there is none. */
static const char *next_global(const char *text, size_t *length)
{
    while ((text = strstr(text, "\n-G "))) {
        text += 4;
        *length = name_length(text);
        if (*length && text[*length] == '=')
            return text;
    }
    return NULL;
}

/* Whether word, "NAME=VALUE", names a parameter of the script; *names lists all parameters. */
static bool is_global(const struct script_header *head, const char *word, const char **names)
{
    bool found = false;
    size_t length, wanted = strcspn(word, "=");
    *names = "";
    for (const char *name = head->text; (name = next_global(name, &length));) {
        found |= length == wanted && strncmp(name, word, length) == 0;
        *names = format("%s%s%.*s", *names, **names ? ", " : "", (int)length, name);
    }
    return found;
}

static bool is_number(const char *word)
{
    char *end;
    strtoll(word, &end, 0);
    return *word && !*end;
}

static void check_global(const struct script_header *head, const char *word)
{
    const char *names, *value = strchr(word, '=');
    int length = (int)strcspn(word, "=");
    if (!is_global(head, word, &names))
        die(USAGE, "%s: unknown -G %.*s; there %s%s (see stap-python %s --help)", head->name,
            length, word, *names ? "are: " : "is none", names, head->name);
    if (value && !is_number(value + 1))
        die(USAGE, "%s: -G %.*s must be a number, not '%s' (see stap-python %s --help)", head->name,
            length, word, value + 1, head->name);
}

/* Whether the argument fits the word: a text accepts any, other words in capitals a number, all
 * other words only themselves. */
static bool may_be(const char *argument, const struct usage_word *word)
{
    if (usage_word_is_text(word))
        return true;
    return isupper((unsigned char)*word->word) ? is_number(argument) : is_word(word, argument);
}

void script_check_arguments(const struct script_header *head,
                            const struct stap_arguments *arguments)
{
    bool needs_process;
    const char *all = usage_of(head, &needs_process);
    struct usage_word word = {.next = all};
    bool more = next_usage_word(&word);
    if (needs_process && !arguments->target && !arguments->has_targets && arguments->is_run)
        die(USAGE, "%s: name a process by -x PID (see stap-python %s --help)", head->name,
            head->name);
    for (char **global = arguments->globals; *global; global++)
        check_global(head, *global);
    /* The arguments are in the order of the usage line. */
    for (char **own = arguments->own; *own; own++) {
        while (more && word.optional && !may_be(*own, &word))
            more = !word.leads && next_usage_word(&word);
        if (!more || !may_be(*own, &word))
            die(USAGE, "%s: wrong argument '%s'; it takes %s (see stap-python %s --help)",
                head->name, *own, *all ? all : "none", head->name);
        if (!word.again)
            more = next_usage_word(&word);
    }
    if (more && !word.optional)
        die(USAGE, "%s: %.*s is missing; it takes %s (see stap-python %s --help)", head->name,
            word.length, word.word, all, head->name);
}
