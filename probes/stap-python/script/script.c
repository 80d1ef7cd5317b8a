/*
 * Finds the project's scripts and runs stap on them, after it has prepared the processes to trace.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/shim_state.h"
#include "generated/installed.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/processes.h"
#include "lib/util.h"
#include "script/script.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- native markers for a script */

/* The marker of the probe point python.POINT: function__entry for function.entry. */
static char *marker_of(const char *point, size_t length)
{
    const char *dot = memchr(point, '.', length);
    if (!dot)
        return format("%.*s", (int)length, point);
    int first = (int)(dot - point);
    return format("%.*s%s__%.*s", first, point,
                  strncmp(point, "import.", 7) == 0 ? "__find__load" : "", (int)length - first - 1,
                  dot + 1);
}

static bool has_live_marker(const struct process *process, const char *marker)
{
    for (unsigned i = 0; marker_name(i); i++)
        if (strcmp(marker_name(i), marker) == 0)
            return strcmp(native_marker_state(&process->python, i), "live") == 0;
    return false;
}

/* Skips "%( $# > N %? filtered. %)" in a probe point.  Whether the script has more than N
 * arguments, and therefore probes a filtered marker. */
static bool is_filtered(const char **point, size_t arguments)
{
    unsigned least;
    int length = 0;
    if (sscanf(*point, "%%( $# > %u %%? filtered. %%)%n", &least, &length) < 1 || length == 0)
        return false;
    *point += length;
    return arguments > least;
}

/* How many of the markers that a script probes are live native ones in a process. */
enum own { NATIVE_NONE, NATIVE_SOME, NATIVE_ALL };

static enum own own_markers_for(const struct script_probes *script, const struct process *process)
{
    unsigned probed = 0, live = 0;
    const char *code = script->code;
    if (!tapset_searches(process->code_name) || !process_shares_our_mounts(process))
        return NATIVE_NONE;
    for (const char *probe = code; (probe = strstr(probe, "\nprobe python.")); probed++) {
        probe += 14;
        if (is_filtered(&probe, script->arguments))
            return NATIVE_NONE;
        size_t length = strspn(probe, "abcdefghijklmnopqrstuvwxyz.");
        live += has_live_marker(process, marker_of(probe, length));
    }
    /* Native markers pass no frameptr. */
    return live == 0                                   ? NATIVE_NONE
           : live < probed || strstr(code, "frameptr") ? NATIVE_SOME
                                                       : NATIVE_ALL;
}

/* ---------------------------------------------------------------- the process of -x */

/* For a process in which process_open() found no CPython. */
static void say_why_unknown(const struct process *process, const char *why)
{
    if (!process->start)
        die(FAILED, "%d: %s", process->pid, why);
    if (!process->is_hidden)
        warn("%d: %s; only what it starts from now on is traced", process->pid, why);
    else
        warn("%d: whether it has the shim is unknown: %s", process->pid, why);
}

/* How many of the processes that are marked (chosen) are Pythons, except pid. */
static unsigned pythons_beside(const struct processes *processes, pid_t pid)
{
    unsigned pythons = 0;
    const char *why;
    for (size_t i = 0; i < processes->count; i++) {
        struct process process;
        if (processes->all[i].chosen && processes->all[i].pid != pid)
            pythons += process_open(processes->all[i].pid, &process, &why);
    }
    return pythons;
}

/* Warns if pid's parent runs the same program: pid is then one of several workers, and which of
 * them does the work is unknown. */
static void say_what_works_beside(pid_t pid)
{
    struct process process, parent;
    const char *why;
    struct processes processes = processes_find();
    pid_t master = processes_parent(&processes, pid);
    if (!master || !process_open(pid, &process, &why) || !process_open(master, &parent, &why) ||
        strcmp(process.python.path, parent.python.path) != 0)
        return;
    processes_choose(&processes, master);
    processes_choose_descendants(&processes);
    unsigned pythons = pythons_beside(&processes, pid);
    if (pythons > 1) { /* the parent is one of them */
        pythons--;
        warn("-x traces %d alone, not the %u other Python%s of its parent %d: to see all, "
             "stap-python attach --children %d, then leave out -x",
             pid, pythons, pythons == 1 ? "" : "s", master, master);
    }
}

/* -x traces the children that a process starts from now on, not those that it started before. */
static void say_what_is_left_out(pid_t pid)
{
    struct processes processes = processes_find();
    processes_choose(&processes, pid);
    processes_choose_descendants(&processes);
    unsigned pythons = pythons_beside(&processes, pid);
    if (pythons)
        warn("-x does not trace the %u Python%s that %d has already started: to see %s, "
             "stap-python attach --children %d, then leave out -x",
             pythons, pythons == 1 ? "" : "s", pid, pythons == 1 ? "it" : "them", pid);
}

/* Warns if tracers don't see the loaded shim; exits if no native marker serves the script either.
 */
