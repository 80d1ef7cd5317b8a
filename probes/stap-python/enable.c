/*
 * See enable.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "enable.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "enable_python.h"
#include "enable_service.h"
#include "enabled.h"
#include "text.h"

static const char enable_usage[] =
    "usage: stap-python enable [PYTHON]\n"
    "       stap-python enable --service UNIT\n"
    "       stap-python enable --list\n"
    "\n"
    "Makes every start of an interpreter (a name in PATH or a path; default: python3) load the\n"
    "shim, by two files in its site-packages: python_stap.pth, and the link python_stap.so. "
    "Without\n"
    "them, or without the shim, it starts as before. With -S it does not load the shim. Root can\n"
    "enable only interpreters that no other user can change.\n"
    "\n"
    "A virtual environment has site-packages of its own: name its own python. One with system\n"
    "site-packages also loads the shim if its base interpreter is enabled; one without does not.\n"
    "conda's environments and uv's and pyenv's versions are interpreters of their own; a shim of\n"
    "pyenv's stands for the version that is set.\n"
    "\n"
    "  --service UNIT  make systemd start that service with the shim preloaded, by a drop-in\n"
    "                  below /etc/systemd/system; a LD_PRELOAD of the unit is kept\n"
    "  --list          show what is enabled, and what of it is broken\n"
    "\n"
    "The files that it creates are listed: root's in /var/lib/systemtap-cpython/enabled, another\n"
    "user's in ~/.local/state/systemtap-cpython/enabled (XDG_STATE_HOME).\n";

static const char disable_usage[] =
    "usage: stap-python disable [PYTHON|FILE]\n"
    "       stap-python disable --service UNIT\n"
    "       stap-python disable --all\n"
    "\n"
    "Removes what stap-python enable created for that interpreter (or FILE itself, which\n"
    "stap-python enable --list shows), for that service, or all that this user has enabled. Files\n"
    "that were changed since are named and left. Programs that run keep the shim until they end.\n";

static int list_enabled(void)
{
    char **paths;
    size_t count = enabled_read(true, &paths);
    for (size_t i = 0; i < count; i++) {
        const char *fault = enabled_problem(paths[i]);
        printf("%s%s%s\n", printable(paths[i]), fault ? ": broken: " : "",
               fault ? printable(fault) : "");
    }
    if (!count)
        puts("nothing is enabled");
    return 0;
}

/* Removes a file of the list, and prints what became of it; whether that worked. */
static bool undo(const char *path)
{
    const char *why = enabled_remove(path);
    if (why)
        fprintf(stderr, "stap-python: %s: %s\n", printable(path), printable(why));
    else
        printf("disabled: %s\n", printable(path));
    return !why;
}

static int disable_all(void)
{
    char **paths;
    size_t count = enabled_read(false, &paths);
    bool services = false, done = true;
    for (size_t i = 0; i < count; i++) {
        bool undone = undo(paths[i]);
        done &= undone;
        services |= undone && is_service(paths[i]);
    }
    if (services)
        reload_services();
    if (!count)
        puts("nothing is enabled");
    return done ? 0 : FAILED;
}

/* Whether the arguments are this option alone. */
static bool is_option(char **arguments, const char *option)
{
    return arguments[0] && strcmp(arguments[0], option) == 0 && !arguments[1];
}

/* The unit of "--service UNIT"; NULL if the arguments are others. */
static const char *service_of(char **arguments)
{
    bool is = arguments[0] && strcmp(arguments[0], "--service") == 0 && arguments[1];
    return is && !arguments[2] ? arguments[1] : NULL;
}

/* The interpreter that the arguments name. */
static const char *python_of(const char *command, char **arguments)
{
    const char *word = arguments[0] ? arguments[0] : "python3";
    if (*word == '-' || !*word || (arguments[0] && arguments[1]))
        die(USAGE, "%s: takes one interpreter or --service UNIT (see stap-python %s --help)",
            command, command);
    return word;
}

int enable_main(char **arguments)
{
    help_if_asked(arguments, enable_usage);
    if (is_option(arguments, "--list"))
        return list_enabled();
    if (service_of(arguments))
        return enable_service(service_of(arguments));
    return enable_python(python_of("enable", arguments));
}

int disable_main(char **arguments)
{
    help_if_asked(arguments, disable_usage);
    if (is_option(arguments, "--all"))
        return disable_all();
    if (service_of(arguments))
        return disable_service(service_of(arguments));
    const char *word = python_of("disable", arguments);
    if (!enabled_find(word))
        return disable_python(word);
    bool done = undo(word);
    if (done && is_service(word))
        reload_services();
    return done ? 0 : FAILED;
}
