/*
 * `stap-python list` and `ps`: who provides the markers, and the state of the shim in processes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/shim_state.h"
#include "commands.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/processes.h"
#include "lib/program.h"
#include "lib/util.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---------------------------------------------------------------- ps */

static const char ps_usage[] =
    "usage: stap-python ps [--json]\n"
    "\n"
    "Shows the CPythons that run, a line each, and the PyPys, of which nothing can be seen:\n"
    "\n"
    "  SHIM       active: tracers see its markers; loaded: they will when Python code next runs;\n"
    "             detached, by stap-python detach; detaching: it will be when Python code next\n"
    "             runs; off: it was started with PYTHON_STAP=off; silent, unknown: tracers don't\n"
    "             see it, or that can't be told, and why; -: not loaded, stap-python attach PID\n"
    "             loads it; can't: and why attach would refuse\n"
    "  VENV       its virtual environment, by pyvenv.cfg, uwsgi's options or VIRTUAL_ENV\n"
    "  CONTAINER  its container; \"other root\" or \"other mounts\" if it sees other files than "
    "we\n"
    "  COMMAND    as it was started, up to 65,536 characters, cut at the width of the terminal\n"
    "\n"
    "--json prints an array of objects instead, whole, with null for -.\n";

/* The columns of a process; NULL is printed as a dash. */
struct row {
    pid_t pid;
    const char *user, *version, *shim, *reason, *venv, *container, *command;
};

/* ---------------------------------------------------------------- ps: a process */

static const char *user_of(pid_t pid)
{
    unsigned user;
    char *ids = status_field(proc_file(pid, "status"), "Uid");
    if (!ids || sscanf(ids, "%*u %u", &user) != 1)
        return NULL;
    const struct passwd *entry = getpwuid(user);
    return entry ? strdup(entry->pw_name) : format("%u", user);
}

static void fill_in_shim(struct row *row, const struct process *process)
{
    static const char *const words[] = {
        [SHIM_ACTIVE] = "active", [SHIM_DETACHED] = "detached", [SHIM_DETACHES] = "detaching",
        [SHIM_WAITS] = "loaded",  [SHIM_SILENT] = "silent",     [SHIM_UNKNOWN] = "unknown"};
    struct shim_status status = shim_status(process, 0);
    if ((row->reason = unsupported_reason(&process->python.file)))
        row->shim = "can't";
    else if (status.state != SHIM_ACTIVE && environment_refusal(process))
        row->shim = "off";
    else if (status.state != SHIM_ABSENT)
        row->shim = words[status.state],
        row->reason = status.state == SHIM_ACTIVE ? NULL : status.why;
    else if ((row->reason = attach_refusal(process)))
        row->shim = "can't";
}

/* A thousand processes of one user may have a megabyte each. */
static const char *command_of(pid_t pid)
{
    enum { COMMAND_MAX = 64 << 10 };
    char *command = proc_command_line(pid), *name = proc_file(pid, "comm");
    char *text = *command ? utf8_prefix(command, COMMAND_MAX)
                          : format("[%.*s]", (int)strcspn(name, "\n"), name);
    free(command);
    return text;
}

static struct row row_of(const struct process *process)
{
    pid_t pid = process->pid;
    struct row row = {.pid = pid,
                      .user = user_of(pid),
                      .version = short_version(&process->python.file),
                      .venv = proc_venv(process),
                      .container = container_name(process),
                      .command = command_of(pid)};
    fill_in_shim(&row, process);
    return row;
}

/* The row of a process that runs another Python; reason: why the shim can't be in it. */
static struct row row_of_other(const struct process *process, const char *reason)
{
    return (struct row){.pid = process->pid,
                        .user = user_of(process->pid),
                        .version = process->python.file.other,
                        .shim = "can't",
                        .reason = reason,
                        .venv = proc_venv(process),
                        .container = container_name(process),
                        .command = command_of(process->pid)};
}

/* ---------------------------------------------------------------- ps: the table */

enum { COLUMNS = 7, WIDEST = 32 };

/* A reason for the table: up to one of the characters in ends or a bracket, and without a leading
 * "it is ", "it was " or "it ". */
static const char *short_reason(const char *reason, const char *ends)
{
    static const char *const starts[] = {"it is ", "it was ", "its ", "it "};
    char *text = format("%.*s", (int)strcspn(reason, ends), reason);
    char *bracket = strstr(text, " (");
    if (bracket)
        *bracket = '\0';
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (i != 2 && strncmp(text, starts[i], strlen(starts[i])) == 0)
            return text + strlen(starts[i]);
    return text;
}

