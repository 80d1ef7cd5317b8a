/*
 * Finds the project's scripts, and runs stap on them or on a script of the user's, after it has
 * prepared the processes to trace.
 *
 * SPDX-License-Identifier: MIT
 */

#include "generated/installed.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/processes.h"
#include "lib/program.h"
#include "lib/util.h"
#include "script/script.h"
#include "systemtap/systemtap.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the list of scripts */

static const char *scripts_folder(void)
{
    return source_tree ? format("%s/scripts", source_tree) : SCRIPTS_DIR;
}

static int is_script(const struct dirent *entry)
{
    return ends_with(entry->d_name, ".stp");
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

char **script_names(void)
{
    struct dirent **entries;
    int count = scandir(scripts_folder(), &entries, is_script, alphasort);
    if (count <= 0)
        die(FAILED, "no scripts in %s", scripts_folder());
    char **names = calloc((size_t)count + 1, sizeof *names);
    if (!names)
        abort();
    for (int i = 0; i < count; i++)
        names[i] = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - 4);
    return names;
}

int list_scripts(void)
{
    for (char **name = script_names(); *name; name++)
        printf("%-12s %s\n", *name, title_of(*name));
    return 0;
}

char *script_file(const char *name)
{
    if (strchr(name, '/') || name[0] == '.' || name[0] == '-')
        return NULL;
    char *path = format("%s/%s%s", scripts_folder(), name, ends_with(name, ".stp") ? "" : ".stp");
    return file_exists(path) ? path : NULL;
}

/* ---------------------------------------------------------------- stap's command line */

/* The program with which the command of -c begins.  What stap compiles has its path in it. */
static const char *env_program(void)
{
    char *path = program_in_path("env");
    return path ? path : "/usr/bin/env";
}

/* The command of -c with the shim preloaded.  A command that needs a shell is given to sh here: env
 * would otherwise set LD_PRELOAD for its first program only. */
static char *with_shim(const char *command)
{
    char *preload = shell_quoted(format("LD_PRELOAD=%s", preload_value()));
    if (strpbrk(command, "|&;<>()`\n"))
        /* glibc's wordexp(), by which stapio splits the command, takes '' at the beginning of a
         * word for a word of its own. */
        command =
            format("sh -c %s", shell_quoted(*command == '\'' ? format(" %s", command) : command));
    const char *env = env_program();
    char *shimmed = format("%s %s %s", env, preload, command), *whole = with_callers_umask(shimmed);
    return strcmp(whole, shimmed) == 0 ? whole : format("%s %s", env, whole);
}

/* Adds the shim to the command of each -c in stap's arguments. */
static void add_shim(char **arguments)
{
    struct stap_argument argument = {.next = arguments};
    while (next_stap_argument(&argument)) {
        if (argument.option != 'c')
            continue;
        int before = (int)(argument.value - *argument.word);
        *argument.word = format("%.*s%s", before, *argument.word, with_shim(argument.value));
    }
}

/* ---------------------------------------------------------------- arguments of a script */

/* The text in hexadecimal digits. */
static char *hexadecimal(const char *text)
{
    char *digits = "";
    for (; *text; text++)
        digits = format("%s%02x", digits, (unsigned char)*text);
    return digits;
}

/* Passes the values among the script's own arguments by -G, which is not a part of what stap
 * compiles: a compiled script serves for all values (tapset/python_argument.stp).  Words at which a
 * script decides what to compile ("cfunctions") stay as they are. */
static void add_values(struct texts *words, const char *code, char **arguments, char **own)
{
    enum { LONGEST = 250 }; /* the digits have to fit into one of stap's strings */
    for (int n = 1; own[n - 1]; n++) {
        const char *value = own[n - 1];
        size_t at = 0;
        if (!*value || strlen(value) > LONGEST ||
            !strstr(code, format("__python_argument(%d, @%d)", n, n)) ||
            strstr(code, format("@%d == \"%s\"", n, value)))
            continue;
        texts_add_two(words, "-G", format("__python_argument%d=%s", n, hexadecimal(value)));
        while (arguments[at] != value)
            at++;
        arguments[at] = strdup("-");
    }
}

/* ---------------------------------------------------------------- running */

/* Whether stap finds our tapset. */
static bool has_tapset(void)
{
    const char *folder = getenv("SYSTEMTAP_TAPSET");
    folder = folder && *folder ? folder : stap_data_dir("tapset");
    return file_exists(format("%s/python_output.stp", folder));
}

