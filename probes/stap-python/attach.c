/*
 * See attach.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach.h"

#include <stddef.h>

#include "attach_load.h"
#include "attach_many.h"
#include "command.h"

static const char usage[] =
    "usage: stap-python attach [--children] [--name PATTERN]... PID...\n"
    "       stap-python attach [--children] --name PATTERN...\n"
    "       stap-python attach --all\n"
    "\n"
    "Loads the shim into running CPythons 3.6 or later, which have the markers from then on. If\n"
    "that fails, the program runs on unchanged. You must be root or the program's user, and be\n"
    "allowed to trace it.\n"
    "\n"
    "  --name PATTERN  each Python whose command name (ps -o comm), program, script or first word\n"
    "                  of the command line matches the shell pattern. All but the first match by\n"
    "                  their path or the end of it, -m by the module; * matches a slash, too. Of\n"
    "                  one that has set a title, \"gunicorn: worker [shop]\", each word matches.\n"
    "  --children      the descendants of these processes that are Pythons, too; a PID may then "
    "be\n"
    "                  that of another program, a shell say\n"
    "  --all           every Python; the exit status is 0 if one of them has the shim\n"
    "\n"
    "In another root or mount namespace (chroot, containers) that lacks the shim, root mounts it "
    "there.\n"
    "\n"
    "Prints a line for each: \"active\" if tracers see the markers from now on, and \"loaded\" if\n"
    "they will as soon as Python code runs there. The exit status is 1 if one can't be attached "
    "to.\n"
    "A shim that stap-python detach has detached becomes active again. detach undoes attach.\n";

/* What was started meanwhile may have inherited the shim. */
static bool is_for(const struct attach_target *chosen, bool again)
{
    return !again || !chosen->has_shim || chosen->is_detached;
}

int attach_main(char **arguments)
{
    static const struct action attaching = {.name = "attach",
                                            .did = "attached to",
                                            .act = attach_to,
                                            .is_for = is_for,
                                            .none = "no such Python runs",
                                            .one_is_enough = true};
    help_if_asked(arguments, usage);
    return attach_many(&attaching, arguments);
}
