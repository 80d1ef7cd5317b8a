/*
 * Fuzzes stap-python's command line, and what an interpreter answers to enable and disable: the
 * input is the words, each ended by NUL, the byte 0xff, and the answer.  Nothing is run or written;
 * instead it is checked what would be.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach/attach.h"
#include "fuzz.h"
#include "lib/files.h"
#include "lib/processes.h"
#include "lib/program.h"
#include "lib/util.h"
#include "script/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "generated/installed.h"

int launcher_main(int count, char **arguments);

enum { WORDS = 64 };
static char *words[WORDS + 2], *originals[WORDS + 2], *answer;
static size_t count;
static bool is_script, running;

/* ---------------------------------------------------------------- replaced functions */

char *__wrap_run_and_capture(const char *const *arguments, int seconds, int *status);
int __wrap_doctor_main(char **arguments);
int __wrap_attach_main(char **arguments);
int __wrap_detach_main(char **arguments);
int __wrap_precompile_main(char **arguments);
const char *__wrap_attach_process(const struct process *process);
struct attach_targets __wrap_attach_request_to(const struct action *action,
                                               const struct attach_request *request);
void __wrap_http_load(void);
void __wrap_http_set(char *const *headers, const char *password);
int __wrap_isatty(int fd);
int __wrap_script_backend(const char *path, char **arguments);
int __wrap_ps_main(char **arguments);
size_t __wrap_enabled_read(bool with_root, char ***paths);
bool __wrap_enabled_find(const char *path);
void __wrap_enabled_add(const char *path);
void __wrap_enabled_drop(const char *path);
bool __wrap_file_replace(const char *path, const char *text, mode_t mode);
char *__wrap_mkdtemp(char *path);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);
struct processes __wrap_processes_find(void);
size_t __wrap_interpreters_find(struct interpreter **found);
int __wrap_open_output(const char *path);
int __wrap_symlink(const char *target, const char *path);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __wrap_setenv(const char *name, const char *value, int replace);
int __wrap_execvp(const char *file, char *const *arguments);
pid_t __wrap_fork(void);

char *__wrap_run_and_capture(const char *const *arguments, int seconds, int *status)
{
    const char *name = strrchr(arguments[0], '/');
    fuzz_check(strncmp(arguments[1], "-I", 2) == 0 || strcmp(arguments[1], "--version") == 0 ||
                   strcmp(name ? name + 1 : arguments[0], "systemctl") == 0,
               "something else is run");
    (void)seconds;
    *status = answer ? 0 : -1;
    return strdup(answer ? answer : "");
}

int __wrap_doctor_main(char **arguments)
{
    (void)arguments;
    return 0;
}

/* It has a line for each script that does not compile. */
int __wrap_precompile_main(char **arguments)
{
    (void)arguments;
    return 0;
}

int __wrap_attach_main(char **arguments)
{
    (void)arguments;
    return 0;
}

int __wrap_detach_main(char **arguments)
{
    (void)arguments;
    return 0;
}

const char *__wrap_attach_process(const struct process *process)
{
    (void)process;
    return "it is not one of ours";
}

/* It starts a process for each. */
struct attach_targets __wrap_attach_request_to(const struct action *action,
                                               const struct attach_request *request)
{
    static struct attach_target two[] = {{.pid = 1}, {.pid = 4194304}};
    (void)action, (void)request;
    return (struct attach_targets){.all = two, .count = 2};
}

/* libcurl, and what dlopen() keeps of it, would be freed with the run's memory. */
void __wrap_http_load(void) {}

void __wrap_http_set(char *const *headers, const char *password)
{
    for (; *headers; headers++)
        fuzz_check(strchr(*headers, ':') != NULL, "a header without a name");
    fuzz_check(!password || strchr(password, ':') != NULL, "a password without a user");
}

int __wrap_isatty(int fd)
{
    (void)fd;
    return 0;
}

/* It starts bpftrace, and the command. */
int __wrap_script_backend(const char *path, char **arguments)
{
    (void)path, (void)arguments;
    fuzz_leave(0);
    return 0;
}

/* For the samples of record, which then starts stap and waits for it. */
char *__wrap_mkdtemp(char *path)
{
    (void)path;
    fuzz_leave(0);
    return NULL;
}

/* Which are not of the input. */
int __wrap_ps_main(char **arguments)
{
    (void)arguments;
    return 0;
}

/* Nothing has been enabled before. */
size_t __wrap_enabled_read(bool with_root, char ***paths)
{
    (void)with_root;
    *paths = NULL;
    return 0;
}

bool __wrap_enabled_find(const char *path)
{
    (void)path;
    return false;
}

void __wrap_enabled_add(const char *path)
{
    fuzz_check(*path == '/', "a path that can't be read again");
}

void __wrap_enabled_drop(const char *path)
{
    (void)path;
}

/* Which are not of the input. */
struct processes __wrap_processes_find(void)
{
    return (struct processes){0};
}

size_t __wrap_interpreters_find(struct interpreter **found)
{
    *found = NULL;
    return 0;
}