/* stap's command line for a script: path, or NULL if it is among the arguments.  All runs of a
 * script have the same second script (-E) and module (-d), as if each had a -c: stap then compiles
 * it only once.  announces: a line on stderr says when tracing begins. */
static struct texts stap_command(const char *path, char **arguments,
                                 const struct stap_arguments *given, const char *code,
                                 bool announces)
{
    struct texts words = {0};
    texts_add(&words, stap_name());
    if (path)
        texts_add(&words, path);
    add_no_warnings(&words, given->kernel ? given->kernel : kernel_release());
    if (!given->is_listing && has_tapset()) {
        texts_add_two(&words, "-d", env_program());
        texts_add_two(&words, "-E", "probe begin { __python_output_begins() }");
        if (announces)
            texts_add_two(&words, "-G", "__python_announces=1");
    }
    if (path)
        add_values(&words, code, arguments, given->own);
    for (; *arguments; arguments++)
        texts_add(&words, *arguments);
    return words;
}

/* Prepares the process of -x, or warns of what the script will not see. */
static void look_at_processes(const char *code, const struct stap_arguments *given)
{
    struct script_probes script = {.code = code};
    while (given->own[script.arguments])
        script.arguments++;
    if (given->target && parse_pid(given->target))
        script_prepare_target(&script, parse_pid(given->target));
    else if (given->command)
        warn_of_other_python_in(given->command);
    else if (!given->target && !given->has_targets)
        script_list_running(&script);
}

/* Checks all that stap needs, exits if it is missing, and returns stap's command line.  path: the
 * script, or NULL if it is among the arguments; code: its text; runtime: what runtime_for() has
 * found, or NULL. */
static char **prepared_command(const char *path, const char *code, char **arguments,
                               const struct stap_arguments *given, const struct runtime *runtime)
{
    if (!stap_program())
        die(127, "%s not found: run stap-python doctor", stap_name());
    keep_others_out();
    if (given->is_compiled && !given->has_runtime) {
        const char *kernel = given->kernel ? given->kernel : kernel_release();
        struct runtime found = runtime ? *runtime : runtime_for(kernel);
        use_corrected_runtime(&found);
    }
    if (source_tree)
        setenv("SYSTEMTAP_TAPSET", format("%s/build/tapset", source_tree), 0);
    if (given->is_run && strstr(code, "python"))
        look_at_processes(code, given);
    add_shim(arguments);
    bool announces = given->is_run && !given->command && isatty(STDERR_FILENO);
    if (given->is_run && isatty(STDERR_FILENO))
        say_if_compiling();
    return stap_command(path, arguments, given, code, announces).all;
}

/* script_command(), with what runtime_for() has found, or NULL. */
static char **command_with(const struct runtime *runtime, const char *path, char **arguments)
{
    struct script_header head = script_header(path);
    struct stap_arguments given = stap_arguments(arguments);
    script_check_arguments(&head, &given);
    return prepared_command(path, head.code, arguments, &given, runtime);
}

char **script_command(const char *path, char **arguments)
{
    return command_with(NULL, path, arguments);
}

/* ---------------------------------------------------------------- stap or bpftrace */

/* Whether bpftrace can run the script at path with these arguments.  Options other than -x and -c
 * are stap's, and whoever sets STAP wants that stap. */
static bool bpftrace_may_run(const char *path, const struct script_header *head,
                             const struct stap_arguments *given)
{
    const char *named = secure_getenv("STAP");
    size_t count = 0;
    for (; given->own[count]; count++)
        if (given->own[count][0] == '-')
            return false;
    return !(named && *named) && !given->help && !given->has_more &&
           !(given->target && given->command) && geteuid() == 0 && program_in_path("bpftrace") &&
           has_bpftrace_script(path) && bpftrace_script_takes(path, script_usage(head), count);
}

/* Why stap is not known to work; NULL: it is, and *runtime is filled in. */
static const char *stap_in_doubt(struct runtime *runtime)
{
    int seconds;
    if (!stap_program())
        return "SystemTap is not installed";
    if (!has_headers(kernel_release()))
        return "the headers of this kernel are not installed";
    *runtime = runtime_for(kernel_release());
    if (runtime->too_old)
        return runtime->too_old;
    if (!checked_find(kernel_release(), CHECKED_PROBE, &seconds))
        return "stap has compiled nothing for this kernel yet, which stap-python doctor has it do";
    return NULL;
}

