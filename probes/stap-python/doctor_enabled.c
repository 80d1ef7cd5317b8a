/*
 * See doctor_enabled.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor_enabled.h"

#include <libgen.h>
#include <stddef.h>
#include <string.h>

#include "doctor_report.h"
#include "enabled.h"
#include "file.h"
#include "text.h"

/* The interpreter that reads a .pth file: of /usr/lib/python3.11/site-packages/x.pth it is
 * /usr/bin/python3.11, or python3 there.  NULL if it is gone. */
static char *python_of(const char *pth)
{
    char *folder = dirname(strdup(pth)), *library = dirname(strdup(folder));
    const char *version = basename(strdup(library)), *prefix = dirname(dirname(library));
    /* Distributions' own interpreters have theirs below /usr/local. */
    bool is_local = strcmp(prefix, "/usr/local") == 0;
    if (is_local && strcmp(basename(folder), "dist-packages") == 0)
        prefix = "/usr";
    char *const candidates[] = {format("%s/bin/%s", prefix, version),
                                format("%s/bin/%s", is_local ? "/usr" : prefix, version),
                                format("%s/bin/python3", prefix)};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (file_exists(candidates[i]))
            return candidates[i];
    return NULL;
}

/* Enables it again; or forgets it, if the interpreter is gone, too. */
static char *fix_of(const char *path)
{
    if (is_service(path)) {
        const char *unit = basename(dirname(strdup(path)));
        return format("stap-python enable --service %.*s", (int)strlen(unit) - 2, unit);
    }
    const char *python = python_of(path);
    return python ? format("stap-python enable %s", python)
                  : format("stap-python disable %s", path);
}

void check_enabled(void)
{
    char **paths;
    size_t count = enabled_read(true, &paths);
    for (size_t i = 0; i < count; i++) {
        const char *fault = enabled_problem(paths[i]);
        if (fault)
            report(NOTE, "enabled", fix_of(paths[i]), "%s loads the shim no longer: %s", paths[i],
                   fault);
        else
            report(OK, "enabled", NULL, "%s", paths[i]);
    }
}