/* What run sets; the environment stays as it is. */
static const char *preload;

int __real_setenv(const char *name, const char *value, int replace);
int __wrap_setenv(const char *name, const char *value, int replace)
{
    if (!running)
        return __real_setenv(name, value, replace);
    if (strcmp(name, "LD_PRELOAD") == 0)
        preload = value;
    else
        fuzz_check(strcmp(name, "SYSTEMTAP_TAPSET") == 0 && !replace, "another variable is set");
    return 0;
}

static int refuse(const char *path)
{
    /* In the directory that the interpreter named, and only by these names. */
    const char *name = strrchr(path, '/');
    fuzz_check(name && (strncmp(name, "/python_stap.", 13) == 0 ||
                        strncmp(name, "/python_stap_start", 18) == 0),
               "another file is touched");
    errno = EACCES;
    return -1;
}

bool __wrap_file_replace(const char *path, const char *text, mode_t mode)
{
    static const char services[] = "/etc/systemd/system/";
    (void)text;
    fuzz_check((mode & ~0644u) == 0, "a file that others may write to");
    if (strncmp(path, services, sizeof services - 1) != 0)
        return refuse(path) == 0;
    path = strchr(path + sizeof services - 1, '/');
    fuzz_check(path && strcmp(path, "/50-systemtap-cpython.conf") == 0,
               "another file of systemd's");
    errno = EACCES;
    return false;
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    if (!running)
        return __real_mkdir(path, mode);
    errno = EEXIST;
    return -1;
}

int __wrap_rmdir(const char *path)
{
    (void)path;
    errno = ENOTEMPTY;
    return -1;
}

/* The same descriptor for each run, as a run that is left closes nothing. */
int __wrap_open_output(const char *path)
{
    enum { OUTPUT = 100 };
    static int null = -1;
    if (strlen(path) % 2) {
        errno = EACCES;
        return -1;
    }
    if (null < 0)
        null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return dup2(null, OUTPUT);
}

int __wrap_symlink(const char *target, const char *path)
{
    fuzz_check(strcmp(target, shim_file()) == 0, "a link to another file");
    return refuse(path);
}

int __wrap_rename(const char *from, const char *to)
{
    refuse(from);
    return refuse(to);
}

/* libFuzzer calls it too. */
int __real_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    return running ? refuse(path) : __real_unlink(path);
}

/* The word of that number, from 0, in text, in which a shell sees only '...' and \' as special;
 * NULL: it has fewer. */
static char *word_of(const char *text, size_t number)
{
    char *word = calloc(strlen(text) + 1, 1), *end = word;
    for (; *text == ' '; text++)
        ;
    for (bool quoted = false; *text && (quoted || *text != ' '); text++)
        if (*text == '\'')
            quoted = !quoted;
        else if (!quoted && *text == '\\' && text[1])
            *end++ = *++text;
        else
            *end++ = *text;
    *end = '\0';
    return number && *text ? word_of(text, number - 1) : number ? NULL : word;
}

/* Checks that the command of a -c has the shim, and is otherwise the original. */
static void check_command(const char *command, const char *original)
{
    char *variable = word_of(command, 1), *shell = word_of(command, 2);
    fuzz_check(strncmp(command, "env '", 5) == 0, "a command without the shim");
    fuzz_check(variable && strcmp(variable, "LD_PRELOAD=" SHIM_PATH) == 0,
               "a command with another LD_PRELOAD");
    if (strpbrk(original, "|&;<>()`\n")) {
        /* stapio would take a quote at the begin for the end of the command */
        char *text = word_of(command, 4),
             *given = format("%s%s", original[0] == '\'' ? " " : "", original);
        fuzz_check(shell && strcmp(shell, "sh") == 0 && text && strcmp(text, given) == 0,
                   "a shell gets another command");
    } else {
        size_t length = strlen(command), end = strlen(original);
        fuzz_check(length > end && strcmp(command + length - end, original) == 0,
                   "the command is another");
    }
}

/* Checks a word that is not the original: -c COMMAND, -cCOMMAND or -vcCOMMAND. */
static void check_changed(const char *word, const char *original, const char *before)
{
    size_t same = 0;
    while (word[same] && word[same] == original[same])
        same++;
    const char *at = strstr(word, "env 'LD_PRELOAD=");
    fuzz_check(at != NULL, "a word is changed");
    const char *env = program_in_path("env");
    size_t start = (size_t)(at - word), folders = strlen(env) - strlen("env");
    fuzz_check(start >= folders && strncmp(word + start - folders, env, folders) == 0,
               "another env");
    start -= folders;
    /* with SystemTap 5.1 */
    char *umask = format("%s sh -c 'umask 022 && exec \"$@\"' sh ", env);
    if (start >= strlen(umask) && strncmp(word + start - strlen(umask), umask, strlen(umask)) == 0)
        start -= strlen(umask);
    fuzz_check(start <= same, "a word is changed before the command");
    fuzz_check(start ? word[start - 1] == 'c' && word[0] == '-'
                     : before[0] == '-' && strchr(before, 'c'),
               "a word is changed that is not a command");
    check_command(at, original + start);
}

