/*
 * `stap-python record`, `top` and `dump`: turn their options into those of the scripts pyprof and
 * pydump, and the samples into other formats.
 *
 * SPDX-License-Identifier: MIT
 */

#include "commands.h"
#include "lib/files.h"
#include "lib/processes.h"
#include "lib/program.h"
#include "lib/util.h"
#include "profile/flamegraph.h"
#include "profile/pprof.h"
#include "profile/sources.h"
#include "profile/speedscope.h"
#include "profile/stacks.h"
#include "script/script.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- formats */

enum format { FOLDED, SVG, HTML, SOURCES, SPEEDSCOPE, PPROF, UNKNOWN_FORMAT };

/* The other names are py-spy's. */
static const struct {
    const char *name;
    enum format format;
} formats[] = {
    {"folded", FOLDED}, {"raw", FOLDED},      {"flamegraph", SVG}, {"svg", SVG},
    {"html", HTML},     {"sources", SOURCES}, {"pprof", PPROF},    {"speedscope", SPEEDSCOPE}};

static const struct {
    const char *end;
    enum format format;
} suffixes[] = {{".svg", SVG}, {".html", HTML}, {".json", SPEEDSCOPE}, {".pb.gz", PPROF}};

static enum format format_of_name(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i].name) == 0)
            return formats[i].format;
    die(USAGE,
        "record: the format is folded (or raw), flamegraph (or svg), html, sources, speedscope or "
        "pprof, not '%s'",
        name);
}

static enum format format_of_file(const char *path)
{
    for (size_t i = 0; path && i < sizeof suffixes / sizeof *suffixes; i++)
        if (ends_with(path, suffixes[i].end))
            return suffixes[i].format;
    return FOLDED;
}

/* ---------------------------------------------------------------- options */

static const char record_usage[] =
    "usage: stap-python record [OPTION...] -p PID\n"
    "       stap-python record [OPTION...] -- CMD...\n"
    "\n"
    "Samples where a Python process, and what it starts, uses the CPU, until it ends or Ctrl-C, "
    "and\n"
    "prints its stacks. The shim is loaded into the process if it lacks it. It is the script "
    "pyprof:\n"
    "stap-python pyprof --help.\n"
    "\n"
    "  -p, --pid PID          the process\n"
    "  -o, --output FILE      to this file; .svg, .html, .json (speedscope) and .pb.gz (pprof) "
    "at its end\n"
    "                         are formats\n"
    "  -d, --duration S       for so many seconds\n"
    "  -r, --rate N           samples a second on each CPU: 10, 49, 99, 100, 199, 499, 997, 1000 "
    "(99)\n"
    "  -f, --format FORMAT    folded, or raw: a line for each stack; flamegraph, or svg: a file "
    "for "
    "a\n"
    "                         browser; html: with a table of functions, too; sources: "
    "an\n"
    "                         HTML page of the source files, with the samples beside each line; "
    "speedscope:\n"
    "                         a file for speedscope.app; pprof: for go tool pprof, with lines and "
    "threads\n"
    "      --reverse          svg, html: from the innermost function on, downwards\n"
    "      --title TITLE      svg, html, sources, speedscope: this title\n"
    "  -n, --native           with the function in C that the Python function was in, and its "
    "library\n"
    "  -t, --threads          each thread apart\n";

static const char top_usage[] =
    "usage: stap-python top [-r N] [-d S] -p PID\n"
    "       stap-python top [-r N] [-d S] -- CMD...\n"
    "\n"
    "Samples where a Python process, and what it starts, uses the CPU, and prints a table of\n"
    "functions each second. The shim is loaded into the process if it lacks it. It is the script\n"
    "pyprof: stap-python pyprof --help. On a terminal the table is a screen with keys: o, t and f\n"
    "order it by own samples, by total ones and by function, p pauses, q ends, ? shows the keys.\n"
    "What CMD prints follows at the end, and CMD reads nothing then.\n"
    "\n"
    "  -p, --pid PID          the process\n"
    "  -d, --duration S       for so many seconds\n"
    "  -r, --rate N           samples a second on each CPU: 10, 49, 99, 100, 199, 499, 997, 1000 "
    "(99)\n";

static const char dump_usage[] =
    "usage: stap-python dump -p PID\n"
    "\n"
    "Prints the Python stacks of all threads of a process, once. The shim is loaded into the "
    "process\n"
    "if it lacks it. It is the script pydump: stap-python pydump --help.\n"
    "\n"
    "  -p, --pid PID          the process\n";

/* A command, the script that it runs, and its options as getopt()'s letters. */
struct sampler {
    const char *name, *usage, *script, *letters;
    bool runs_commands, has_screen;
};

/* getopt()'s values of options without a letter, which stand in letters, too. */
enum { REVERSE = 1, TITLE = 2 };

/* The script's arguments so far, and options whose arguments are added last. */
struct line {
    char *words[40];
    size_t count;
    char *rate, *duration, *output, *pid, *title;
    char *command; /* as it is shown */
    enum format format;
    bool reverses;
};

