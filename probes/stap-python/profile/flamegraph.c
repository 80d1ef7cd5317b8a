/*
 * Draws flame graphs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "profile/flamegraph.h"

#include "generated/flamegraph_js.h"
#include "lib/util.h"

#include <stdlib.h>
#include <string.h>

/* In pixels; flamegraph.js has the width of a character, too. */
enum { WIDTH = 1200, SIDE = 10, TOP = 64, BOTTOM = 32, ROW = 16, FONT = 11 };
static const double CHARACTER = 6.6, NARROWEST = 0.1;

/* ---------------------------------------------------------------- layout */

struct layout {
    const struct profile *profile;
    const struct graph *graph;
    int side;         /* of the widths */
    uint64_t *starts; /* of each stack, in the unit of the values */
    uint32_t *order;  /* the stacks, those with the same outer one by their names */
    uint32_t deepest; /* of those drawn */
    size_t narrow;    /* frames that are not drawn */
    double most;      /* the largest growth, or shrinkage */
};

static const struct profile *sorted_profile; /* for qsort() */

static int by_outer_and_name(const void *left, const void *right)
{
    const struct stack *one = &sorted_profile->stacks[*(const uint32_t *)left];
    const struct stack *other = &sorted_profile->stacks[*(const uint32_t *)right];
    if (one->outer != other->outer)
        return one->outer < other->outer ? -1 : 1;
    return strcmp(sorted_profile->names[one->name], sorted_profile->names[other->name]);
}

static uint64_t total_of(const struct layout *layout, uint32_t number)
{
    return layout->profile->stacks[number].total[layout->side];
}

static double width_of(const struct layout *layout, uint64_t value)
{
    uint64_t all = total_of(layout, 0);
    return all ? (double)value * (WIDTH - 2 * SIDE) / (double)all : 0;
}

static bool is_drawn(const struct layout *layout, uint32_t number)
{
    return number == 0 || width_of(layout, total_of(layout, number)) >= NARROWEST;
}

static double share(const struct profile *profile, uint64_t value, int side)
{
    uint64_t all = profile->stacks[0].total[side];
    return all ? (double)value / (double)all : 0;
}

static double size_of(double value)
{
    return value < 0 ? -value : value;
}

/* By how much the stack's own share grew. */
static double growth(const struct layout *layout, uint32_t number)
{
    const struct stack *stack = &layout->profile->stacks[number];
    return share(layout->profile, stack->own[1], 1) - share(layout->profile, stack->own[0], 0);
}

static struct layout layout_of(const struct profile *profile, const struct graph *graph)
{
    struct layout layout = {.profile = profile, .graph = graph, .side = graph->compares};
    size_t count = profile->stack_count;
    uint64_t *next = calloc(count, sizeof *next);
    layout.starts = calloc(count, sizeof *layout.starts);
    layout.order = calloc(count, sizeof *layout.order);
    if (!next || !layout.starts || !layout.order)
        abort();
    for (uint32_t i = 0; i < count; i++)
        layout.order[i] = i;
    sorted_profile = profile;
    /* The first is no stack; it stays. */
    qsort(layout.order + 1, count - 1, sizeof *layout.order, by_outer_and_name);
    for (size_t i = 1; i < count; i++) {
        uint32_t number = layout.order[i], outer = profile->stacks[number].outer;
        layout.starts[number] = next[number] = next[outer];
        next[outer] += total_of(&layout, number);
        if (size_of(growth(&layout, number)) > layout.most)
            layout.most = size_of(growth(&layout, number));
        if (!is_drawn(&layout, number))
            layout.narrow += total_of(&layout, number) > 0;
        else if (profile->stacks[number].depth > layout.deepest)
            layout.deepest = profile->stacks[number].depth;
    }
    free(next);
    return layout;
}

/* ---------------------------------------------------------------- colours */

