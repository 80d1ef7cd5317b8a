/*
 * See run.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "other_python.h"
#include "program.h"
#include "shim.h"

static const char usage[] =
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
    help_if_asked(arguments, usage);
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