static void look_at_shim(const struct process *process, enum own own)
{
    struct shim_status status = shim_status(process, ACTIVATION_TIMEOUT_MS);
    if (status.state == SHIM_SILENT && own == NATIVE_NONE)
        die(FAILED, "%d: %s", process->pid, shim_complaint(&status));
    if (status.state == SHIM_SILENT || status.state == SHIM_UNKNOWN)
        warn("%d: %s", process->pid, shim_complaint(&status));
    else if (status.why)
        warn("%d: %s", process->pid, status.why);
    else if (status.state == SHIM_WAITS)
        warn("%d: the shim becomes active when Python code next runs there", process->pid);
}

static void say_attached(const struct process *process, bool again)
{
    struct process now;
    const char *why;
    if (!process_open(process->pid, &now, &why))
        die(FAILED, "%d: %s", process->pid, why);
    struct shim_status status = shim_status(&now, ACTIVATION_TIMEOUT_MS);
    if (status.state == SHIM_ACTIVE)
        warn("attached%s to %d: active", again ? " again" : "", now.pid);
    else if (status.state == SHIM_WAITS)
        warn("attached%s to %d: loaded; it becomes active when Python code next runs there",
             again ? " again" : "", now.pid);
    else
        die(FAILED, "%d: %s", now.pid, shim_complaint(&status));
}

static void make_visible(const struct script_probes *script, pid_t pid)
{
    struct process process;
    const char *why;
    if (!process_open(pid, &process, &why)) {
        say_why_unknown(&process, why);
        return;
    }
    enum own own = own_markers_for(script, &process);
    if (own == NATIVE_ALL)
        return;
    bool again = process.shim && process_lacks_watcher(&process);
    if (process.shim && !again) {
        look_at_shim(&process, own);
        return;
    }
    why = attach_process(&process);
    if (why && own == NATIVE_NONE)
        die(FAILED, "%d lacks the markers, and the shim can't be loaded: %s", pid, why);
    if (why)
        warn("%d has only markers of its own, as the shim can't be loaded: %s", pid, why);
    else
        say_attached(&process, again);
}

void script_prepare_target(const struct script_probes *script, pid_t pid)
{
    if (in_pid_namespace())
        warn("the kernel knows %d by another PID, which this PID namespace does not show: -x sees "
             "nothing here: run this outside of the container, or leave out -x",
             pid);
    make_visible(script, pid);
    say_what_is_left_out(pid);
    say_what_works_beside(pid);
}

/* ---------------------------------------------------------------- without -x */

void script_list_running(const struct script_probes *script)
{
    unsigned all = 0, with_shim = 0, silent = 0, with_own = 0;
    unsigned others = 0;
    const char *other = "";
    if (!file_exists(under_root("/proc")))
        return;
    struct processes processes = processes_find();
    for (size_t i = 0; i < processes.count; i++) {
        struct process process;
        const char *why;
        if (!process_open(processes.all[i].pid, &process, &why)) {
            others += process.python.file.other != NULL;
            other = process.python.file.other ? process.python.file.other : other;
            continue;
        }
        all++;
        struct shim_status status = shim_status(&process, 0);
        if (status.state == SHIM_SILENT || status.state == SHIM_UNKNOWN)
            silent++;
        else if (process.shim && !process_lacks_watcher(&process))
            with_shim++;
        else if (own_markers_for(script, &process) == NATIVE_ALL)
            with_own++;
    }
    /* This user may be unable to read other users' processes. */
    const char *whose = geteuid() == 0 ? "" : " of yours";
    if (!all)
        warn("no Python%s runs; stap-python run CMD starts one with the shim", whose);
    else
        warn("%u Python%s%s run%s, %u with the shim%s%s%s", all, all == 1 ? "" : "s", whose,
             all == 1 ? "s" : "", with_shim,
             silent ? format(", %u in which it is silent: stap-python ps says why", silent) : "",
             with_own ? format(", %u with live markers of CPython's own", with_own) : "",
             with_shim + silent + with_own == all
                 ? ""
                 : "; stap-python attach --all loads it into the rest, which stap-python ps lists");
    if (others)
        warn("%u process%s %s, not CPython: nothing can be seen of %s", others,
             others == 1 ? " runs" : "es run", other, others == 1 ? "it" : "them");
}

/* ---------------------------------------------------------------- the list of scripts */

static const char *scripts_folder(void)
{
    return source_tree ? format("%s/scripts", source_tree) : SCRIPTS_DIR;
}

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

/* The command with the shim preloaded.  A command that needs a shell is given to sh here: env would
 * otherwise set LD_PRELOAD for its first program only. */
static char *with_shim(const char *command, const char *stap)
{
    char *preload = shell_quoted(format("LD_PRELOAD=%s", preload_value()));
    if (strpbrk(command, "|&;<>()`\n"))
        command = format("sh -c %s", shell_quoted(command));
    return with_callers_umask(format("env %s %s", preload, command), stap);
}

/* Adds the shim to the command of each -c in stap's arguments. */
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

/* Prepares the process of -x, or warns of what the script will not see. */
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

/* stap's command line.  says: on a terminal, a second script (-E) prints when tracing begins.  With
 * -c, the start of the command shows that. */
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

/* Checks all that stap needs, exits if it is missing, and returns stap's command line. */
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
