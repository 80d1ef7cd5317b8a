/*
 * See ps.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ps.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "attach_refusal.h"
#include "command.h"
#include "container.h"
#include "process.h"
#include "processes.h"
#include "shim_state.h"
#include "started.h"
#include "text.h"

static const char usage[] =
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
    "  COMMAND    as it was started, cut at the width of the terminal\n"
    "\n"
    "--json prints an array of objects instead, whole, with null for -.\n";

/* What is shown of a process; NULL: a dash. */
struct row {
    pid_t pid;
    const char *user, *version, *shim, *reason, *venv, *container, *command;
};

/* ---------------------------------------------------------------- a process */

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

static const char *command_of(pid_t pid)
{
    char *command = proc_command_line(pid), *name = proc_file(pid, "comm");
    return *command ? command : format("[%.*s]", (int)strcspn(name, "\n"), name);
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

/* A process that runs another Python than CPython, for that reason not to be seen. */
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

/* ---------------------------------------------------------------- the table */

enum { COLUMNS = 7, WIDEST = 32 };

/* The first part of a reason, up to one of these characters, without what it begins with in a
 * sentence. */
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
    /* Why attach refuses may be a sentence with a comma; why a shim is silent goes on with the
     * cure. */
    bool cannot = row->shim && strcmp(row->shim, "can't") == 0;
    if (column == 3 && row->reason)
        texts[3] = format("%s: %s", row->shim, short_reason(row->reason, cannot ? ":" : ",:"));
    return texts[column] ? printable(texts[column]) : "-";
}

/* How many columns the terminal at stdout has; 0: it is none. */
static size_t terminal_width(void)
{
    struct winsize size;
    return isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* rows: the first is the header. */
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

/* ---------------------------------------------------------------- JSON */

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
    help_if_asked(arguments, usage);
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