/* For --backend auto: returns only if stap is to run the script; whether *runtime is filled in. */
static bool run_bpftrace_if_in_doubt(const char *path, char **arguments, struct runtime *runtime)
{
    struct script_header head = script_header(path);
    struct stap_arguments given = stap_arguments(arguments);
    struct texts words = {0};
    const char *why;
    if (!bpftrace_may_run(path, &head, &given))
        return false;
    if (!(why = stap_in_doubt(runtime)))
        return true;
    script_check_arguments(&head, &given);
    if (given.target)
        texts_add_two(&words, "-x", given.target);
    if (given.command)
        texts_add_two(&words, "-c", given.command);
    for (char **own = given.own; *own; own++)
        texts_add(&words, *own);
    warn("%s: bpftrace runs the script (--backend stap: SystemTap does)", why);
    script_backend(path, words.all ? words.all : given.own);
}

/* Removes --backend from the arguments, and returns its value; "auto" if it is not there. */
static const char *take_backend(char **arguments)
{
    const char *backend = "auto";
    struct stap_argument argument = {.next = arguments};
    while (next_stap_argument(&argument)) {
        bool is_alone = argument.option == '-' && strcmp(argument.value, "--backend") == 0;
        if (!is_alone && (argument.option != '-' || strncmp(argument.value, "--backend=", 10) != 0))
            continue;
        backend = is_alone ? *argument.next : argument.value + 10;
        if (!backend || (strcmp(backend, "auto") != 0 && strcmp(backend, "stap") != 0 &&
                         strcmp(backend, "bpftrace") != 0))
            die(USAGE, "--backend is stap, bpftrace, or auto: stap if it is known to work");
        char **rest = argument.next + is_alone;
        argument.next = argument.word;
        for (char **to = argument.word; (*to++ = *rest++);)
            ;
    }
    return backend;
}

int script_main(const char *path, char **arguments)
{
    const char *backend = take_backend(arguments);
    struct runtime runtime;
    if (strcmp(backend, "bpftrace") == 0)
        script_backend(path, arguments);
    bool is_known =
        strcmp(backend, "auto") == 0 && run_bpftrace_if_in_doubt(path, arguments, &runtime);
    if (stap_arguments(arguments).help) {
        struct script_header head = script_header(path);
        script_print_help(&head);
        return 0;
    }
    exec_program(command_with(is_known ? &runtime : NULL, path, arguments));
}

/* ---------------------------------------------------------------- scripts of the user's */

static const char own_usage[] =
    "usage: stap-python [STAP'S OPTIONS...] -e 'SCRIPT' [ARGUMENTS...]\n"
    "       stap-python [STAP'S OPTIONS...] FILE.stp [ARGUMENTS...]\n"
    "\n"
    "Runs stap on a script of yours, with this tapset, and with SystemTap's runtime corrected for\n"
    "this kernel if it has known faults with it. The process of -x gets the shim if it lacks it,\n"
    "and the command of -c starts with it. man stap has stap's options.\n"
    "\n"
    "example: stap-python -e 'probe python.function.entry { println(funcname) }' -x PID\n";

/* The file of the script among stap's arguments, if it is not that of -e; NULL: there is none. */
static const char *own_file(const struct stap_arguments *given)
{
    const char *file = given->own[0];
    return file && is_script_file(file) ? file : NULL;
}

bool is_own_script(char **arguments)
{
    struct stap_arguments given = stap_arguments(arguments);
    return given.script || own_file(&given);
}

/* Each probe point "python.NAME" of a script on a line of its own, as "probe python.NAME", so that
 * lists of probe points are read, too; after them the script. */
static char *with_points(const char *script)
{
    char *points = "";
    for (const char *at = script; (at = strstr(at, "python.")); at++) {
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz.");
        if (at == script || (!isalnum((unsigned char)at[-1]) && !strchr("_./\"", at[-1])))
            points = format("%s\nprobe %.*s", points, (int)length, at);
    }
    return format("%s\n%s", points, script);
}

int own_script_main(char **arguments)
{
    if (strcmp(take_backend(arguments), "bpftrace") == 0)
        die(USAGE, "bpftrace does not run a script of yours for stap: leave out --backend");
    struct stap_arguments given = stap_arguments(arguments);
    if (given.help) {
        fputs(own_usage, stdout);
        return 0;
    }
    const char *script = given.script ? given.script : read_file(own_file(&given), 1 << 20);
    if (!script)
        die(FAILED, "%s: cannot be read: %s", own_file(&given),
            errno == EINVAL ? "it is not a regular file" : strerror(errno));
    exec_program(prepared_command(NULL, with_points(script), arguments, &given, NULL));
}
