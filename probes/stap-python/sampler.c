/*
 * See sampler.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sampler.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "process.h"
#include "script.h"
#include "text.h"

static const char record_usage[] =
    "usage: stap-python record [OPTION...] -p PID\n"
    "       stap-python record [OPTION...] -- CMD...\n"
    "\n"
    "Samples where a Python process, and what it starts, uses the CPU, until it ends or Ctrl-C, "
    "and\n"
    "prints its stacks in the folded form, which flamegraph.pl and speedscope.app read. The shim "
    "is\n"
    "loaded into the process if it lacks it. It is the script pyprof: stap-python pyprof --help.\n"
    "\n"
    "  -p, --pid PID          the process\n"
    "  -o, --output FILE      to this file\n"
    "  -d, --duration S       for so many seconds\n"
    "  -r, --rate N           samples a second on each CPU: 10, 49, 99, 100, 199, 499, 997, 1000 "
    "(99)\n"
    "  -f, --format folded    the only one; raw, py-spy's name, is the same\n"
    "  -t, --threads          each thread apart\n";

static const char top_usage[] =
    "usage: stap-python top [-r N] [-d S] -p PID\n"
    "       stap-python top [-r N] [-d S] -- CMD...\n"
    "\n"
    "Samples where a Python process, and what it starts, uses the CPU, and prints a table of\n"
    "functions each second. The shim is loaded into the process if it lacks it. It is the script\n"
    "pyprof: stap-python pyprof --help.\n"
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

/* One of the commands, and its options; getopt()'s words. */
struct sampler {
    const char *name, *usage, *script, *letters;
    bool runs_commands;
};

/* The command line of the script, as it grows. */
struct line {
    char *words[24];
    size_t count;
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

/* A whole number, from 1 on, of that many digits at most. */
static char *number_for(const struct sampler *sampler, const char *what, char *word)
{
    if (!*word || word[0] == '0' || strlen(word) > 6 || word[strspn(word, "0123456789")])
        die(USAGE, "%s: %s must be a number from 1 on, not '%s'", sampler->name, what, word);
    return word;
}

/* The words as stap and a shell split them again. */
static char *command_of(char **words)
{
    char *command = "";
    for (; *words; words++)
        command = format("%s%s%s", command, *command ? " " : "", quoted(*words));
    return command;
}

/* Adds what one option stands for; of the rate, it is kept for later. */
static void add_option(const struct sampler *sampler, int letter, struct line *line, char **rate)
{
    switch (letter) {
    case 'p':
        if (!pid_of(optarg))
            die(USAGE, "%s: '%s' is not a PID", sampler->name, optarg);
        add_two(line, "-x", optarg);
        break;
    case 'o':
        add_two(line, "-o", optarg);
        break;
    case 'd':
        add_two(line, "-E",
                format("probe timer.s(%s) { exit() }",
                       number_for(sampler, "the duration, in seconds,", optarg)));
        break;
    case 'r':
        *rate = number_for(sampler, "the rate", optarg);
        break;
    case 'f':
        if (strcmp(optarg, "folded") != 0 && strcmp(optarg, "raw") != 0)
            die(USAGE,
                "%s: the format is folded (raw), not '%s': flamegraph.pl makes an SVG of it, and "
                "speedscope.app reads it",
                sampler->name, optarg);
        break;
    case 't':
        add_two(line, "-G", "threads=1");
        break;
    default:
        die(USAGE, "%s: unknown option, or one without its value (see stap-python %s --help)",
            sampler->name, sampler->name);
    }
}

static int sample(const struct sampler *sampler, char **arguments, char *global)
{
    static const struct option options[] = {{"pid", required_argument, NULL, 'p'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"duration", required_argument, NULL, 'd'},
                                            {"rate", required_argument, NULL, 'r'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"threads", no_argument, NULL, 't'},
                                            {NULL, 0, NULL, 0}};
    struct line line = {.count = 0};
    char *rate = NULL;
    int letter, count = 0;
    bool chosen = false;
    help_if_asked(arguments, sampler->usage);
    while (arguments[count])
        count++;
    opterr = 0;
    /* getopt() begins behind the command's name. */
    while ((letter = getopt_long(count + 1, arguments - 1, sampler->letters, options, NULL)) >= 0) {
        if (line.count > 16)
            die(USAGE, "%s: too many options", sampler->name);
        add_option(sampler, strchr(sampler->letters, letter) ? letter : '?', &line, &rate);
        chosen |= letter == 'p';
    }
    char **command = arguments - 1 + optind;
    if (chosen == (*command != NULL) || (*command && !sampler->runs_commands))
        die(USAGE, "%s: name a process by -p PID%s (see stap-python %s --help)", sampler->name,
            sampler->runs_commands ? ", or a command behind --" : "", sampler->name);
    if (*command)
        add_two(&line, "-c", command_of(command));
    if (global)
        add_two(&line, "-G", global);
    if (rate)
        add(&line, rate);
    return script_main(script_file(sampler->script), line.words);
}

int record_main(char **arguments)
{
    const struct sampler record = {"record", record_usage, "pyprof", "+:p:o:d:r:f:t", true};
    return sample(&record, arguments, NULL);
}

int top_main(char **arguments)
{
    const struct sampler top = {"top", top_usage, "pyprof", "+:p:d:r:", true};
    return sample(&top, arguments, "live=1");
}

int dump_main(char **arguments)
{
    const struct sampler dump = {"dump", dump_usage, "pydump", "+:p:", false};
    return sample(&dump, arguments, NULL);
}
