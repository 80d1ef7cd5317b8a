/*
 * See command.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static void print_line(const char *text, va_list values) __attribute__((format(printf, 1, 0)));

static void print_line(const char *text, va_list values)
{
    char *line;
    fflush(stdout);
    if (vasprintf(&line, text, values) < 0)
        abort();
    fprintf(stderr, "stap-python: %s\n", printable(line));
}

void die(int status, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    print_line(text, values);
    va_end(values);
    exit(status);
}

void warn(const char *text, ...)
{
    va_list values;
    /* If stdout can't be written, that is the error, and finish() says so. */
    if (fflush(stdout) != 0 || ferror(stdout))
        return;
    va_start(values, text);
    print_line(text, values);
    va_end(values);
}

void finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        die(FAILED, "stdout: %s", strerror(errno));
    exit(status);
}

void help_if_asked(char **arguments, const char *usage)
{
    if (!arguments[0] || (strcmp(arguments[0], "--help") != 0 && strcmp(arguments[0], "-h") != 0))
        return;
    fputs(usage, stdout);
    finish(0);
}