static void add(struct line *line, char *word)
{
    line->words[line->count++] = word;
}

static void add_two(struct line *line, char *option, char *value)
{
    add(line, option);
    add(line, value);
}

/* word, a whole number from 1 to 999999; exits if it is another one. */
static char *number_for(const struct sampler *sampler, const char *what, char *word)
{
    if (!*word || word[0] == '0' || strlen(word) > 6 || word[strspn(word, "0123456789")])
        die(USAGE, "%s: %s must be a number from 1 on, not '%s'", sampler->name, what, word);
    return word;
}

/* A command line that stap and a shell split into these words. */
static char *command_of(char **words)
{
    char *command = "";
    for (; *words; words++)
        command = format("%s%s%s", command, *command ? " " : "", shell_quoted(*words));
    return command;
}

static void add_option(const struct sampler *sampler, int letter, struct line *line)
{
    switch (letter) {
    case 'p':
        if (!parse_pid(optarg))
            die(USAGE, "%s: '%s' is not a PID", sampler->name, optarg);
        line->pid = optarg;
        add_two(line, "-x", optarg);
        break;
    case 'o':
        line->output = optarg;
        break;
    case 'd':
        line->duration = number_for(sampler, "the duration, in seconds,", optarg);
        break;
    case 'r':
        line->rate = number_for(sampler, "the rate", optarg);
        break;
    case 'f':
        line->format = format_of_name(optarg);
        break;
    case 'n':
        add_two(line, "-G", "native=1");
        break;
    case 't':
        add_two(line, "-G", "threads=1");
        break;
    case REVERSE:
        line->reverses = true;
        break;
    case TITLE:
        line->title = optarg;
        break;
    case 'i':
        die(USAGE,
            "%s: samples are of threads on a CPU: stap-python pyblocked shows where threads "
            "sleep, and stap-python dump the stacks of all, once",
            sampler->name);
    default:
        die(USAGE, "%s: unknown option, or one without its value (see stap-python %s --help)",
            sampler->name, sampler->name);
    }
}

/* Opens the file for the results, before minutes of sampling: path may be unwritable. */
static int open_output(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0)
        die(FAILED, "record: cannot write %s: %s", path, strerror(errno));
    return fd;
}

/* The path for stap's -o, with each % doubled: there, % begins a part of the date. */
static char *for_stap(const char *path)
{
    char *text = calloc(2, strlen(path) + 1), *at = text;
    if (!text)
        abort();
    for (; *path; path++) {
        if (*path == '%')
            *at++ = '%';
        *at++ = *path;
    }
    return text;
}

/* Ends the script after the duration; if shows, prints the progress on a terminal. */
static void add_duration(struct line *line, bool shows)
{
    if (line->duration)
        add_two(line, "-G", format("seconds=%s", line->duration));
    if (shows && isatty(STDERR_FILENO))
        add_two(line, "-G", "progress=1");
}

/* ---------------------------------------------------------------- conversion */

static char *folder; /* of the samples, while they are only there */

static void remove_folder(void)
{
    if (!folder)
        return;
    unlink(format("%s/folded", folder));
    rmdir(folder);
}

/* A path for the folded stacks, in a new folder. */
static char *new_folded(void)
{
    const char *parent = secure_getenv("TMPDIR");
    folder = format("%s/stap-python.XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        die(FAILED, "record: %s: cannot make a folder for the samples: %s", folder,
            strerror(errno));
    atexit(remove_folder);
    return format("%s/folded", folder);
}

/* "python3 x.py", or "python3 x.py (PID 12)". */
static char *default_title(const struct line *line)
{
    if (!line->pid)
        return line->command;
    char *command = proc_command_line(parse_pid(line->pid));
    return *command ? format("%s (PID %s)", command, line->pid) : format("PID %s", line->pid);
}

static void write_format(const struct profile *profile, const struct line *line, FILE *output)
{
    struct graph graph = {.title = line->title, .is_reversed = line->reverses};
    graph.note = format("%s%u Hz, %llu samples", line->reverses ? "from the inside out; " : "",
                        profile->rate, (unsigned long long)profile->stacks[0].total[0]);
    if (line->format == SVG)
        flamegraph_write(profile, &graph, output);
    else if (line->format == HTML)
        html_write(profile, &graph, output);
    else if (line->format == SOURCES)
        sources_write(profile, line->title, graph.note, !line->pid, output);
    else if (line->format == SPEEDSCOPE)
        speedscope_write(profile, line->title, output);
    else
        profile_write_pprof(profile, output);
}

