/*
 * See doctor_report.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor_report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

static bool colours;
static unsigned problems;

void report_start(void)
{
    const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    colours = isatty(1) && !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
    problems = 0;
}

void report(enum verdict verdict, const char *topic, const char *fix, const char *text, ...)
{
    static const char *const words[] = {"ok", "note", "wrong"}, *const colour[] = {"32", "33",
                                                                                   "31"};
    va_list values;
    char *line;
    if (colours)
        printf("\033[%sm%-6s\033[m", colour[verdict], words[verdict]);
    else
        printf("%-6s", words[verdict]);
    printf("%-9s ", topic);
    va_start(values, text);
    if (vasprintf(&line, text, values) < 0)
        abort();
    va_end(values);
    puts(printable(line));
    if (fix)
        printf("%-16sfix: %s\n", "", printable(fix));
    problems += verdict == WRONG;
}

unsigned report_end(void)
{
    if (problems == 1)
        printf("\n1 problem; fix it and rerun\n");
    else if (problems)
        printf("\n%u problems; fix the first and rerun\n", problems);
    else
        printf("\nno problems; try: stap-python pyflow -c 'python3 PROGRAM.py'\n");
    return problems;
}
