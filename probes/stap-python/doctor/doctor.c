/*
 * The order of doctor's checks, and the check of what `stap-python enable` has created.
 *
 * SPDX-License-Identifier: MIT
 */

#include "doctor/doctor.h"
#include "lib/files.h"
#include "lib/util.h"

#include <libgen.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* ---------------------------------------------------------------- what is enabled */

/* The interpreter that reads a .pth file: for /usr/lib/python3.11/site-packages/x.pth,
 * /usr/bin/python3.11 or /usr/bin/python3.  NULL: neither exists. */
static char *python_of(const char *pth)
{
    char *folder = dirname(strdup(pth)), *library = dirname(strdup(folder));
    const char *version = basename(strdup(library)), *prefix = dirname(dirname(library));
    /* The distribution's interpreters, in /usr, have local packages below /usr/local. */
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

/* The command that enables the path again, or disables it if its interpreter is gone. */
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

/* ---------------------------------------------------------------- the command */

static const char usage[] =
    "usage: stap-python doctor\n"
    "\n"
    "Checks whether this machine can probe Python programs. Each line is ok, note (it may "
    "surprise\n"
    "you) or wrong; below a problem is the command that fixes it. The exit status is 0 if a probe\n"
    "would work, else 1.\n"
    "\n"
    "Last, stap compiles a probe for this kernel, which takes 10 to 60 seconds the first time and\n"
    "one from then on, as stap keeps what it has compiled.\n"
    "\n"
    "environment: STAP is the stap to check; NO_COLOR, if set, turns colours off;\n"
    "  SYSTEMTAP_TAPSET, SYSTEMTAP_RUNTIME and XDG_DATA_DIRS are used as stap does. All files, "
    "also\n"
    "  those of /proc and /sys, are read below the directory STAP_PYTHON_ROOT: for tests.\n";

int doctor_main(char **arguments)
{
    help_if_asked(arguments, usage);
    if (arguments[0])
        die(USAGE, "doctor: unexpected argument '%s' (see stap-python doctor --help)",
            arguments[0]);
    report_start();
    check_stap();
    check_kernel();
    bool may_compile = check_runtime();
    check_cache();
    check_rights();
    check_interpreters();
    check_shim();
    check_attach();
    check_enabled();
    check_tapset();
    if (may_compile)
        check_compile();
    return report_end() ? FAILED : 0;
}
