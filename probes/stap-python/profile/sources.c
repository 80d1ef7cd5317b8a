/*
 * SPDX-License-Identifier: MIT
 */

#include "profile/sources.h"

#include "lib/util.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- lines with samples */

/* Where a name is: its file, as a number of the profile `files`, and its line. */
struct place {
    bool is_line;
    uint32_t file;
    unsigned line;
};

/* A line with samples; 0: the whole file. */
struct line {
    uint32_t view, file;
    unsigned line;
    uint64_t own, total;
};

struct lines {
    const struct profile *profile;
    struct profile *files; /* has the names of files */
    struct place *places;  /* of the profile's names */
    struct source_process *views;
    size_t view_count;
    struct line *all;
    size_t count, room;
};

static void add_line(struct lines *lines, struct line line)
{
    if (lines->count == lines->room) {
        lines->room = lines->room ? 2 * lines->room : 1024;
        lines->all = reallocarray(lines->all, lines->room, sizeof line);
        if (!lines->all)
            abort();
    }
    lines->all[lines->count++] = line;
}

/* The number of the view that the process of this root name has. */
static uint32_t view_of(struct lines *lines, const char *name, enum source_origin origin)
{
    enum { NOBODY = 65534 };
    struct program_ids ids = program_ids(name);
    bool is_known = ids.program != NULL; /* not of "(other)", for example */
    if (!is_known && origin == SOURCE_OURS)
        origin = SOURCE_NEIGHBOUR;
    struct source_process process =
        source_process((pid_t)ids.pid, is_known ? ids.tid : NOBODY, origin);
    for (uint32_t i = 0; i < lines->view_count; i++)
        if (source_same_view(&lines->views[i], &process))
            return i;
    lines->views = reallocarray(lines->views, lines->view_count + 1, sizeof process);
    if (!lines->views)
        abort();
    lines->views[lines->view_count] = process;
    return (uint32_t)lines->view_count++;
}

static void find_places(struct lines *lines)
{
    const struct profile *profile = lines->profile;
    lines->places = calloc(profile->name_count + 1, sizeof *lines->places);
    if (!lines->places)
        abort();
    for (size_t i = 0; i < profile->name_count; i++) {
        struct name_parts parts = name_parts(profile->names[i]);
        if (parts.kind == PYTHON_FUNCTION && parts.line)
            lines->places[i] = (struct place){
                true, profile_name(lines->files, parts.file, strlen(parts.file)), parts.line};
    }
}

/* NULL: the innermost name of the stack has no line. */
static const struct place *place_of(const struct lines *lines, uint32_t stack)
{
    const struct place *place = &lines->places[lines->profile->stacks[stack].name];
    return stack && place->is_line ? place : NULL;
}

/* Whether a stack around this one is in the same line, or (line is 0) in the same file. */
static bool is_within(const struct lines *lines, uint32_t stack, uint32_t file, unsigned line)
{
    while ((stack = lines->profile->stacks[stack].outer)) {
        const struct place *place = place_of(lines, stack);
        if (place && place->file == file && (!line || place->line == line))
            return true;
    }
    return false;
}

static int by_place(const void *left, const void *right)
{
    const struct line *one = left, *other = right;
    if (one->view != other->view)
        return one->view < other->view ? -1 : 1;
    if (one->file != other->file)
        return one->file < other->file ? -1 : 1;
    return one->line < other->line ? -1 : one->line > other->line;
}

/* Makes one of all that are the same line. */
static void merge_lines(struct lines *lines)
{
    size_t kept = 0;
    qsort(lines->all, lines->count, sizeof *lines->all, by_place);
    for (size_t i = 0; i < lines->count; i++) {
        struct line *line = &lines->all[i], *before = &lines->all[kept - (kept > 0)];
        if (kept && by_place(line, before) == 0) {
            before->own += line->own;
            before->total += line->total;
        } else
            lines->all[kept++] = *line;
    }
    lines->count = kept;
}

/* The lines of all stacks.  What C code and the kernel did counts for the line that called it. */
static struct lines lines_of(const struct profile *profile, enum source_origin origin)
{
    struct lines lines = {.profile = profile, .files = profile_new()};
    const struct stack *stacks = profile->stacks;
    uint32_t *views = calloc(profile->stack_count, sizeof *views);
    uint32_t *known = calloc(profile->name_count + 1, sizeof *known); /* view + 1, of a root */
    if (!views || !known)
        abort();
    find_places(&lines);
    for (uint32_t i = 1; i < profile->stack_count; i++) {
        uint32_t inner = i, root = stacks[i].name;
        if (!stacks[i].outer && !known[root])
            known[root] = 1 + view_of(&lines, profile->names[root], origin);
        views[i] = stacks[i].outer ? views[stacks[i].outer] : known[root] - 1;
        const struct place *place = place_of(&lines, i);
        for (unsigned whole = 0; place && whole < 2; whole++) {
            unsigned line = whole ? 0 : place->line;
            bool counts = !is_within(&lines, i, place->file, line);
            add_line(&lines, (struct line){views[i], place->file, line, 0,
                                           counts ? stacks[i].total[0] : 0});
        }
        while (inner && !place_of(&lines, inner))
            inner = stacks[inner].outer;
        if (!inner || !stacks[i].own[0])
            continue;
        place = place_of(&lines, inner);
        add_line(&lines, (struct line){views[i], place->file, place->line, stacks[i].own[0], 0});
        add_line(&lines, (struct line){views[i], place->file, 0, stacks[i].own[0], 0});
    }
    merge_lines(&lines);
    free(views);
    free(known);
    return lines;
}