/* Writes the samples to the descriptor, and if that fails says where they are still. */
static void convert(const struct line *line, const char *folded, int output)
{
    const char *target = line->output ? line->output : "stdout";
    struct profile *profile = profile_new();
    char *kept = folder;
    folder = NULL; /* stays if a line here is the last */
    profile->rate = line->rate ? (unsigned)atoi(line->rate) : 99;
    profile_read(profile, 0, "record", folded);
    profile_sum(profile);
    FILE *file = fdopen(output, "w");
    if (file && (ftruncate(output, 0) == 0 || errno == EINVAL)) {
        write_format(profile, line, file);
        if (!ferror(file) && fclose(file) == 0) {
            folder = kept;
            return;
        }
    }
    die(FAILED, "record: cannot write %s: %s: the samples are in %s", target, strerror(errno),
        folded);
}

/* Runs the script as a child: its folded stacks become another format. */
static int run_and_convert(const char *path, struct line *line, int output)
{
    struct stat written = {.st_size = 0};
    char *folded = new_folded();
    if (!line->title)
        line->title = default_title(line);
    if (line->format == PPROF || line->format == SOURCES) {
        add_two(line, "-G", line->format == PPROF ? "record=1" : "record=2");
        add_two(line, "-G", "lines=1");
    }
    add_two(line, "-o", for_stap(folded));
    if (line->rate)
        add(line, line->rate);
    int status = run_in_foreground(script_command(path, line->words));
    bool is_empty = stat(folded, &written) != 0 || written.st_size == 0;
    if (is_empty && status == 0)
        die(FAILED, "record: there were no samples: nothing is written");
    if (!is_empty)
        convert(line, folded, output);
    return status;
}

/* Runs the script: as a child if its output is converted, else in place of this program. */
static int run(const struct sampler *sampler, struct line *line)
{
    char *path = script_file(sampler->script);
    int output = STDOUT_FILENO;
    if (line->format == UNKNOWN_FORMAT)
        line->format = format_of_file(line->output);
    if (line->reverses && line->format != SVG && line->format != HTML)
        die(USAGE, "record: --reverse is for the formats svg and html");
    if (line->title && (line->format == FOLDED || line->format == PPROF))
        die(USAGE, "record: --title is for the formats svg, html, sources and speedscope");
    if (line->output)
        output = open_output(line->output);
    if (line->format != FOLDED)
        return run_and_convert(path, line, output);
    if (line->output)
        add_two(line, "-o", for_stap(line->output));
    if (line->rate)
        add(line, line->rate);
    if (sampler->has_screen)
        return top_run(printable(default_title(line)), line->rate ? line->rate : "99",
                       script_command(path, line->words));
    return script_main(path, line->words);
}

/* ---------------------------------------------------------------- commands */

/* shows: whether to print the progress, which would disturb a table. */
static int sample(const struct sampler *sampler, char **arguments, char *global, bool shows)
{
    static const struct option options[] = {{"pid", required_argument, NULL, 'p'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"duration", required_argument, NULL, 'd'},
                                            {"rate", required_argument, NULL, 'r'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"native", no_argument, NULL, 'n'},
                                            {"threads", no_argument, NULL, 't'},
                                            {"idle", no_argument, NULL, 'i'},
                                            {"reverse", no_argument, NULL, REVERSE},
                                            {"title", required_argument, NULL, TITLE},
                                            {NULL, 0, NULL, 0}};
    struct line line = {.format = UNKNOWN_FORMAT};
    int letter, count = 0;
    bool chosen = false;
    help_if_asked(arguments, sampler->usage);
    while (arguments[count])
        count++;
    opterr = 0;
    /* getopt() skips the first word, the command's name. */
    while ((letter = getopt_long(count + 1, arguments - 1, sampler->letters, options, NULL)) >= 0) {
        if (line.count > 16)
            die(USAGE, "%s: too many options", sampler->name);
        add_option(sampler, strchr(sampler->letters, letter) ? letter : '?', &line);
        chosen |= letter == 'p';
    }
    char **command = arguments - 1 + optind;
    if (chosen == (*command != NULL) || (*command && !sampler->runs_commands))
        die(USAGE, "%s: name a process by -p PID%s (see stap-python %s --help)", sampler->name,
            sampler->runs_commands ? ", or a command behind --" : "", sampler->name);
    add_duration(&line, shows);
    for (char **word = command; *word; word++)
        line.command = format("%s%s%s", line.command ? line.command : "", line.command ? " " : "",
                              shell_word(*word));
    if (*command)
        add_two(&line, "-c",
                sampler->has_screen ? top_quiet_command(line.command) : command_of(command));
    if (global)
        add_two(&line, "-G", global);
    return run(sampler, &line);
}

int record_main(char **arguments)
{
    const struct sampler record = {
        "record", record_usage, "pyprof", "+:p:o:d:r:f:nti\1\2:", true, false};
    return sample(&record, arguments, NULL, true);
}

int top_main(char **arguments)
{
    const struct sampler top = {"top", top_usage, "pyprof", "+:p:d:r:", true, top_has_screen()};
    return sample(&top, arguments, top.has_screen ? "live=2" : "live=1", false);
}

int dump_main(char **arguments)
{
    const struct sampler dump = {"dump", dump_usage, "pydump", "+:p:", false, false};
    return sample(&dump, arguments, NULL, false);
}