/* From the first to the first and the second together. */
static const struct {
    const char *word;
    int red[2], green[2], blue[2];
} colours[NAME_KINDS] = {
    [PYTHON_FUNCTION] = {"Python", {240, 15}, {185, 50}, {60, 50}},
    [C_FUNCTION] = {"C", {120, 50}, {190, 40}, {110, 40}},
    [KERNEL_FUNCTION] = {"kernel", {230, 20}, {115, 50}, {90, 40}},
    [COLLECTION] = {"gc", {190, 30}, {125, 40}, {215, 30}},
    [CAUSE] = {"no function", {120, 40}, {170, 40}, {225, 25}},
    [OTHER_NAME] = {"other", {200, 25}, {200, 25}, {200, 25}},
};

static const char *colour_of_name(const char *name)
{
    enum name_kind kind = name_parts(name).kind;
    unsigned hash = 2166136261;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619;
    int part = (int)(hash >> 8 & 0xff);
    return format("#%02x%02x%02x", colours[kind].red[0] + colours[kind].red[1] * part / 255,
                  colours[kind].green[0] + colours[kind].green[1] * part / 255,
                  colours[kind].blue[0] + colours[kind].blue[1] * part / 255);
}

static const char *colour_of_growth(const struct layout *layout, uint32_t number)
{
    double grown = growth(layout, number);
    int rest = layout->most > 0 ? (int)(230 - 130 * size_of(grown) / layout->most) : 230;
    return grown > 0   ? format("#ff%02x%02x", rest, rest)
           : grown < 0 ? format("#%02x%02xff", rest, rest)
                       : "#ebebeb";
}

/* ---------------------------------------------------------------- elements */

static const char style[] =
    ".flamegraph text{font:11px Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:#000}\n"
    ".flamegraph .title{font-size:17px;text-anchor:middle}\n"
    ".flamegraph .note{text-anchor:middle;fill:#555}\n"
    ".flamegraph .right{text-anchor:end}\n"
    ".flamegraph .button{cursor:pointer;fill:#024}\n"
    ".flamegraph .button:hover{text-decoration:underline}\n"
    ".flamegraph .f{cursor:pointer}\n"
    ".flamegraph .f text{pointer-events:none}\n"
    ".flamegraph .f:hover rect{stroke:#000;stroke-width:.7}\n"
    ".flamegraph .around{opacity:.5}\n"
    ".flamegraph .match rect{fill:#e600e6}\n"
    ".flamegraph .hidden{display:none}\n";

/* The beginning of a name for so many pixels; flamegraph.js does the same after a zoom. */
static const char *fitting(const char *name, double width)
{
    long room = (long)((width - 4) / CHARACTER);
    if (room < 3)
        return "";
    if (utf8_length(name) <= (size_t)room)
        return name;
    return format("%s..", utf8_prefix(name, (size_t)room - 2));
}

static const char *values_of(const struct layout *layout, uint32_t number)
{
    const struct profile *profile = layout->profile;
    uint64_t total = total_of(layout, number);
    double percent = 100 * share(profile, total, layout->side);
    if (!layout->graph->compares)
        return format("%llu %s, %.2f %%", (unsigned long long)total, profile->unit, percent);
    return format("%.2f %%, before %.2f %%; itself %+.2f points", percent,
                  100 * share(profile, profile->stacks[number].total[0], 0),
                  100 * growth(layout, number));
}

static void write_frame(const struct layout *layout, uint32_t number, FILE *output)
{
    const struct stack *stack = &layout->profile->stacks[number];
    const char *name = number ? layout->profile->names[stack->name] : "all";
    double x = SIDE + width_of(layout, layout->starts[number]);
    double width = width_of(layout, total_of(layout, number));
    uint32_t row = layout->graph->is_reversed ? stack->depth : layout->deepest - stack->depth;
    double y = TOP + (double)row * ROW;
    const char *colour = layout->graph->compares ? colour_of_growth(layout, number)
                         : number                ? colour_of_name(name)
                                                 : "#d8d8d8";
    fprintf(output,
            "<g class=\"f\" data-start=\"%llu\" data-total=\"%llu\" data-depth=\"%u\">"
            "<title>%s\n%s</title>"
            "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" rx=\"1\" fill=\"%s\"/>"
            "<text x=\"%.2f\" y=\"%.0f\">%s</text></g>\n",
            (unsigned long long)layout->starts[number],
            (unsigned long long)total_of(layout, number), stack->depth, xml_text(name),
            values_of(layout, number), x, y, width, ROW - 1, colour, x + 3, y + FONT,
            xml_text(fitting(name, width)));
}