static const char *cell(const struct row *row, int column)
{
    const char *texts[COLUMNS] = {
        format("%d", row->pid), row->user,   row->version, row->shim, row->venv,
        row->container,         row->command};
    /* A refusal of attach may contain a comma; in the reason of a silent shim, the cure follows a
     * comma or colon. */
    bool cannot = row->shim && strcmp(row->shim, "can't") == 0;
    if (column == 3 && row->reason)
        texts[3] = format("%s: %s", row->shim, short_reason(row->reason, cannot ? ":" : ",:"));
    return texts[column] ? printable(texts[column]) : "-";
}

/* The number of columns of the terminal at stdout; 0: stdout is no terminal. */
static size_t terminal_width(void)
{
    struct winsize size;
    return isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* rows[0] is the header. */
static void print_table(const char *(*rows)[COLUMNS], size_t count)
{
    size_t widths[COLUMNS] = {0}, terminal = terminal_width();
    for (size_t i = 0; i < count; i++)
        for (int column = 0; column < COLUMNS; column++) {
            size_t width = utf8_length(rows[i][column]);
            if (width > widths[column] && width <= WIDEST)
                widths[column] = width;
        }
    for (size_t i = 0; i < count; i++) {
        char *line = "";
        for (int column = 0; column < COLUMNS; column++) {
            const char *text = rows[i][column];
            size_t width = utf8_length(text),
                   blanks = width < widths[column] ? widths[column] - width : 0;
            if (column == 0)
                line = format("%*s%s", (int)blanks, "", text);
            else if (column == COLUMNS - 1)
                line = format("%s  %s", line, text);
            else
                line = format("%s  %s%*s", line, text, (int)blanks, "");
        }
        puts(terminal ? utf8_prefix(line, terminal) : line);
    }
}

static void print_rows(const struct row *rows, size_t count)
{
    static const char *const header[COLUMNS] = {"PID",  "USER",      "VERSION", "SHIM",
                                                "VENV", "CONTAINER", "COMMAND"};
    const char *(*cells)[COLUMNS] = calloc(count + 1, sizeof *cells);
    if (!cells)
        abort();
    memcpy(cells[0], header, sizeof header);
    for (size_t i = 0; i < count; i++)
        for (int column = 0; column < COLUMNS; column++)
            cells[i + 1][column] = cell(&rows[i], column);
    print_table(cells, count + 1);
}

/* ---------------------------------------------------------------- ps: JSON */

static void print_field(const char *name, const char *value)
{
    printf(", \"%s\": %s", name, value ? json_string(value) : "null");
}

static void print_json(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("%s{\"pid\": %d", i ? ",\n" : "[\n", rows[i].pid);
        print_field("user", rows[i].user);
        print_field("version", rows[i].version);
        print_field("shim", rows[i].shim);
        print_field("reason", rows[i].reason);
        print_field("venv", rows[i].venv);
        print_field("container", rows[i].container);
        print_field("command", rows[i].command);
        putchar('}');
    }
    puts(count ? "\n]" : "[]");
}

int ps_main(char **arguments)
{
    help_if_asked(arguments, ps_usage);
    bool json = arguments[0] && strcmp(arguments[0], "--json") == 0;
    if (arguments[json])
        die(USAGE, "ps: unexpected argument '%s' (see stap-python ps --help)", arguments[json]);
    struct processes processes = processes_find();
    struct row *rows = calloc(processes.count + 1, sizeof *rows);
    size_t count = 0, hidden = 0;
    if (!rows)
        abort();
    for (size_t i = 0; i < processes.count; i++) {
        struct process process;
        const char *why;
        if (process_open(processes.all[i].pid, &process, &why))
            rows[count++] = row_of(&process);
        else if (process.python.file.other)
            rows[count++] = row_of_other(&process, why);
        else
            hidden += process.is_hidden;
    }
    (json ? print_json : print_rows)(rows, count);
    processes_warn_of_hidden(hidden);
    return 0;
}

/* ---------------------------------------------------------------- list: markers */

