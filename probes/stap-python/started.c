/*
 * See started.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "started.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "text.h"

char **proc_strings(pid_t pid, const char *name)
{
    enum { LIMIT = 1 << 20 };
    char *text = calloc(1, LIMIT + 1);
    int fd = open(under_root(format("/proc/%d/%s", pid, name)), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t length = 0, count = 0;
    ssize_t got;
    if (!text)
        abort();
    while (fd >= 0 && length < LIMIT && (got = read(fd, text + length, LIMIT - length)) > 0)
        length += (size_t)got;
    if (fd >= 0)
        close(fd);
    for (const char *at = text; at < text + length; at += strlen(at) + 1)
        count++;
    char **strings = calloc(count + 1, sizeof *strings), *at = text;
    if (!strings)
        abort();
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        strings[i] = strdup(at);
    free(text);
    return strings;
}

char *proc_command_line(pid_t pid)
{
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        abort();
    for (char **word = proc_strings(pid, "cmdline"), **first = word; *word; word++)
        fprintf(out, "%s%s", word == first ? "" : " ", *word);
    fclose(out);
    /* Of a program that has overwritten it, the rest may be blanks. */
    for (size_t end = strlen(line); end && line[end - 1] == ' ';)
        line[--end] = '\0';
    return line;
}

char *proc_environ(pid_t pid, const char *name)
{
    size_t length = strlen(name);
    for (char **string = proc_strings(pid, "environ"); *string; string++)
        if (strncmp(*string, name, length) == 0 && (*string)[length] == '=')
            return *string + length + 1;
    return NULL;
}

bool started_environment_is_whole(pid_t pid)
{
    for (char **string = proc_strings(pid, "environ"); *string; string++)
        if (!strchr(*string, '='))
            return false;
    return true;
}

/* Whether its program is called python, and is not only one that has a libpython. */
static bool is_called_python(const struct process *process)
{
    const char *name = strrchr(process->python.path, '/');
    return name && strncmp(name, "/python", 7) == 0;
}

/* Whether its program takes a Python's command line: it is called python, or has or calls CPython's
 * main function. */
static bool is_pythons_program(const struct process *process)
{
    static const char *const mains[] = {"Py_BytesMain", "Py_Main"};
    if (is_called_python(process))
        return true;
    const char *program = under_root(format("/proc/%d/exe", process->pid));
    for (size_t i = 0; i < sizeof mains / sizeof *mains; i++)
        if (elf_names(program, mains[i]))
            return true;
    return false;
}

/* A command line begins with a word by which a program can be called, and ends with a NUL. */
char *started_title(const struct process *process)
{
    char **words = proc_strings(process->pid, "cmdline"), *first = words[0];
    bool whole = first && (strchr(first, '/') || !strpbrk(first, " :[")) && words[1];
    return !first || whole ? NULL : proc_command_line(process->pid);
}

/* ---------------------------------------------------------------- its script */

/* What Python's option in word is about: 's' and 'm' and the place of the script or module in what
 * follows (0: in the word itself, behind *at); 'c': there is none; 'o': an option, with how many
 * words. */
static char option_kind(const char *word, size_t *at, int *words)
{
    *words = 1;
    if (*word != '-')
        return 's';
    if (!word[1])
        return 'c';
    if (word[1] == '-') {
        *words = strcmp(word, "--check-hash-based-pycs") == 0 ? 2 : 1;
        return 'o';
    }
    *at = strcspn(word, "cmWX");
    char option = word[*at];
    bool whole = option && !word[++*at];
    *words = whole ? 2 : 1;
    return option == 'c' || option == 'm' ? option : 'o';
}

/* The path, from the root of the process whose working directory it starts in. */
static char *absolute(pid_t pid, char *path)
{
    char cwd[PATH_MAX] = "";
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return *path != '/' &&
                   readlink(under_root(format("/proc/%d/cwd", pid)), cwd, sizeof cwd - 1) > 0
               ? format("%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path)
               : path;
}

char *proc_script(const struct process *process)
{
    char **word = proc_strings(process->pid, "cmdline");
    if (!*word || !is_pythons_program(process))
        return NULL;
    for (word++; *word;) {
        size_t at = 0;
        int words;
        switch (option_kind(*word, &at, &words)) {
        case 's':
            return absolute(process->pid, *word);
        case 'c':
            return NULL;
        case 'm':
            return words == 1 ? *word + at : word[1];
        default:
            for (; words && *word; words--)
                word++;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- its virtual environment */

/* Whether there is a file of any kind at path in the process's root: a link's target need not exist
 * for us. */
static bool is_there(pid_t pid, const char *path)
{
    struct stat status;
    return lstat(under_root(format("/proc/%d/root%s", pid, path)), &status) == 0;
}

/* The program as it was called, an absolute path in the process's root; NULL: it does not say that
 * any more. */
static char *called_as(const struct process *process)
{
    pid_t pid = process->pid;
    char *word = proc_strings(pid, "cmdline")[0], *path = NULL, *folders;
    char cwd[PATH_MAX] = "";
    if (!word || !*word)
        return NULL;
    if (*word == '/')
        path = word;
    else if (strchr(word, '/') &&
             readlink(under_root(format("/proc/%d/cwd", pid)), cwd, sizeof cwd - 1) > 0)
        path = format("%s/%s", cwd, word);
    else if (!strchr(word, '/') && (folders = proc_environ(pid, "PATH")))
        for (char *folder; !path && (folder = strsep(&folders, ":"));)
            if (*folder == '/' && is_there(pid, format("%s/%s", folder, word)))
                path = format("%s/%s", folder, word);
    return path && is_there(pid, path) ? path : NULL;
}

/* What uwsgi's command line names as its virtual environment. */
static char *uwsgi_venv(pid_t pid)
{
    static const char *const options[] = {"-H", "--home", "--pyhome", "--venv", "--virtualenv"};
    char program[PATH_MAX] = "/";
    if (readlink(under_root(format("/proc/%d/exe", pid)), program, sizeof program - 1) <= 0 ||
        strncmp(strrchr(program, '/'), "/uwsgi", 6) != 0)
        return NULL;
    for (char **word = proc_strings(pid, "cmdline"); *word; word++)
        for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
            size_t length = strlen(options[i]);
            if (strncmp(*word, options[i], length) != 0)
                continue;
            if (!(*word)[length])
                return word[1];
            if ((*word)[length] == '=')
                return *word + length + 1;
        }
    return NULL;
}

char *proc_venv(const struct process *process)
{
    pid_t pid = process->pid;
    char *called = is_called_python(process) ? called_as(process) : NULL;
    if (called) {
        char *folder = dirname(strdup(called)), *home = dirname(strdup(folder));
        return is_there(pid, format("%s/pyvenv.cfg", folder)) ||
                       is_there(pid, format("%s/pyvenv.cfg", home))
                   ? home
                   : NULL;
    }
    char *venv = uwsgi_venv(pid);
    venv = venv ? venv : proc_environ(pid, "VIRTUAL_ENV");
    return venv && *venv == '/' && is_there(pid, format("%s/pyvenv.cfg", venv)) ? venv : NULL;
}
