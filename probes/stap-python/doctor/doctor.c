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
#include <stdio.h>
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

/* Enables the path again, or disables it if its interpreter is gone. */
static struct fix fix_of(const char *path)
{
    /* What is not in this user's list is in root's. */
    const char *sudo = enabled_find(path) ? "" : sudo_prefix(), *python = python_of(path);
    if (is_service(path)) {
        const char *folder = basename(dirname(strdup(path)));
        const char *unit = strndup(folder, strlen(folder) - strlen(".d"));
        return command_fix(format("%sstap-python enable --service %s", sudo, shell_word(unit)));
    }
    return command_fix(format("%sstap-python %s %s", sudo, python ? "enable" : "disable",
                              shell_word(python ? python : path)));
}

void check_enabled(void)
{
    char **paths;
    size_t count = enabled_read(true, &paths);
    for (size_t i = 0; i < count; i++) {
        const char *fault = enabled_problem(paths[i]);
        if (fault)
            report_fix(NOTE, "enabled", fix_of(paths[i]), "%s loads the shim no longer: %s",
                       paths[i], fault);
        else
            report(OK, "enabled", NULL, "%s", paths[i]);
    }
}

/* ---------------------------------------------------------------- the command */

static const char usage[] =
    "usage: stap-python doctor [--fix [--yes]]\n"
    "\n"
    "Checks whether this machine can probe Python programs. Each line is ok, note (it may "
    "surprise\n"
    "you) or wrong; below a problem is the command that fixes it. The exit status is 0 if a probe\n"
    "would work, else 1.\n"
    "\n"
    "  --fix      run these commands, those that need a reboot or a decision excepted; asks "
    "first.\n"
    "             Then the checks are made again, and commands that only then can help are run,\n"
    "             none of them twice. The first command that fails ends it, with exit status 1\n"
    "  -y, --yes  with --fix: do not ask\n"
    "\n"
    "Last, stap compiles a probe for this kernel, which takes 10 to 60 seconds the first time, at\n"
    "most 180, and one from then on, as stap keeps what it has compiled.\n"
    "\n"
    "environment: STAP is the stap to check; NO_COLOR, if set, turns colours off;\n"
    "  SYSTEMTAP_TAPSET, SYSTEMTAP_RUNTIME and XDG_DATA_DIRS are used as stap does. All files, "
    "also\n"
    "  those of /proc and /sys, are read below the directory STAP_PYTHON_ROOT: for tests.\n";

unsigned check_all(void)
{
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
    return report_end();
}

/* Says that doctor --fix could run some of the commands, if it could. */
static void name_fix(void)
{
    const struct reported *all;
    size_t count = reported_fixes(&all), runs = 0;
    for (size_t i = 0; i < count; i++)
        runs += all[i].fix.command != NULL;
    if (runs == 1 && count == 1)
        puts("stap-python doctor --fix runs this command");
    else if (runs == count && count)
        puts("stap-python doctor --fix runs these commands");
    else if (runs)
        printf("stap-python doctor --fix runs %zu of these commands\n", runs);
}

int doctor_main(char **arguments)
{
    bool fix = false, unasked = false;
    help_if_asked(arguments, usage);
    for (char **argument = arguments; *argument; argument++) {
        if (strcmp(*argument, "--fix") == 0)
            fix = true;
        else if (strcmp(*argument, "--yes") == 0 || strcmp(*argument, "-y") == 0)
            unasked = true;
        else
            die(USAGE, "doctor: unexpected argument '%s' (see stap-python doctor --help)",
                *argument);
    }
    if (unasked && !fix)
        die(USAGE, "doctor: --yes is only for --fix (see stap-python doctor --help)");
    if (fix)
        return fix_all(unasked);
    unsigned problems = check_all();
    name_fix();
    return problems ? FAILED : 0;
}