/* ---------------------------------------------------------------- files */

struct source {
    uint32_t view, file;
    struct source_file text;
    const char *name;
    const struct line *lines; /* the first is that of the whole file */
    size_t count;
};

static size_t lines_of_file(const struct lines *lines, size_t first)
{
    size_t end = first + 1;
    while (end < lines->count && lines->all[end].line)
        end++;
    return end - first;
}

/* Whether the files of two views are one: read, or for the same reason not. */
static bool are_same(const struct source_file *one, const struct source_file *other)
{
    if (one->why || other->why)
        return one->why && other->why && strcmp(one->why, other->why) == 0;
    return one->device == other->device && one->inode == other->inode;
}

/* Reads the files, each once, and makes one of the lines of views that share a file. */
static struct source *read_sources(struct lines *lines, size_t *count)
{
    struct source *sources = calloc(lines->count + 1, sizeof *sources);
    if (!sources)
        abort();
    *count = 0;
    for (size_t at = 0, next; at < lines->count; at = next) {
        struct source source = {.view = lines->all[at].view, .file = lines->all[at].file};
        size_t same = 0;
        source.name = lines->files->names[source.file];
        source.text = source_read(&lines->views[source.view], source.name);
        while (same < *count &&
               (sources[same].file != source.file || !are_same(&sources[same].text, &source.text)))
            same++;
        if (same == *count)
            sources[(*count)++] = source;
        else
            free(source.text.text);
        for (next = at + lines_of_file(lines, at); at < next; at++)
            lines->all[at].view = sources[same].view;
    }
    merge_lines(lines);
    return sources;
}

static int by_heat(const void *left, const void *right)
{
    const struct source *one = left, *other = right;
    if (one->lines->own != other->lines->own)
        return one->lines->own > other->lines->own ? -1 : 1;
    if (one->lines->total != other->lines->total)
        return one->lines->total > other->lines->total ? -1 : 1;
    return strcmp(one->name, other->name);
}

static struct source *sources_of(struct lines *lines, size_t *count)
{
    struct source *sources = read_sources(lines, count);
    for (size_t at = 0; at < lines->count; at += lines_of_file(lines, at))
        for (size_t i = 0; i < *count; i++)
            if (sources[i].view == lines->all[at].view && sources[i].file == lines->all[at].file) {
                sources[i].lines = &lines->all[at];
                sources[i].count = lines_of_file(lines, at);
            }
    qsort(sources, *count, sizeof *sources, by_heat);
    return sources;
}

/* ---------------------------------------------------------------- page */

/* It needs no script, and nothing of another host's, whatever a name or a file may say. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\">\n"
    "<title>%s</title>\n<style>\n"
    "body{font:14px sans-serif;margin:1em}\n"
    "summary{cursor:pointer}\n"
    "details details{color:#555;padding-left:16ch}\n"
    "table,details details{font:12px Menlo,Consolas,\"DejaVu Sans Mono\",monospace}\n"
    "table{border-collapse:collapse;width:100%%}\n"
    "details details table{margin-left:-16ch}\n"
    "td,th{padding:0 1ch 0 0;min-width:7ch;text-align:right;white-space:pre}\n"
    "td:last-child{text-align:left;width:100%%}\n"
    ".number{color:#777;min-width:6ch}\n"
    "</style>\n</head>\n<body>\n<h1>%s</h1>\n<p>%s</p>\n";

static const char row[] =
    "<tr%s><td>%s</td><td>%s</td><td class=\"number\">%u</td><td>%s</td></tr>\n";

static const char *digits(uint64_t number)
{
    return number ? format("%llu", (unsigned long long)number) : "";
}

/* heat: the share of the hottest line. */
static void write_row(const struct line *line, unsigned number, const char *text, double heat,
                      FILE *output)
{
    const char *colour =
        heat > 0 ? format(" style=\"background:rgba(255,90,0,%.2f)\"", 0.08 + 0.62 * heat) : "";
    fprintf(output, row, colour, line ? digits(line->own) : "", line ? digits(line->total) : "",
            number, text);
}

