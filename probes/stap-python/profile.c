/*
 * `stap-python record`, `top` and `dump`: turn their options into those of the scripts pyprof and
 * pydump, and draw flame graphs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "commands.h"
#include "lib/files.h"
#include "lib/processes.h"
#include "lib/program.h"
#include "lib/util.h"
#include "script/script.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- flame graph: its files */

/* flamegraph.pl in packages that have it outside of PATH: Debian's and Fedora's Perl modules. */
static const char *const elsewhere[] = {
    "/usr/share/perl5/Devel/NYTProf/flamegraph.pl",
    "/usr/lib64/perl5/vendor_perl/Devel/NYTProf/flamegraph.pl",
};

char *flamegraph_program(void)
{
    char *path = program_in_path("flamegraph.pl");
    for (size_t i = 0; !path && i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (access(under_root(elsewhere[i]), X_OK) == 0)
            path = strdup(under_root(elsewhere[i]));
    if (!path)
        die(FAILED, "record: flamegraph.pl, which draws an SVG, is not installed: it is in "
                    "libdevel-nytprof-perl (Debian) and flamegraph (Fedora); it reads what "
                    "--format folded writes");
    const char *why = geteuid() == 0 ? unsafe_path(path) : NULL;
    if (why)
        die(FAILED, "record: %s: root does not run it: %s", path, why);
    return path;
}

static char *folder;

static void remove_folder(void)
{
    unlink(format("%s/folded", folder));
    rmdir(folder);
}

char *flamegraph_folded(void)
{
    const char *parent = secure_getenv("TMPDIR");
    folder = format("%s/stap-python.XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        die(FAILED, "record: %s: cannot make a folder for the samples: %s", folder,
            strerror(errno));
    atexit(remove_folder);
    return format("%s/folded", folder);
}

/* ---------------------------------------------------------------- flame graph: its programs */

static int run_program(const char *program, int input, int output)
{
    char *command[] = {strdup(program), NULL};
    int status;
    pid_t pid = fork();
    if (pid < 0)
        die(FAILED, "record: cannot start %s: %s", program, strerror(errno));
    if (pid == 0) {
        if (dup2(input, 0) >= 0 && dup2(output, 1) >= 0)
            exec_program(command);
        _exit(126);
    }
    if (!wait_for_child(pid, &status))
        die(FAILED, "record: waiting for a program: %s", strerror(errno));
    return status;
}

int flamegraph_draw(const char *program, char **stap, const char *folded, int output)
{
    struct stat written = {.st_size = 0};
    int status = run_in_foreground(stap), input = open_regular(folded, &written), drawn = 0;
    bool empty = input < 0 || written.st_size == 0;
    if (!empty)
        drawn = run_program(program, input, output);
    if (empty && status == 0)
        die(FAILED, "record: there were no samples: nothing is drawn");
    if (drawn)
        die(FAILED, "record: %s ended with status %d", program, drawn);
    return status;
}

/* ---------------------------------------------------------------- options */

/* The options that name processes; letters as getopt() has them, for options without one. */
#define TARGETS_USAGE \
    "  -p, --pid PID          the process; several: -p PID,PID, or -p again\n" \
    "      --name PATTERN     the Pythons that stap-python attach --name finds; may be repeated\n" \
    "      --children         with the descendants of these processes that are Pythons\n" \
    "      --all              all Pythons that you may inspect\n"
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
    "\n" TARGETS_USAGE "  -o, --output FILE      to this file\n"
    "  -d, --duration S       for so many seconds\n"
    "  -r, --rate N           samples a second on each CPU: 10, 49, 99, 100, 199, 499, 997, 1000 "
    "(99)\n"
    "  -f, --format FORMAT    folded, or raw: a line for each stack, which flamegraph.pl reads; "
    "speedscope:\n"
    "                         a file for speedscope.app; flamegraph: an SVG, drawn by "
    "flamegraph.pl\n"
    "  -n, --native           with the function in C that the Python function was in, and its "
    "library\n"
    "  -t, --threads          each thread apart\n";

static const char top_usage[] =
    "usage: stap-python top [OPTION...] -p PID|--name PATTERN|--all\n"
    "       stap-python top [OPTION...] -- CMD...\n"
    "\n"
    "Samples where Python processes, and what they start, use the CPU, and prints a table of\n"
    "functions each second. The shim is loaded into a process that lacks it. It is the script\n"
    "pyprof: stap-python pyprof --help.\n"
    "\n" TARGETS_USAGE "  -d, --duration S       for so many seconds\n"
    "  -r, --rate N           samples a second on each CPU: 10, 49, 99, 100, 199, 499, 997, 1000 "
    "(99)\n";

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
    bool runs_commands;
};

