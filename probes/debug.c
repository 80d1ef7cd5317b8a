/*
 * debug_log(), called from everywhere in the shim.
 *
 * SPDX-License-Identifier: MIT
 */
#include "debug.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

bool debug_on;

void debug_log(const char *format, ...)
{
    if (!debug_on)
        return;
    int saved = errno;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "libpython-stap[%d]: %s\n", (int)getpid(), line);
    errno = saved;
}