static const char usage[] =
    "usage: stap-python list [PYTHON|PID|FILE]\n"
    "\n"
    "Shows the markers of an interpreter (a name in PATH, or the path of a program or libpython) "
    "or\n"
    "a process, and who provides them; without an argument, a line for each interpreter found. A\n"
    "shim of pyenv's stands for the interpreter that it would start. CPython's own markers are\n"
    "\n"
    "  live      works as documented\n"
    "  partly    misses events, and has entries without returns: python.* does not use it\n"
    "  unusable  fires, but misses events or may crash the program: python.* does not use it\n"
    "  dead      exists, but never fires\n"
    "  -         does not exist\n"
    "  ?         unknown, as the version is\n"
    "\n"
    "The last column is the provider that the python.* probe points use: CPython, the shim, or\n"
    "nothing.\n"
    "\n"
    "In a process the shim is active: an event that is fired now reaches a tracer that attaches\n"
    "now; silent, or unknown, with the reason and what to do: then the exit status is 1. The\n"
    "next line says what can't be read of it, as stacks, and why.\n";

/* The watcher does not run during a fork, which is assumed to end within this time. */
enum { FORK_MS = 300 };

/* The markers in the shim's file, a bit each; 0: it can't be read. */
static unsigned shim_markers(void)
{
    struct elf_file shim;
    const char *why;
    return elf_read(under_root(shim_file()), &shim, &why) ? shim.markers : 0;
}

/* The printed word for a result of native_marker_state(). */
static const char *provider_text(const char *worth)
{
    return strcmp(worth, "fires") == 0 ? "unusable" : worth;
}

static void print_markers(const struct interpreter *python, const char *code_name, unsigned shims)
{
    bool looked_in = tapset_searches(code_name), unusable = false, partly = false;
    printf("  %-26s %-14s %-9s %s\n", "marker", "CPython's own", "the shim", "python.* uses");
    for (unsigned i = 0; marker_name(i); i++) {
        const char *own = native_marker_state(python, i);
        bool has = shims & 1u << i;
        const char *from = has ? "the shim" : "nothing";
        if (looked_in && strcmp(own, "live") == 0)
            from = "CPython";
        printf("  %-26s %-14s %-9s %s\n", marker_name(i), provider_text(own), has ? "yes" : "-",
               from);
        unusable |= strcmp(own, "fires") == 0;
        partly |= strcmp(own, "partly") == 0;
    }
    if (unusable)
        puts("  unusable: it fires, but misses events or may crash the program, so python.* never "
             "uses it");
    if (partly)
        puts("  partly: it misses events, so python.* never uses it, and it does not silence the "
             "shim");
}

static char *version_text(const struct elf_file *file)
{
    char *version = file->minor < 0 ? "of unknown version" : format("3.%d", file->minor);
    return format("CPython %s%s", version, file->free_threaded ? ", free-threaded" : "");
}

static void print_interpreter(const struct interpreter *python)
{
    const char *reason = python->file.is_cpython ? unsupported_reason(&python->file) : NULL;
    char *enabled = pth_of(python->path), *base = pth_of_base_only(python->path);
    printf("%s: %s\n", printable(python->path),
           python->file.is_cpython ? version_text(&python->file)
                                   : "not a CPython, but it has markers of provider python");
    if (strcmp(python->path, python->code) != 0)
        printf("  its code: %s\n", printable(python->code));
    if (reason)
        printf("  the shim does not support it: %s\n", reason);
    else if (enabled)
        printf("  the shim: loaded at each start, by %s\n", printable(enabled));
    else if (base)
        printf(
            "  the shim: not loaded at each start: %s is the base interpreter's, and this virtual "
            "environment has no system site-packages: stap-python enable %s\n",
            printable(base), printable(python->path));
    else if (!file_exists(under_root(shim_file())))
        printf("  the shim: not found: %s\n", shim_file());
    else if (python->file.is_cpython)
        printf("  the shim: loaded when started with stap-python run\n");
    print_markers(python, python->code, reason || !python->file.is_cpython ? 0 : shim_markers());
}

static void print_shim(const struct process *process, const struct shim_status *status)
{
    const char *file = process->shim ? printable(process->shim) : NULL, *lacks;
    if (status->state == SHIM_ABSENT)
        printf("  the shim: not loaded; load it with stap-python attach %d\n", process->pid);
    else if (status->state == SHIM_ACTIVE)
        printf("  the shim: active, %s\n%s%s%s", file, status->why ? "    " : "",
               status->why ? status->why : "", status->why ? "\n" : "");
    else if (status->state == SHIM_DETACHED)
        printf("  the shim: detached, %s; stap-python attach %d makes it active again\n", file,
               process->pid);
    else if (status->state == SHIM_DETACHES)
        printf(
            "  the shim: detaching: it has no events any more, and its hooks go when Python code "
            "next runs there: %s\n",
            file);
    else if (status->state == SHIM_WAITS)
        printf("  the shim: loaded; it becomes active when Python code next runs there: %s\n",
               file);
    else if (status->state == SHIM_SILENT)
        printf("  the shim: silent, %s\n    %s\n", file, status->why);
    else
        printf("  the shim: unknown, %s\n    %s\n", file, status->why);
    if (status->state == SHIM_ACTIVE && (lacks = process_lacks(process)))
        printf("    %s\n", printable(lacks));
}

