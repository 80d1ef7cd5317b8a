/*
 * `stap-python diff`: which functions grew and shrank from one profile to another.
 *
 * SPDX-License-Identifier: MIT
 */

#include "commands.h"
#include "lib/files.h"
#include "lib/util.h"
#include "profile/flamegraph.h"
#include "profile/stacks.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: stap-python diff [-o FILE] [-f FORMAT] A B\n"
    "\n"
    "Compares two profiles, as files of folded stacks or of pprof: a line for each function whose\n"
    "share of its profile's samples is another one in B than in A, by percent points. Those that\n"
    "changed most in their own code come first.\n"
    "\n"
    "  -o, --output FILE    to this file; .svg, .json and .folded at its end are formats\n"
    "  -f, --format FORMAT  table; json; svg: a flame graph of B, red where a function itself has "
    "a\n"
    "                       larger share than in A, blue where it has a smaller one; folded: each\n"
    "                       stack with its values in A and B, of which A's are scaled to B's sum\n"
    "\n"
    "OWN is the share of the samples that were in the function itself, TOTAL of those in it or in\n"
    "what it called.\n";

/* ---------------------------------------------------------------- comparison */

struct comparison {
    const char *names[SIDES]; /* of the files */
    struct profile *profile;
};

struct change {
    const char *name;
    double own[SIDES], total[SIDES]; /* percent */
};

/* The profile with "python3" in place of "python3 (12)" or "python3 (12/13)", at the outer ends of
 * its stacks: processes and threads have other ids each time. */
static struct profile *without_ids(const struct profile *profile)
{
    struct profile *made = profile_new();
    uint32_t *numbers = calloc(profile->stack_count, sizeof *numbers);
    if (!numbers)
        abort();
    for (size_t i = 1; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        const char *name = profile->names[stack->name], *ids = strrchr(name, '(');
        size_t length = strlen(name);
        if (stack->depth == 1 && ids && ids > name + 1 && ids[-1] == ' ' &&
            strspn(ids + 1, "0123456789/") + 2 == strlen(ids) && name[length - 1] == ')')
            length = (size_t)(ids - name) - 1;
        numbers[i] = profile_stack(made, numbers[stack->outer], profile_name(made, name, length));
        for (int side = 0; side < SIDES; side++)
            profile_add(made, numbers[i], side, stack->own[side]);
    }
    free(numbers);
    profile_sum(made);
    return made;
}

static double percent(const struct comparison *comparison, uint64_t value, int side)
{
    return 100 * (double)value / (double)comparison->profile->stacks[0].total[side];
}

static double size_of(double value)
{
    return value < 0 ? -value : value;
}

static double own_change(const struct change *change)
{
    return change->own[1] - change->own[0];
}

static double total_change(const struct change *change)
{
    return change->total[1] - change->total[0];
}

/* Whether any of the values is shown as other than 0.00. */
static bool is_shown(const struct change *change)
{
    return size_of(own_change(change)) >= 0.005 || size_of(total_change(change)) >= 0.005;
}

static int by_change(const void *left, const void *right)
{
    const struct change *one = left, *other = right;
    double own = size_of(own_change(other)) - size_of(own_change(one));
    double total = size_of(total_change(other)) - size_of(total_change(one));
    if (size_of(own) >= 1e-9)
        return own > 0 ? 1 : -1;
    if (size_of(total) >= 1e-9)
        return total > 0 ? 1 : -1;
    return strcmp(one->name, other->name);
}

/* The functions that changed come first, *count of them. */
static struct change *changes_of(const struct comparison *comparison, size_t *count)
{
    const struct profile *profile = comparison->profile;
    struct function *functions = profile_functions(profile);
    struct change *changes = calloc(profile->name_count, sizeof *changes);
    if (!changes)
        abort();
    *count = 0;
    for (size_t i = 0; i < profile->name_count; i++) {
        struct change *change = &changes[*count];
        change->name = profile->names[i];
        for (int side = 0; side < SIDES; side++) {
            change->own[side] = percent(comparison, functions[i].own[side], side);
            change->total[side] = percent(comparison, functions[i].total[side], side);
        }
        *count += is_shown(change);
    }
    qsort(changes, *count, sizeof *changes, by_change);
    free(functions);
    return changes;
}

/* ---------------------------------------------------------------- formats */

static void write_table(const struct comparison *comparison, FILE *output)
{
    size_t count;
    struct change *changes = changes_of(comparison, &count);
    fprintf(output, "%11s %13s  FUNCTION\n", "OWN(points)", "TOTAL(points)");
    for (size_t i = 0; i < count; i++)
        fprintf(output, "%+11.2f %+13.2f  %s\n", own_change(&changes[i]), total_change(&changes[i]),
                printable(changes[i].name));
    if (!count)
        fputs("no function's share changed by 0.01 points\n", output);
    free(changes);
}