/* The script's arguments so far, and options whose arguments are added last. */
struct line {
    char *words[64];
    size_t count;
    char *rate, *duration, *output; /* rate: also the depth of dump */
    bool draws;                     /* a flame graph */
    struct attach_request targets;
    bool has_x; /* -x is among the words, for one target */
    size_t x_at;
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

static void add_format(struct line *line, const char *name)
{
    line->draws = strcmp(name, "flamegraph") == 0 || strcmp(name, "svg") == 0;
    if (strcmp(name, "speedscope") == 0)
        add_two(line, "-G", "speedscope=1");
    else if (!line->draws && strcmp(name, "folded") != 0 && strcmp(name, "raw") != 0)
        die(USAGE, "record: the format is folded (or raw), speedscope or flamegraph, not '%s'",
            name);
}

static void add_option(const struct sampler *sampler, int letter, struct line *line)
{
    switch (letter) {
    case 'p':
        targets_add_pids(sampler->name, &line->targets, optarg);
        if (targets_are_one(&line->targets)) {
            line->has_x = true;
            line->x_at = line->count;
            add_two(line, "-x", optarg);
        }
        break;
    case NAME:
        targets_add_name(&line->targets, optarg);
        break;
    case CHILDREN:
        line->targets.children = true;
        break;
    case ALL:
        line->targets.all = true;
        break;
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
        add_format(line, optarg);
        break;
    case 'n':
        add_two(line, "-G", "native=1");
        break;
    case 't':
        add_two(line, "-G", "threads=1");
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

/* Whether the options name processes; exits if they contradict each other. */
static bool has_targets(const struct sampler *sampler, const struct attach_request *request)
{
    bool named = request->pid_count || request->name_count;
    if (request->all ? named || request->children : request->children && !named)
        die(USAGE, "%s: --all stands alone, and --children with -p or --name", sampler->name);
    return named || request->all;
}

/* For several processes: adds what names them, in place of -x. */
static void add_targets(const struct sampler *sampler, struct line *line)
{
    struct texts words = {0};
    if (line->has_x) {
        line->count -= 2;
        memmove(line->words + line->x_at, line->words + line->x_at + 2,
                (line->count - line->x_at) * sizeof *line->words);
    }
    size_t count = targets_prepare(sampler->name, &line->targets, &words);
    for (size_t i = 0; i < words.count; i++)
        add(line, words.all[i]);
    if (count > 1 && strcmp(sampler->name, "record") == 0)
        add_two(line, "-G", "by_process=1");
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

/* Runs the script: as a child for a flame graph, else in place of this program. */
static int run(const struct sampler *sampler, struct line *line)
{
    char *path = script_file(sampler->script), *program = NULL, *folded = NULL;
    int output = -1;
    if (line->draws)
        program = flamegraph_program();
    if (line->output)
        output = open_output(line->output);
    if (line->draws)
        folded = flamegraph_folded();
    if (folded || line->output)
        add_two(line, "-o", for_stap(folded ? folded : line->output));
    if (line->rate)
        add(line, line->rate);
    if (!folded)
        return script_main(path, line->words);
    if (output >= 0 && ftruncate(output, 0) != 0 && errno != EINVAL)
        die(FAILED, "record: cannot write %s: %s", line->output, strerror(errno));
    return flamegraph_draw(program, script_command(path, line->words), folded,
                           output >= 0 ? output : STDOUT_FILENO);
}

/* shows: whether to print the progress, which would disturb a table. */
static int sample(const struct sampler *sampler, char **arguments, char *global, bool shows)
{
    static const struct option options[] = {{"pid", required_argument, NULL, 'p'},
                                            {"name", required_argument, NULL, NAME},
                                            {"children", no_argument, NULL, CHILDREN},
                                            {"all", no_argument, NULL, ALL},
                                            {"locals", no_argument, NULL, 'l'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"depth", required_argument, NULL, DEPTH},
                                            {"output", required_argument, NULL, 'o'},
                                            {"duration", required_argument, NULL, 'd'},
                                            {"rate", required_argument, NULL, 'r'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"native", no_argument, NULL, 'n'},
                                            {"threads", no_argument, NULL, 't'},
                                            {"idle", no_argument, NULL, 'i'},
                                            {NULL, 0, NULL, 0}};
    struct line line = {.count = 0};
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
    if (chosen && !targets_are_one(&line.targets))
        add_targets(sampler, &line);
    add_duration(&line, shows);
    if (*command)
        add_two(&line, "-c", command_of(command));
    if (global)
        add_two(&line, "-G", global);
    return run(sampler, &line);
}

int record_main(char **arguments)
{
    const struct sampler record = {"record", record_usage, "pyprof",
                                   "+:" TARGETS_LETTERS "o:d:r:f:nti", true};
    return sample(&record, arguments, NULL, true);
}

int top_main(char **arguments)
{
    const struct sampler top = {"top", top_usage, "pyprof", "+:" TARGETS_LETTERS "d:r:", true};
    return sample(&top, arguments, "live=1", false);
}

int dump_main(char **arguments)
{
    const struct sampler dump = {"dump", dump_usage, "pydump",
                                 "+:" TARGETS_LETTERS "lj\24:", false};
    return sample(&dump, arguments, "tasks=1", false);
}
