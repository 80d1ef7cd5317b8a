/*
 * debug_log().
 *
 * SPDX-License-Identifier: MIT
 */
#include "debug.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool debug_on;

/* One write() and no allocation: the watcher's thread makes none. */
void debug_log(const char *format, ...)
{
    if (!debug_on)
        return;
    int saved = errno;
    char line[560];
    size_t start = (size_t)snprintf(line, sizeof line, "libpython-stap[%d]: ", (int)getpid());
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + start, sizeof line - start - 1, format, arguments);
    va_end(arguments);
    size_t size = strlen(line);
    line[size++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, size);
    (void)written;
    errno = saved;
}
