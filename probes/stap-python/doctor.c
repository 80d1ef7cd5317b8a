/*
 * See doctor.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor.h"

#include <stdbool.h>

#include "command.h"
#include "doctor_compile.h"
#include "doctor_enabled.h"
#include "doctor_kernel.h"
#include "doctor_python.h"
#include "doctor_report.h"
#include "doctor_stap.h"
#include "doctor_tapset.h"

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
