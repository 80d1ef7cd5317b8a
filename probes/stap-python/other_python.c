/*
 * See other_python.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "other_python.h"

#include <stdbool.h>
#include <string.h>

#include "command.h"
#include "elf_file.h"
#include "file.h"
#include "interpreter.h"
#include "program.h"
#include "pyenv.h"
#include "text.h"

/* As many words of a command may come before the Python, as in "env A=1 timeout 5 pypy3". */
enum { WORDS_MAX = 8 };

/* The program in the first line of a script, "#!/usr/bin/env pypy3" or "#!/usr/bin/pypy3"; NULL: it
 * has none. */
static char *program_of_script(const char *path)
{
    char *line = read_file(path, 256), *word, *name;
    if (!line || strncmp(line, "#!", 2) != 0)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    line += 2;
    while ((word = strsep(&line, " \t"))) {
        name = strrchr(word, '/');
        if (*word && *word != '-' && strcmp(name ? name : word, "/env") != 0)
            return program_in_path(word);
    }
    return NULL;
}

/* Says so if the word is such a program. */
static bool warn_of(const char *word)
{
    struct elf_file file;
    const char *why, *program = program_in_path(word);
    for (int scripts = 0; program && scripts < 2; scripts++) {
        program = pyenv_program(program, &why);
        if (program && elf_read(program, &file, &why)) {
            if (file.other)
                warn("%s %s", program, strstr(unsupported_reason(&file), "is "));
            return file.other;
        }
        program = program ? program_of_script(program) : NULL;
    }
    return false;
}

void warn_of_other_python(char **words)
{
    for (int i = 0; i < WORDS_MAX && words[i] && !warn_of(words[i]); i++)
        ;
}

void warn_of_other_python_in(const char *command)
{
    char *words[WORDS_MAX + 1] = {NULL}, *rest = strdup(command), *word;
    for (int i = 0; rest && i < WORDS_MAX && (word = strsep(&rest, " \t\n'\"|&;<>()`"));)
        if (*word)
            words[i++] = word;
    warn_of_other_python(words);
}
