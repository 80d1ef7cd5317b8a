/*
 * Writes pages with a flame graph and a table of functions.
 *
 * SPDX-License-Identifier: MIT
 */

#include "generated/functions_js.h"
#include "lib/util.h"
#include "profile/flamegraph.h"

#include <stdlib.h>
#include <string.h>

/* Without anything of another host's, whatever a name may say. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
    "<title>%s</title>\n<style>\n"
    "body{font:14px sans-serif;margin:1em}\n"
    "svg{max-width:100%%;height:auto}\n"
    "table{border-collapse:collapse;font:12px Menlo,Consolas,\"DejaVu Sans Mono\",monospace}\n"
    "th{text-align:left;cursor:pointer;border-bottom:1px solid}\n"
    "th,td{padding:1px 12px 1px 0}\n"
    ".number{text-align:right}\n"
    "th[aria-sort=descending]::after{content:\" \\2193\"}\n"
    "th[aria-sort=ascending]::after{content:\" \\2191\"}\n"
    "[hidden]{display:none}\n"
    "</style>\n</head>\n<body>\n";

static const struct profile *sorted_profile; /* for qsort() */

static int by_own(const void *left, const void *right)
{
    const struct function *one = left, *other = right;
    if (one->own[0] != other->own[0])
        return one->own[0] > other->own[0] ? -1 : 1;
    if (one->total[0] != other->total[0])
        return one->total[0] > other->total[0] ? -1 : 1;
    return strcmp(sorted_profile->names[one->name], sorted_profile->names[other->name]);
}

static void write_table(const struct profile *profile, FILE *output)
{
    struct function *functions = profile_functions(profile);
    double all = (double)profile->stacks[0].total[0] / 100;
    sorted_profile = profile;
    qsort(functions, profile->name_count, sizeof *functions, by_own);
    fprintf(output,
            "<p><label>Functions that match: <input id=\"filter\" type=\"search\" "
            "placeholder=\"regular expression\"></label> <span id=\"found\"></span></p>\n"
            "<table id=\"functions\">\n<thead><tr><th class=\"number\" "
            "aria-sort=\"descending\">own</th><th class=\"number\">own %%</th>"
            "<th class=\"number\">total</th><th class=\"number\">total %%</th><th>function</th>"
            "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < profile->name_count; i++) {
        fprintf(output,
                "<tr><td class=\"number\">%llu</td><td class=\"number\">%.2f</td>"
                "<td class=\"number\">%llu</td><td class=\"number\">%.2f</td><td>%s</td></tr>\n",
                (unsigned long long)functions[i].own[0], (double)functions[i].own[0] / all,
                (unsigned long long)functions[i].total[0], (double)functions[i].total[0] / all,
                xml_text(profile->names[functions[i].name]));
    }
    fputs("</tbody>\n</table>\n", output);
    free(functions);
}

void html_write(const struct profile *profile, const struct graph *graph, FILE *output)
{
    fprintf(output, head, xml_text(graph->title));
    flamegraph_write_element(profile, graph, output);
    fputs("</svg>\n", output);
    write_table(profile, output);
    fputs("<script>\n", output);
    flamegraph_write_script(output);
    fputs(functions_js, output);
    fputs("</script>\n</body>\n</html>\n", output);
}
