/*
 * The driver: fires the shim's markers as a text says (see usage), with no Python.  It is linked
 * with the shim's own sites, semaphores and probe_string(), so its file takes the place of the
 * shim's for a tracer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "driver_description.h"

#include "cpython/code.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: driver [OPTION...] [FILE...]\n"
    "Fires the markers of the shim as FILEs say, or standard input (also as FILE \"-\").\n"
    "Tracers find them in this program's file, as usdt:build/driver:python:line does.\n"
    "\n"
    "  -a, --always         fire also what is not probed; without it such events are\n"
    "                       passed over, as the shim does, which asks the semaphore\n"
    "  -w, --wait[=MARKER]  begin when a tracer probes MARKER; given more than once:\n"
    "                       each of those; without MARKER: any of the description\n"
    "  -t, --timeout=SECS   wait no longer (default: 60), then fail and fire nothing\n"
    "  -c, --count          at the end print for each marker of the description how\n"
    "                       many events were fired and how many passed over\n"
    "  -n, --check          read the description and fire nothing\n"
    "  -l, --list           print the markers with their arguments\n"
    "  -h, --help           print this\n"
    "\n"
    "A description has one step a line, and comments from \"#\" on:\n"
    "  MARKER ARGUMENT...   an event\n"
    "  sleep MS             a pause\n"
    "  N * STEP             the step, N times\n"
    "  N * {                the lines up to the \"}\" that closes it, N times\n"
    "An argument is, by its type,\n"
    "  int, long            a decimal number\n"
    "  const char *         \"text\", with \\n \\t \\\\ \\\" and \\xHH; \"text\" * N, a long one;\n"
    "                       NULL, or an address, which may be a bad one, as 0xdead\n"
    "  another pointer      NULL or an address\n"
    "\n"
    "Exit status: 0; 1 if something failed; 2 if the options or the description are\n"
    "bad, of which nothing was fired then.\n";

static int64_t described[MARKERS], fired[MARKERS]; /* events */
static bool always;

/* ---------------------------------------------------------------- running */

static bool probed(int marker)
{
    return __builtin_expect(*marker_info[marker].semaphore, 0);
}

static void pause_for(int64_t ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void fire(const struct step *step)
{
    const struct kind *kind = &kinds[step->marker];
    for (int64_t i = 0; i < step->times; i++) {
        if (!always && !probed(step->marker))
            continue;
        for (int j = 0; kind->types[j]; j++)
            if (step->lengths[j] >= 0)
                probe_string((const char *)(intptr_t)step->values[j], step->lengths[j]);
        kind->fire(step->values);
        fired[step->marker]++;
    }
    described[step->marker] += step->times;
}

static void run(void)
{
    for (size_t i = 0; i < step_count; i++) {
        struct step *step = &steps[i];
        switch (step->what) {
        case FIRE:
            fire(step);
            break;
        case SLEEP:
            for (int64_t n = 0; n < step->times; n++)
                pause_for(step->values[0]);
            break;
        case BEGIN:
            steps[step->other].times = step->times;
            if (step->times == 0)
                i = step->other;
            break;
        case END:
            if (--step->times > 0)
                i = step->other;
            break;
        }
    }
}

/* Waits until the markers, which are bits, are probed; one of them is enough for any. */
static void wait_for(unsigned wanted, bool any, int64_t seconds)
{
    for (int64_t ms = 0;; ms++) {
        unsigned missing = wanted;
        for (int i = 0; i < MARKERS; i++)
            if (probed(i))
                missing &= ~(1u << i);
        if (any ? missing != wanted || !wanted : !missing)
            break;
        if (ms / 1000 >= seconds)
            die(1,
                "no tracer attached within %lld s: start one on this program's file, or give a "
                "longer --timeout",
                (long long)seconds);
        pause_for(1);
    }
    /* A semaphore is raised a moment before its breakpoint is there. */
    pause_for(100);
}

static void list(void)
{
    for (int i = 0; i < MARKERS; i++) {
        printf("%s(", marker_info[i].name);
        for (int j = 0; kinds[i].types[j]; j++)
            printf("%s%s", j ? ", " : "", kinds[i].parameters[j]);
        puts(")");
    }
}

static void print_counts(void)
{
    for (int i = 0; i < MARKERS; i++)
        if (described[i])
            printf("%s %lld fired, %lld passed over\n", marker_info[i].name, (long long)fired[i],
                   (long long)(described[i] - fired[i]));
}

static int marker_named(const char *name)
{
    for (int i = 0; i < MARKERS; i++)
        if (strcmp(name, marker_info[i].name) == 0)
            return i;
    die(2, "%s is not a marker: driver --list shows them", name);
}

_Noreturn static void finish(void)
{
    if (fflush(stdout) != 0)
        die(1, "standard output can't be written to: %s", strerror(errno));
    exit(0);
}

/* What the options ask for. */
static struct {
    bool check, count, waits;
    unsigned wanted;
    int64_t seconds;
} options = {.seconds = 60};

/* getopt_long()'s option. */
static void take_option(int option, char **argv)
{
    switch (option) {
    case 'a':
        always = true;
        break;
    case 'w':
        options.waits = true;
        options.wanted |= optarg ? 1u << marker_named(optarg) : 0;
        break;
    case 't':
        if (!read_number(optarg, &options.seconds) || options.seconds < 0)
            die(2, "%s is not a time: give --timeout whole seconds", optarg);
        break;
    case 'c':
        options.count = true;
        break;
    case 'n':
        options.check = true;
        break;
    case 'l':
        list();
        finish();
        break;
    case 'h':
        fputs(usage, stdout);
        finish();
        break;
    default:
        die(2, "%s is not an option, or lacks a value, or has one too many: see driver --help",
            argv[optind - 1]);
    }
}

int main(int argc, char **argv)
{
    markers_choose_sites();
    static const struct option known[] = {
        {"always", no_argument, NULL, 'a'},        {"wait", optional_argument, NULL, 'w'},
        {"timeout", required_argument, NULL, 't'}, {"count", no_argument, NULL, 'c'},
        {"check", no_argument, NULL, 'n'},         {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "aw::t:cnlh", known, NULL)) != -1)
        take_option(option, argv);
    if (optind == argc)
        read_file("-");
    for (int i = optind; i < argc; i++)
        read_file(argv[i]);
    if (options.check)
        finish();
    if (options.waits) {
        bool any = !options.wanted;
        for (size_t i = 0; any && i < step_count; i++)
            options.wanted |= steps[i].what == FIRE ? 1u << steps[i].marker : 0;
        wait_for(options.wanted, any, options.seconds);
    }
    run();
    if (options.count)
        print_counts();
    finish();
}