static bool is_value(char *const *words)
{
    return words[0] && words[1] && strcmp(words[0], "-G") == 0 &&
           strncmp(words[1], "__python_argument", 17) == 0;
}

/* Moves *at behind what stap-python puts before the given words.  Returns the first -G of a value,
 * or what is in its place. */
static char *const *skip_added(char *const **at)
{
    static const char *const pairs[][2] = {{"-B", "KCFLAGS=-w"},
                                           {"-d", "/"},
                                           {"-E", "probe begin { __python_output_begins() }"},
                                           {"-G", "__python_announces=1"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if ((*at)[0] && (*at)[1] && strcmp((*at)[0], pairs[i][0]) == 0 &&
            strncmp((*at)[1], pairs[i][1], strlen(pairs[i][1])) == 0)
            *at += 2;
    char *const *values = *at;
    while (is_value(*at))
        *at += 2;
    return values;
}

/* Whether the next of the values is that text; goes on to the one after it. */
static bool is_next_value(char *const **values, const char *text)
{
    const char *digits = is_value(*values) ? strchr((*values)[1], '=') + 1 : NULL;
    if (!digits || strlen(digits) != 2 * strlen(text))
        return false;
    for (size_t i = 0; text[i]; i++) {
        unsigned byte;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1 || byte != (unsigned char)text[i])
            return false;
    }
    *values += 2;
    return true;
}

/* Whether it is a command that writes the command line of stap: among its words may be -e, too. */
static bool is_sampler(const char *word)
{
    return strcmp(word, "record") == 0 || strcmp(word, "top") == 0 || strcmp(word, "dump") == 0;
}

/* The child would go on fuzzing: exit() returns to the fuzzer. */
pid_t __wrap_fork(void)
{
    errno = EAGAIN;
    return -1;
}

int __wrap_execvp(const char *file, char *const *arguments)
{
    fuzz_check(file == arguments[0], "another program than the first word");
    if (!is_script) {
        fuzz_check(preload && strcmp(preload, SHIM_PATH) == 0, "run sets another LD_PRELOAD");
        fuzz_check(strcmp(originals[1], "run") == 0, "a command is run");
        for (size_t i = 0; arguments[i]; i++)
            fuzz_check(i + 2 < count, "a word too many");
        fuzz_leave(0);
    }
    fuzz_check(strcmp(file, "true") == 0, "another program than stap");
    char *const *given = originals + (script_file(originals[1]) ? 2 : 1), *const *at =
                                                                              arguments + 1;
    for (char *const *word = given; *word; word++)
        if (strncmp(*word, "--backend", 9) == 0) /* which is removed */
            fuzz_leave(0);
    if (given == originals + 2) {
        const char *folder = SCRIPTS_DIR "/";
        fuzz_check(*at && strncmp(*at, folder, strlen(folder)) == 0 &&
                       !strchr(*at + strlen(folder), '/'),
                   "a script that is not ours");
        at++;
    } else if (is_sampler(originals[1]) || !is_own_script(originals + 1))
        fuzz_leave(0);
    char *const *values = skip_added(&at);
    for (; *given; given++, at++) {
        fuzz_check(*at != NULL, "a word is lost");
        if (strcmp(*at, "-") == 0 && is_next_value(&values, *given))
            continue;
        if (strcmp(*at, *given) != 0)
            check_changed(*at, *given, given[-1]);
    }
    fuzz_check(*at == NULL, "a word too many");
    fuzz_check(!is_value(values), "a value that was not given");
    fuzz_leave(0);
    return -1;
}

/* ---------------------------------------------------------------- running */

static void start(void)
{
    char **copy = calloc(WORDS + 3, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = strdup(words[i]);
    optind = 0; /* getopt() may have stopped within a word of the last input */
    launcher_main((int)count, copy);
}

int LLVMFuzzerInitialize(int *argument_count, char ***arguments)
{
    (void)argument_count;
    (void)arguments;
    unsetenv("LD_PRELOAD");
    setenv("STAP", "true", 1);
    setenv("PATH", "/usr/bin:/bin", 1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length;
    char *part = fuzz_part(&data, &size, &length), *end = part + length;
    answer = data ? strndup((const char *)data, size) : NULL;
    words[0] = (char *)"stap-python";
    count = 1;
    for (char *word = part; word < end && count < WORDS; word += strlen(word) + 1)
        words[count++] = word;
    words[count] = NULL;
    memcpy(originals, words, sizeof words);
    is_script = count > 1 && strcmp(words[1], "run") != 0;
    preload = NULL;
    running = true;
    int status = fuzz_run(start);
    running = false;
    fuzz_check(status >= -1 && (status <= 2 || (status >= 126 && status <= 127)),
               "its exit status");
    fuzz_check_said(status);
    free(answer);
    free(part);
    return 0;
}