static void write_shares(const char *name, const double shares[SIDES], FILE *output)
{
    fprintf(output, ",\"%s\":{\"a\":%.4f,\"b\":%.4f,\"change\":%.4f}", name, shares[0], shares[1],
            shares[1] - shares[0]);
}

static void write_json(const struct comparison *comparison, FILE *output)
{
    size_t count;
    struct change *changes = changes_of(comparison, &count);
    for (int side = 0; side < SIDES; side++)
        fprintf(output, "%c\"%c\":{\"file\":%s,\"total\":%llu}", side ? ',' : '{', 'a' + side,
                json_string(comparison->names[side]),
                (unsigned long long)comparison->profile->stacks[0].total[side]);
    fputs(",\n\"functions\":[", output);
    for (size_t i = 0; i < count; i++) {
        fprintf(output, "%s{\"name\":%s", i ? ",\n" : "\n", json_string(changes[i].name));
        write_shares("own", changes[i].own, output);
        write_shares("total", changes[i].total, output);
        fputs("}", output);
    }
    fputs("]}\n", output);
    free(changes);
}

static void write_folded(const struct comparison *comparison, FILE *output)
{
    const struct profile *profile = comparison->profile;
    double scale = (double)profile->stacks[0].total[1] / (double)profile->stacks[0].total[0];
    for (size_t i = 1; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        char *text = "";
        if (!stack->own[0] && !stack->own[1])
            continue;
        for (const struct stack *at = stack; at->depth; at = &profile->stacks[at->outer])
            text = format("%s%s%s", profile->names[at->name], *text ? ";" : "", text);
        fprintf(output, "%s %.0f %llu\n", printable(text), (double)stack->own[0] * scale,
                (unsigned long long)stack->own[1]);
    }
}

static void write_svg(const struct comparison *comparison, FILE *output)
{
    const struct profile *profile = comparison->profile;
    uint64_t gone = 0;
    for (size_t i = 1; i < profile->stack_count; i++)
        gone += profile->stacks[i].total[1] ? 0 : profile->stacks[i].own[0];
    struct graph graph = {.compares = true};
    graph.title = format("%s, compared with %s", comparison->names[1], comparison->names[0]);
    graph.note = format("red: a larger share itself, blue: a smaller one; not drawn: stacks of "
                        "the other profile alone, %.2f %% of it",
                        percent(comparison, gone, 0));
    flamegraph_write(profile, &graph, output);
}

static const struct format {
    const char *name;
    void (*write)(const struct comparison *, FILE *);
} formats[] = {
    {"table", write_table}, {"json", write_json}, {"svg", write_svg}, {"folded", write_folded}};

enum { FORMATS = sizeof formats / sizeof *formats };

static const struct format *format_of_name(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(name, formats[i].name) == 0)
            return &formats[i];
    die(USAGE, "diff: the format is table, json, svg or folded, not '%s'", name);
}

/* The format by the end of the file's name, else a table. */
static const struct format *format_of_file(const char *path)
{
    for (size_t i = 1; path && i < FORMATS; i++)
        if (ends_with(path, format(".%s", formats[i].name)))
            return &formats[i];
    return &formats[0];
}

/* ---------------------------------------------------------------- command */

int diff_main(char **arguments)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"format", required_argument, NULL, 'f'},
                                            {NULL, 0, NULL, 0}};
    const struct format *chosen = NULL;
    const char *path = NULL;
    int letter, count = 0;
    help_if_asked(arguments, usage);
    while (arguments[count])
        count++;
    opterr = 0;
    /* getopt() skips the first word, the command's name. */
    while ((letter = getopt_long(count + 1, arguments - 1, ":o:f:", options, NULL)) >= 0)
        if (letter == 'o')
            path = optarg;
        else if (letter == 'f')
            chosen = format_of_name(optarg);
        else
            die(USAGE, "diff: unknown option, or one without its value (see stap-python diff "
                       "--help)");
    arguments += optind - 1;
    if (!arguments[0] || !arguments[1] || arguments[2])
        die(USAGE, "diff: name two profiles (see stap-python diff --help)");
    struct comparison comparison = {.names = {arguments[0], arguments[1]},
                                    .profile = profile_new()};
    for (int side = 0; side < SIDES; side++)
        profile_read(comparison.profile, side, "diff", comparison.names[side]);
    comparison.profile = without_ids(comparison.profile);
    FILE *output = path ? output_stream(open_output(path)) : stdout;
    if (output)
        (chosen ? chosen : format_of_file(path))->write(&comparison, output);
    if (path && (!output || ferror(output) || fclose(output) != 0))
        die(FAILED, "diff: cannot write %s: %s", path, strerror(errno));
    return 0;
}