/* Returns the exit status. */
static int print_process(const struct process *process)
{
    const struct elf_file *file = &process->python.file;
    const char *reason = unsupported_reason(file);
    struct shim_status status = shim_status(process, FORK_MS);
    bool fires = !reason && (status.state == SHIM_ACTIVE || status.state == SHIM_WAITS);
    printf("%d: %s, %s\n", process->pid, printable(process->python.path), version_text(file));
    if (process->pythons > 1)
        printf("  one of %u CPythons in it: which one runs can't be told\n", process->pythons);
    if (strcmp(process->python.path, process->code_name) != 0)
        printf("  its code: %s\n", printable(process->code_name));
    if (reason)
        printf("  the shim does not support it: %s\n", reason);
    else
        print_shim(process, &status);
    print_markers(&process->python, process->code_name, fires ? shim_markers() : 0);
    return reason || status.state == SHIM_SILENT || status.state == SHIM_UNKNOWN ? FAILED : 0;
}

/* ---------------------------------------------------------------- list: all interpreters */

/* The prefixes of the live native markers, each once: "gc, import, audit"; "-": none. */
static char *live_families(const struct interpreter *python)
{
    char *families = "";
    for (unsigned i = 0; marker_name(i); i++) {
        const char *name = marker_name(i), *end = strstr(name, "__");
        char *family = format("%.*s", end ? (int)(end - name) : (int)strlen(name), name);
        if (strcmp(native_marker_state(python, i), "live") == 0 && !strstr(families, family))
            families = format("%s%s%s", families, *families ? ", " : "", family);
    }
    return *families ? families : "-";
}

/* How the interpreter gets the shim. */
static char *shim_state(const struct interpreter *python)
{
    const char *reason = unsupported_reason(&python->file);
    if (reason)
        return format("unsupported: %s", reason);
    if (pth_of(python->path))
        return "enabled";
    return file_exists(under_root(shim_file())) ? "preload" : "not found";
}

static void print_all(void)
{
    struct interpreter *all;
    size_t count = interpreters_find(&all), width = strlen("PYTHON");
    if (!count)
        die(FAILED, "no CPython found: run stap-python doctor");
    for (size_t i = 0; i < count; i++)
        if (utf8_length(printable(all[i].path)) > width)
            width = utf8_length(printable(all[i].path));
    printf("%-*s  %-7s  %-26s  SHIM\n", (int)width, "PYTHON", "VERSION", "ITS OWN LIVE MARKERS");
    for (size_t i = 0; i < count; i++) {
        const struct elf_file *file = &all[i].file;
        char *path = printable(all[i].path), *version = short_version(file);
        printf("%s%*s  %-7s  %-26s  %s\n", path, (int)(width - utf8_length(path)), "",
               version ? version : "?", live_families(&all[i]), shim_state(&all[i]));
    }
    printf("\nenabled: each start loads the shim; preload: stap-python run PROGRAM does\n"
           "all markers of one, and who provides them: stap-python list PYTHON\n");
}

int list_main(char **arguments)
{
    struct interpreter python;
    struct process process;
    const char *why;
    help_if_asked(arguments, usage);
    const char *word = arguments[0];
    if (word && (word[0] == '-' || !*word || arguments[1]))
        die(USAGE, "list: takes one interpreter, PID or file (see stap-python list --help)");
    if (!word) {
        print_all();
        return 0;
    }
    if (parse_pid(word)) {
        if (!process_open(parse_pid(word), &process, &why))
            die(FAILED, "%s: %s", word, why);
        return print_process(&process);
    }
    const char *path = strchr(word, '/') || file_exists(word) ? word : program_in_path(word);
    if (!path)
        die(FAILED, "%s: no such file, and no such command in PATH", word);
    const char *program = pyenv_program(path, &why);
    if (!program || !interpreter_open(program, &python, &why))
        die(FAILED, "%s: %s", path, why);
    print_interpreter(&python);
    return 0;
}