/* A square and a word for each kind of name that is drawn. */
static void write_legend(const struct layout *layout, FILE *output)
{
    bool kinds[NAME_KINDS] = {false};
    double x = SIDE;
    if (layout->graph->compares)
        return;
    for (uint32_t i = 1; i < layout->profile->stack_count; i++)
        if (is_drawn(layout, i))
            kinds[name_parts(layout->profile->names[layout->profile->stacks[i].name]).kind] = true;
    for (int kind = 0; kind < NAME_KINDS; kind++) {
        if (!kinds[kind])
            continue;
        fprintf(output,
                "<rect x=\"%.0f\" y=\"%d\" width=\"10\" height=\"10\" fill=\"#%02x%02x%02x\"/>"
                "<text x=\"%.0f\" y=\"%d\">%s</text>\n",
                x, TOP - 17, colours[kind].red[0] + colours[kind].red[1] / 2,
                colours[kind].green[0] + colours[kind].green[1] / 2,
                colours[kind].blue[0] + colours[kind].blue[1] / 2, x + 14, TOP - 8,
                colours[kind].word);
        x += 30 + CHARACTER * (double)strlen(colours[kind].word);
    }
}

void flamegraph_write_element(const struct profile *profile, const struct graph *graph,
                              FILE *output)
{
    if (graph->is_reversed)
        profile = profile_reversed(profile);
    struct layout layout = layout_of(profile, graph);
    int height = TOP + (int)(layout.deepest + 1) * ROW + BOTTOM;
    const char *note = graph->note;
    if (layout.narrow)
        note = format("%s; %zu frames are too narrow to be drawn", note, layout.narrow);
    fprintf(output,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" class=\"flamegraph\" "
            "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<style>\n%s</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text class=\"title\" x=\"%d\" y=\"22\">%s</text>\n"
            "<text class=\"note\" x=\"%d\" y=\"38\">%s</text>\n",
            WIDTH, height, WIDTH, height, style, WIDTH / 2, xml_text(graph->title), WIDTH / 2,
            xml_text(note));
    write_legend(&layout, output);
    fprintf(output,
            "<text class=\"button hidden\" id=\"reset\" x=\"%d\" y=\"22\">Reset zoom</text>\n"
            "<text class=\"button right\" id=\"search\" x=\"%d\" y=\"22\">Search</text>\n"
            "<text id=\"details\" x=\"%d\" y=\"%d\"> </text>\n"
            "<text class=\"right\" id=\"matched\" x=\"%d\" y=\"%d\"> </text>\n<g id=\"frames\">\n",
            SIDE, WIDTH - SIDE, SIDE, height - 10, WIDTH - SIDE, height - 10);
    for (uint32_t i = 0; i < profile->stack_count; i++)
        if (is_drawn(&layout, layout.order[i]))
            write_frame(&layout, layout.order[i], output);
    fputs("</g>\n", output);
    free(layout.starts);
    free(layout.order);
}

void flamegraph_write_script(FILE *output)
{
    fputs(flamegraph_js, output);
}

void flamegraph_write(const struct profile *profile, const struct graph *graph, FILE *output)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", output);
    flamegraph_write_element(profile, graph, output);
    fputs("<script><![CDATA[\n", output);
    flamegraph_write_script(output);
    fputs("]]></script>\n</svg>\n", output);
}
