/*
 * `stap-python record`, `top` and `dump`: turn their options into those of the scripts pyprof,
 * pywall, pyheap and pydump, and the samples into other formats.
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
#include "profile/push.h"
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

/* The options that name processes; letters as getopt() has them, for options without one. */
#define TARGETS_USAGE \
    "  -p, --pid PID          the process; several: -p PID,PID, or -p again\n" \
    "      --name PATTERN     the Pythons that stap-python attach --name finds; may be repeated\n" \
    "      --children         with the descendants of these processes that are Pythons\n" \
    "      --all              all Pythons that you may inspect; record and top: all that run " \
    "with\n" \
    "                         the shim, also such as start later\n"
#define TARGETS_LETTERS "p:\21:\22\23"
enum { NAME = '\21', CHILDREN, ALL, DEPTH };

static const char record_usage[] =
    "usage: stap-python record [OPTION...] -p PID|--name PATTERN|--all\n"
    "       stap-python record [OPTION...] -- CMD...\n"
    "\n"
    "Samples where Python processes, and what they start, use the CPU, until CMD ends or Ctrl-C, "
    "and\n"
    "prints their stacks. The shim is loaded into a process that lacks it. It is the script "
    "pyprof:\n"
    "stap-python pyprof --help. Of several processes each stack begins with its process.\n"
    "\n" TARGETS_USAGE
    "  -o, --output FILE      to this file; .svg, .html, .json (speedscope) and .pb.gz (pprof) "
    "at its end\n"
    "                         are formats\n"
    "  -d, --duration S       for so many seconds\n"
    "  -r, --rate N           samples a second on each CPU: 10, 19, 49, 99, 100, 199, 499, 997, "
    "1000 (99)\n"
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
    "  -t, --threads          each thread apart\n"
    "  -w, --wall             the time asleep, too, each thread apart, in microseconds: the script "
    "pywall\n"
    "      --memory           the memory in use, in bytes, by what allocated it meanwhile: the "
    "script\n"
    "                         pyheap. pprof: with blocks, and with all that was allocated\n"
    "      --bytes N          --memory: a sample for each N bytes that are allocated, on the "
    "average\n"
    "                         (524288)\n"
    "      --push URL         to the Pyroscope at this URL, as pprof profiles, while it samples\n"
    "      --every S          a profile for each S seconds (10)\n"
    "      --service NAME     the service of the profiles (the name of each program)\n"
    "      --push-auth-file FILE\n"
    "                         has USER:PASSWORD, or headers, NAME: VALUE, a line each; so has the\n"
    "                         variable STAP_PYTHON_PUSH_AUTH\n"
    "\n"
    "Profiles have the labels host and, but for --all, pid. If the server does not take them, 256 "
    "are\n"
    "kept and sent again; older ones are dropped. At the end record says how many were sent and\n"
    "dropped, and exits with 1 if any were dropped.\n";

static const char top_usage[] =
    "usage: stap-python top [OPTION...] -p PID|--name PATTERN|--all\n"
    "       stap-python top [OPTION...] -- CMD...\n"
    "\n"
    "Samples where Python processes, and what they start, use the CPU, and prints a table of\n"
    "functions each second. The shim is loaded into a process that lacks it. It is the script\n"
    "pyprof: stap-python pyprof --help. On a terminal the table is a screen with keys: o, t and f\n"
    "order it by own samples, by total ones and by function, p pauses, q ends, ? shows the keys.\n"
    "What CMD prints follows at the end, and CMD reads nothing then.\n"
    "\n" TARGETS_USAGE "  -d, --duration S       for so many seconds\n"
    "  -r, --rate N           samples a second on each CPU: 10, 19, 49, 99, 100, 199, 499, 997, "
    "1000 (99)\n";

static const char dump_usage[] =
    "usage: stap-python dump [OPTION...] -p PID|--name PATTERN|--all\n"
    "\n"
    "Prints the Python stacks of all threads of processes, and their asyncio tasks, once. The "
    "shim\n"
    "is loaded into a process that lacks it. It is the script pydump: stap-python pydump --help.\n"
    "\n" TARGETS_USAGE
    "  -l, --locals           with the variables of each function, cut at 100 characters\n"
    "  -j, --json             a document of JSON\n"
    "      --depth N          the innermost N functions of each thread and task, up to 1000 (64)\n";

/* A command, the script that it runs, and its options as getopt()'s letters. */
struct sampler {
    const char *name, *usage, *script, *letters;
    bool runs_commands, has_screen;
};

