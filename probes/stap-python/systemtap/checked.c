/*
 * Remembers in stap's folder what stap has compiled for which kernels: ~/.systemtap/python-checked
 * has lines "KERNEL WHAT SECONDS STAP".
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"
#include "lib/util.h"
#include "systemtap/systemtap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *file_path(void)
{
    char *folder = stap_folder();
    return folder ? strdup(under_root(format("%s/python-checked", folder))) : NULL;
}

/* The part of a line that tells the program: its path, and the time of its last change. */
static char *stap_identity(void)
{
    struct stat status;
    if (!stap_program() || stat(stap_program(), &status) != 0)
        return NULL;
    return format("%lld %s", (long long)status.st_mtime, stap_program());
}

void checked_remember(const char *kernel, const char *what, int seconds)
{
    enum { LIMIT = 65536 };
    char *path = file_path(), *identity = stap_identity();
    char *text = path ? read_file(path, LIMIT) : NULL, *kept = "", *state;
    if (!path || !identity)
        return;
    char *first = format("%s %s ", kernel, what);
    for (char *line = text ? strtok_r(text, "\n", &state) : NULL; line;
         line = strtok_r(NULL, "\n", &state))
        if (strncmp(line, first, strlen(first)) != 0)
            kept = format("%s%s\n", kept, line);
    /* A folder that can't be written to is reported by what needs it more. */
    file_replace(path, format("%s%s%d %s\n", kept, first, seconds, identity), S_IRUSR | S_IWUSR);
}

bool checked_find(const char *kernel, const char *what, int *seconds)
{
    enum { LIMIT = 65536 };
    char *path = file_path(), *identity = stap_identity();
    char *text = path ? read_file(path, LIMIT) : NULL, *state;
    char *first = format("%s %s ", kernel, what);
    if (!text || !identity)
        return false;
    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        int length = 0;
        if (strncmp(line, first, strlen(first)) == 0 &&
            sscanf(line + strlen(first), "%d %n", seconds, &length) == 1 &&
            strcmp(line + strlen(first) + length, identity) == 0)
            return true;
    }
    return false;
}