struct text_lines {
    char **all; /* line N is all[N - 1] */
    size_t count;
};

/* The lines of a text, for HTML. */
static struct text_lines split(char *text, size_t length)
{
    struct text_lines lines = {0};
    size_t room = 0;
    for (char *at = text, *end = text + length, *next; at < end; at = next) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline ? newline + 1 : end;
        if (newline)
            *newline = '\0';
        if (newline > at && newline[-1] == '\r')
            newline[-1] = '\0';
        if (lines.count == room) {
            room = room ? 2 * room : 256;
            lines.all = reallocarray(lines.all, room, sizeof *lines.all);
            if (!lines.all)
                abort();
        }
        /* XML has no form feed; a tab's width is that of the indentation. */
        lines.all[lines.count++] = xml_text(replaced(replaced(at, "\f", ""), "\t", "        "));
    }
    return lines;
}

/* Whether a line is shown at once: one with samples is among the lines around it. */
static bool is_near(const struct source *source, size_t number)
{
    enum { AROUND = 3 };
    for (size_t i = 1; i < source->count; i++)
        if (number + AROUND >= source->lines[i].line && number <= source->lines[i].line + AROUND)
            return true;
    return false;
}

static void write_text(const struct source *source, uint64_t hottest, FILE *output)
{
    struct text_lines text = split(source->text.text, source->text.length);
    size_t at = 1; /* in source->lines */
    for (size_t first = 1, end; first <= text.count; first = end) {
        bool is_shown = is_near(source, first);
        for (end = first + 1; end <= text.count && is_near(source, end) == is_shown;)
            end++;
        if (!is_shown)
            fprintf(output, "<details><summary>%zu to %zu</summary>\n", first, end - 1);
        fputs("<table>\n", output);
        for (size_t number = first; number < end; number++) {
            bool has = at < source->count && source->lines[at].line == number;
            const struct line *line = has ? &source->lines[at++] : NULL;
            write_row(line, (unsigned)number, text.all[number - 1],
                      has ? (double)line->own / (double)hottest : 0, output);
        }
        fputs(is_shown ? "</table>\n" : "</table></details>\n", output);
    }
    if (at < source->count)
        fputs("<p>The file has not as many lines as were sampled: it is another one by now. "
              "Lines behind its end:</p>\n<table>\n",
              output);
    for (size_t i = at; i < source->count; i++)
        write_row(&source->lines[i], source->lines[i].line, "", 0, output);
    if (at < source->count)
        fputs("</table>\n", output);
}

static void write_lines(const struct source *source, FILE *output)
{
    fputs("<table>\n", output);
    for (size_t i = 1; i < source->count; i++)
        write_row(&source->lines[i], source->lines[i].line, "", 0, output);
    fputs("</table>\n", output);
}

static void write_source(const struct profile *profile, const struct source *source, bool is_open,
                         uint64_t hottest, FILE *output)
{
    double all = (double)profile->stacks[0].total[0] / 100;
    const struct source_file *text = &source->text;
    const char *note = "";
    if (text->why)
        note = format("; its lines are not shown: %s", text->why);
    else if (profile->begin && (uint64_t)text->changed > profile->begin / 1000000000)
        note = "; changed since sampling began: its lines may have been others";
    fprintf(output, "<details%s><summary>%.1f %% own, %.1f %% total: <b>%s</b>%s</summary>\n",
            is_open ? " open" : "", (double)source->lines->own / all,
            (double)source->lines->total / all, xml_text(source->name), xml_text(note));
    if (text->why)
        write_lines(source, output);
    else
        write_text(source, hottest, output);
    fputs("</details>\n", output);
}

void sources_write(const struct profile *profile, const char *title, const char *note,
                   enum source_origin origin, FILE *output)
{
    struct lines lines = lines_of(profile, origin);
    size_t count;
    struct source *sources = sources_of(&lines, &count);
    uint64_t hottest = 1, rest = profile->stacks[0].total[0];
    for (size_t i = 0; i < lines.count; i++) {
        if (lines.all[i].line && lines.all[i].own > hottest)
            hottest = lines.all[i].own;
        rest -= lines.all[i].line ? lines.all[i].own : 0;
    }
    fprintf(output, head, xml_text(title), xml_text(title), xml_text(note));
    fprintf(output,
            "<p>Beside a line, the first number: %s in it, or in C code that it called; the "
            "second: with those in the functions that it called. %llu %s are in no line.</p>\n",
            strcmp(profile->unit, "bytes") == 0 ? "bytes in use that were allocated"
                                                : profile->unit,
            (unsigned long long)rest, profile->unit);
    for (size_t i = 0; i < count; i++)
        write_source(profile, &sources[i], i == 0, hottest, output);
    fputs("</body>\n</html>\n", output);
    free(sources);
}