/* getopt()'s values of options without a letter, which stand in letters, too. */
enum { REVERSE = 1, TITLE, PUSH, EVERY, SERVICE, PUSH_AUTH_FILE, MEMORY, BYTES };

/* The script's arguments so far, and options whose arguments are added last. */
struct line {
    char *words[64];
    size_t count;
    char *rate, *duration, *output, *pid, *title, *every, *bytes; /* rate: also the depth of dump */
    char *command;                                                /* as it is shown */
    enum source_origin origin;                                    /* of what is sampled */
    struct attach_request targets;
    enum format format;
    bool reverses, by_thread, native;
    bool wall, memory; /* runs pywall, or pyheap, in place of pyprof */
    struct push push;
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

static bool is_number(const char *word, unsigned long long most)
{
    return *word && word[0] != '0' && !word[strspn(word, "0123456789")] &&
           strtoull(word, NULL, 10) <= most;
}

/* word, a whole number from 1 to 999999; exits if it is another one. */
static char *number_for(const struct sampler *sampler, const char *what, char *word)
{
    if (!is_number(word, 999999))
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

/* An option that names processes, or one of --push.  False: it is another one. */
static bool add_target_or_push(const struct sampler *sampler, int letter, struct line *line)
{
    switch (letter) {
    case 'p':
        targets_add_pids(sampler->name, &line->targets, optarg);
        line->pid = optarg;
        return true;
    case NAME:
        targets_add_name(&line->targets, optarg);
        return true;
    case CHILDREN:
        line->targets.children = true;
        return true;
    case ALL:
        line->targets.all = true;
        return true;
    case PUSH:
        line->push.url = optarg;
        return true;
    case EVERY:
        line->every = number_for(sampler, "the interval, in seconds,", optarg);
        return true;
    case SERVICE:
        line->push.service = optarg;
        return true;
    case PUSH_AUTH_FILE:
        line->push.auth = optarg;
        return true;
    default:
        return false;
    }
}

static void add_option(const struct sampler *sampler, int letter, struct line *line)
{
    if (add_target_or_push(sampler, letter, line))
        return;
    switch (letter) {
    case 'l':
        add_two(line, "-G", "locals=1");
        break;
    case 'j':
        add_two(line, "-G", "json=1");
        break;
    case DEPTH:
        line->rate = number_for(sampler, "the depth", optarg);
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
        line->native = true;
        break;
    case 't':
        add_two(line, "-G", "threads=1");
        line->by_thread = true;
        break;
    case REVERSE:
        line->reverses = true;
        break;
    case TITLE:
        line->title = optarg;
        break;
    case 'i':
        die(USAGE,
            "%s: samples are of threads on a CPU: stap-python record --wall has the time asleep, "
            "too, and stap-python dump the stacks of all threads, once",
            sampler->name);
    case 'w':
        line->wall = true;
        break;
    case MEMORY:
        line->memory = true;
        break;
    case BYTES:
        if (!is_number(optarg, 1 << 30))
            die(USAGE, "record: the mean distance of samples must be 1 to %d bytes, not '%s'",
                1 << 30, optarg);
        line->bytes = optarg;
        break;
    default:
        die(USAGE, "%s: unknown option, or one without its value (see stap-python %s --help)",
            sampler->name, sampler->name);
    }
}

/* Whether the options name processes; exits if they contradict each other. */
static bool has_targets(const struct sampler *sampler, const struct attach_request *request)
{
    bool named = request->pid_count || request->name_count;
    if (request->all ? named || request->children : request->children && !named)
        die(USAGE, "%s: --all stands alone, and --children with -p or --name", sampler->name);
    return named || request->all;
}

/* Adds what names the processes.  record and top --all need no names: they see every shim. */
static void add_targets(const struct sampler *sampler, struct line *line)
{
    struct texts words = {0};
    bool is_dump = strcmp(sampler->script, "pydump") == 0;
    if (targets_are_one(&line->targets))
        return add_two(line, "-x", line->pid);
    line->pid = NULL;
    if (line->targets.all && !is_dump)
        return;
    size_t count = targets_prepare(sampler->name, &line->targets, &words);
    for (size_t i = 0; i < words.count; i++)
        add(line, words.all[i]);
    if (count > 1 && strcmp(sampler->name, "record") == 0 && !line->wall)
        add_two(line, "-G", "by_process=1");
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
    folder = format("%s/stap-python.XXXXXX", temporary_folder());
    if (!mkdtemp(folder))
        die(FAILED, "record: %s: cannot make a folder for the samples: %s", folder,
            strerror(errno));
    atexit(remove_folder);
    return format("%s/folded", folder);
}

/* "python3 x.py", or "python3 x.py (PID 12)"; a process may have a megabyte of words. */
static char *default_title(const struct line *line)
{
    enum { LONGEST = 1000 };
    if (!line->pid && line->targets.all)
        return "all Pythons";
    if (!line->pid)
        return line->command ? line->command : "several processes";
    char *command = proc_command_line(parse_pid(line->pid));
    if (utf8_length(command) > LONGEST)
        command = format("%s...", utf8_prefix(command, LONGEST - 3));
    return *command ? format("%s (PID %s)", command, line->pid) : format("PID %s", line->pid);
}

static void write_format(const struct profile *profile, const struct line *line, FILE *output)
{
    struct graph graph = {.title = line->title, .is_reversed = line->reverses};
    const char *order = line->reverses ? "from the inside out; " : "";
    unsigned long long total = profile->stacks[0].total[0];
    graph.note = line->wall ? format("%s%llu ms of wall time", order, total / 1000)
                 : line->memory
                     ? format("%sestimated from samples: %llu bytes in use", order, total)
                     : format("%s%u Hz, %llu samples", order, profile->rate, total);
    if (line->format == SVG)
        flamegraph_write(profile, &graph, output);
    else if (line->format == HTML)
        html_write(profile, &graph, output);
    else if (line->format == SOURCES)
        sources_write(profile, line->title, graph.note, line->origin, output);
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
    if (line->wall) {
        profile->unit = "microseconds";
        profile->rate = 1000000;
    } else if (line->memory) {
        profile->unit = "bytes";
        profile->rate = 0;
        profile->values = line->format == PPROF ? VALUES : 1;
    }
    profile_read(profile, 0, "record", folded);
    profile_sum(profile);
    FILE *file = output_stream(output);
    if (file) {
        write_format(profile, line, file);
        if (!ferror(file) && fclose(file) == 0) {
            folder = kept;
            return;
        }
    }
    die(FAILED, "record: cannot write %s: %s: the samples are in %s", target, strerror(errno),
        folded);
}

/* What is sampled, before it may end. */
static enum source_origin origin_of(const struct line *line)
{
    const struct process process = {.pid = line->pid ? parse_pid(line->pid) : 0};
    if (line->command)
        return SOURCE_OURS;
    return line->pid && process_shares_our_mounts(&process) ? SOURCE_NEIGHBOUR : SOURCE_ANY;
}

/* Runs the script as a child: its folded stacks become another format. */
static int run_and_convert(const char *path, struct line *line, int output)
{
    struct stat written = {.st_size = 0};
    char *folded = new_folded();
    if (!line->title)
        line->title = default_title(line);
    line->origin = origin_of(line);
    if (line->wall && line->format == SOURCES)
        die(USAGE, "record: the format sources is for samples: leave out --wall");
    if (!line->wall && (line->format == PPROF || line->format == SOURCES))
        add_two(line, "-G", line->format == PPROF ? "record=1" : "record=2");
    if (line->format == PPROF || line->format == SOURCES)
        add_two(line, "-G", "lines=1");
    add_two(line, "-o", for_stap(folded));
    if (line->rate)
        add(line, line->rate);
    int status = run_in_foreground(script_command(path, line->words));
    bool is_empty = stat(folded, &written) != 0 || written.st_size == 0;
    if (is_empty && status == 0)
        die(FAILED, "record: there were no samples%s: nothing is written",
            line->memory ? " of memory in use" : "");
    if (!is_empty)
        convert(line, folded, output);
    return status;
}

/* Runs the script as a child, and sends its profiles. */
static int run_and_push(const char *path, struct line *line)
{
    if (line->output || line->format != UNKNOWN_FORMAT || line->by_thread || line->wall ||
        line->memory || line->reverses || line->title)
        die(USAGE, "record: --push sends profiles of the CPU: leave out --output, --format, "
                   "--threads, --wall, --memory, --reverse and --title");
    push_prepare(&line->push);
    char *fifo = new_folded();
    add_two(line, "-G", format("every=%s", line->every ? line->every : "10"));
    add_two(line, "-o", for_stap(fifo));
    if (line->rate)
        add(line, line->rate);
    return push_run(&line->push, script_command(path, line->words), fifo);
}

/* Runs the script: as a child if its output is converted or sent, else in place of this program. */
static int run(const struct sampler *sampler, struct line *line)
{
    char *path = script_file(line->wall ? "pywall" : line->memory ? "pyheap" : sampler->script);
    int output = STDOUT_FILENO;
    if (line->memory && (line->rate || line->native || line->by_thread || line->wall))
        die(USAGE, "record: --memory samples allocations, and not threads on CPUs: leave out "
                   "--rate, --native, --threads and --wall");
    if (line->bytes && !line->memory)
        die(USAGE, "record: --bytes is for --memory");
    if (line->memory)
        add_two(line, "-G", "folded=1");
    if (line->bytes)
        add_two(line, "-G", format("bytes=%s", line->bytes));
    if (line->push.url)
        return run_and_push(path, line);
    if (line->every || line->push.service || line->push.auth)
        die(USAGE, "record: --every, --service and --push-auth-file are for --push");
    if (line->format == UNKNOWN_FORMAT)
        line->format = format_of_file(line->output);
    if (line->reverses && line->format != SVG && line->format != HTML)
        die(USAGE, "record: --reverse is for the formats svg and html");
    if (line->title && (line->format == FOLDED || line->format == PPROF))
        die(USAGE, "record: --title is for the formats svg, html, sources and speedscope");
    /* Before minutes of sampling: it may be unwritable. */
    if (line->output && (output = open_output(line->output)) < 0)
        die(FAILED, "record: cannot write %s: %s", line->output, strerror(errno));
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
    static const struct option options[] = {
        {"pid", required_argument, NULL, 'p'},
        {"name", required_argument, NULL, NAME},
        {"children", no_argument, NULL, CHILDREN},
        {"all", no_argument, NULL, ALL},
        {"output", required_argument, NULL, 'o'},
        {"duration", required_argument, NULL, 'd'},
        {"rate", required_argument, NULL, 'r'},
        {"format", required_argument, NULL, 'f'},
        {"native", no_argument, NULL, 'n'},
        {"threads", no_argument, NULL, 't'},
        {"idle", no_argument, NULL, 'i'},
        {"wall", no_argument, NULL, 'w'},
        {"memory", no_argument, NULL, MEMORY},
        {"bytes", required_argument, NULL, BYTES},
        {"reverse", no_argument, NULL, REVERSE},
        {"title", required_argument, NULL, TITLE},
        {"push", required_argument, NULL, PUSH},
        {"every", required_argument, NULL, EVERY},
        {"service", required_argument, NULL, SERVICE},
        {"push-auth-file", required_argument, NULL, PUSH_AUTH_FILE},
        {"locals", no_argument, NULL, 'l'},
        {"json", no_argument, NULL, 'j'},
        {"depth", required_argument, NULL, DEPTH},
        {NULL, 0, NULL, 0}};
    struct line line = {.format = UNKNOWN_FORMAT};
    int letter, count = 0;
    help_if_asked(arguments, sampler->usage);
    while (arguments[count])
        count++;
    opterr = 0;
    /* getopt() skips the first word, the command's name. */
    while ((letter = getopt_long(count + 1, arguments - 1, sampler->letters, options, NULL)) >= 0) {
        if (line.count > 16)
            die(USAGE, "%s: too many options", sampler->name);
        add_option(sampler, strchr(sampler->letters, letter) ? letter : '?', &line);
    }
    char **command = arguments - 1 + optind;
    bool chosen = has_targets(sampler, &line.targets);
    if (chosen == (*command != NULL) || (*command && !sampler->runs_commands))
        die(USAGE, "%s: name a process by -p PID%s (see stap-python %s --help)", sampler->name,
            sampler->runs_commands ? ", or a command behind --" : "", sampler->name);
    script_has_children(sampler->name);
    if (chosen)
        add_targets(sampler, &line);
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
        "record", record_usage,
        "pyprof", "+:" TARGETS_LETTERS "o:d:r:f:ntiw\1\2:\3:\4:\5:\6:\7\10:",
        true,     false};
    return sample(&record, arguments, NULL, true);
}

int top_main(char **arguments)
{
    const struct sampler top = {
        "top", top_usage, "pyprof", "+:" TARGETS_LETTERS "d:r:", true, top_has_screen()};
    return sample(&top, arguments, top.has_screen ? "live=2" : "live=1", false);
}

int dump_main(char **arguments)
{
    const struct sampler dump = {
        "dump", dump_usage, "pydump", "+:" TARGETS_LETTERS "lj\24:", false, false};
    return sample(&dump, arguments, "tasks=1", false);
}
