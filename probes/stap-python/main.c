/*
 * stap-python, the launcher: runs the subcommand or script that its first argument names.  The
 * launcher is a program of its own, and single-threaded; the shim has none of its code.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "commands.h"
#include "doctor/doctor.h"
#include "generated/installed.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/program.h"
#include "lib/util.h"
#include "script/script.h"
#include "systemtap/systemtap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- run */

static const char run_usage[] =
    "usage: stap-python run [--] CMD...\n"
    "\n"
    "Starts CMD with the shim preloaded: every Python that CMD runs gets the markers. The value "
    "of\n"
    "LD_PRELOAD is kept. The exit status is CMD's; 127 if CMD is not found, 126 if it cannot be\n"
    "started.\n"
    "\n"
    "32-bit programs that a 64-bit one starts say on stderr that the shim cannot be preloaded:\n"
    "attach and enable avoid that.\n";

int run_main(char **arguments)
{
    help_if_asked(arguments, run_usage);
    if (arguments[0] && strcmp(arguments[0], "--") == 0)
        arguments++;
    else if (arguments[0] && arguments[0][0] == '-')
        die(USAGE, "run: unknown option '%s' (see stap-python run --help)", arguments[0]);
    if (!arguments[0])
        die(USAGE, "run: no command given (see stap-python run --help)");
    warn_of_other_python(arguments);
    setenv("LD_PRELOAD", preload_value(), 1);
    exec_program(arguments);
}

/* ---------------------------------------------------------------- main */

static const char usage[] =
    "usage: stap-python COMMAND [ARGUMENTS...]\n"
    "       stap-python SCRIPT [STAP'S ARGUMENTS...]\n"
    "       stap-python [STAP'S ARGUMENTS...] -e 'SCRIPT'|FILE.stp\n"
    "\n"
    "  run [--] CMD...         start CMD with the shim, which gives its Python the markers\n"
    "  doctor                  check whether this machine can probe Python; how to fix what is "
    "wrong;\n"
    "                          with --fix: fix it\n"
    "  list [PYTHON|PID|FILE]  show the markers of an interpreter, and who provides them\n"
    "  attach PID...           load the shim into running Pythons; also by name, or into all\n"
    "  detach PID...           undo attach: take the shim's hooks and its thread out again\n"
    "  ps                      show the Pythons that run, and whether the shim is active in them\n"
    "  filter PID PATTERN...   the functions that a process's filtered markers are for\n"
    "  record, top, dump       where a process uses the CPU, and what its threads do, by samples\n"
    "  diff A B                which functions grew and shrank from one profile to another\n"
    "  enable [PYTHON]         make every start of an interpreter, or of a service, load the shim\n"
    "  disable [PYTHON]        undo enable\n"
    "  precompile [SCRIPT...]  compile scripts for this kernel, so that they start at once\n"
    "  runtime                 print the folder of SystemTap's runtime, corrected for this kernel\n"
    "  --list-scripts          list the scripts and what they show\n"
    "  help [COMMAND]          this text, or the command's; the same as --help\n"
    "  -V, --version           show which version this is\n"
    "\n"
    "stap runs the SCRIPT with the arguments that follow; the command of its -c gets the shim, "
    "and\n"
    "the process of its -x if it needs it. SCRIPT --help has the script's own arguments.\n"
    "SCRIPT --backend bpftrace [-x PID|-c CMD] [ARGUMENTS...] does without stap: pyaudit, "
    "pycalls,\n"
    "pydist, pyexc, pyflow, pygc, pyimport, pyline, pyslow, pystat, pytime, pytop, pywatch, "
    "pywho.\n"
    "\n"
    "environment: STAP is the stap to run.\n";

/* Turns "help" into "--help", and "help COMMAND" into "COMMAND --help". */
static char **without_help(char **arguments)
{
    static char *with_option[3], option[] = "--help";
    if (strcmp(arguments[0], "help") != 0)
        return arguments;
    if (arguments[1] && arguments[2])
        die(USAGE, "help: takes one command (see stap-python --help)");
    with_option[0] = arguments[1] ? arguments[1] : option;
    with_option[1] = arguments[1] ? option : NULL;
    return with_option;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        int (*main)(char **);
    } commands[] = {
        {"run", run_main},         {"doctor", doctor_main},         {"list", list_main},
        {"attach", attach_main},   {"enable", enable_main},         {"disable", disable_main},
        {"ps", ps_main},           {"record", record_main},         {"top", top_main},
        {"dump", dump_main},       {"filter", filter_main},         {"detach", detach_main},
        {"runtime", runtime_main}, {"precompile", precompile_main}, {"diff", diff_main}};
    (void)count;
    atexit(end_by_signal);
    find_source_tree();
    if (!arguments[0] || !arguments[1])
        die(USAGE, "no command given (see stap-python --help)");
    arguments = without_help(arguments + 1);
    const char *word = arguments[0];
    help_if_asked(arguments, usage);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        puts("stap-python " PACKAGE_VERSION);
        finish(0);
    }
    if (strcmp(word, "--list-scripts") == 0)
        finish(list_scripts());
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(word, commands[i].name) == 0)
            finish(commands[i].main(arguments + 1));
    char *script = script_file(word);
    if (script)
        finish(script_main(script, arguments + 1));
    if (is_own_script(arguments))
        finish(own_script_main(arguments));
    while (arguments[1])
        arguments++;
    if (strcmp(arguments[0], "-e") == 0)
        die(USAGE, "-e needs a script (see stap-python --help)");
    if (strcmp(word, "-") == 0)
        die(USAGE, "a script is given by -e or as FILE.stp, not on standard input");
    if (ends_with(word, ".stp"))
        die(USAGE, "'%s' is neither a command nor a script: there is no such file", word);
    die(USAGE, "'%s' is neither a command nor a script (see stap-python --help)", word);
}
