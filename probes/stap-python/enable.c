/*
 * See enable.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "enable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "cpython_layout.h"
#include "file.h"
#include "interpreter.h"
#include "program.h"
#include "shim.h"
#include "text.h"
#include "trust.h"

static const char enable_usage[] =
    "usage: stap-python enable [PYTHON]\n"
    "\n"
    "Makes every start of an interpreter (a name in PATH or a path; default: python3) load the\n"
    "shim, by two files in its site-packages: python_stap.pth, and the link python_stap.so. "
    "Without\n"
    "them, or without the shim, it starts as before. With -S it does not load the shim. Root can\n"
    "enable only interpreters that no other user can change.\n";

static const char disable_usage[] = "usage: stap-python disable [PYTHON]\n"
                                    "\n"
                                    "Removes what stap-python enable created for that interpreter. "
                                    "Programs that run keep the shim\n"
                                    "until they end.\n";

/* One line, as site.py requires; it prints nothing if the link is broken. */
static const char pth[] =
    "import sys; exec('try:\\n import python_stap\\nexcept Exception:\\n pass')\n";

struct site {
    const char *python;
    char *pth, *link;
};

/* What the interpreter is asked, with -S: no file in its site-packages runs.  So the script finds a
 * virtual environment itself, as site.py does. */
static const char question[] =
    "import os, site, sys\n"
    "folder = os.path.dirname(sys.executable)\n"
    "for home in (folder, os.path.dirname(folder)):\n"
    "    if folder and os.path.isfile(os.path.join(home, 'pyvenv.cfg')):\n"
    "        sys.prefix = sys.exec_prefix = os.path.dirname(folder)\n"
    "import sysconfig\n"
    "folders = getattr(site, 'getsitepackages', lambda prefixes: [])([sys.prefix])\n"
    "folders = folders or [sysconfig.get_path('purelib')]\n"
    "print('\\nsite:', sys.version_info[0], sys.version_info[1], 't' in getattr(sys, 'abiflags', "
    "''), folders[0])\n";

/* The interpreter's site-packages, as it says itself.  Exits if the shim does not support it. */
static char *ask_for_folder(const char *python)
{
    int status, major, minor, at = 0;
    char free_threaded[8];
    const char *const ask[] = {python, "-IS", "-c", question, NULL};
    char *answer = output_of(ask, 20, &status);
    char *line = strstr(answer, "\nsite: ");
    if (status != 0 || !line ||
        sscanf(line, "\nsite: %d %d %7s %n", &major, &minor, free_threaded, &at) != 3 || !at)
        die(FAILED, "%s: not a working Python 3.6 or later", python);
    if (major != 3 || minor < CPYTHON_OLDEST_MINOR)
        die(FAILED, "%s: the shim does not support it: Python %d.%d is older than 3.6", python,
            major, minor);
    if (strcmp(free_threaded, "True") == 0)
        die(FAILED, "%s: the shim does not support it: it is free-threaded", python);
    char *folder = line + at;
    folder[strcspn(folder, "\n")] = '\0';
    return folder;
}

/* The interpreter that the arguments of the command name, and its files. */
static struct site find_site(const char *command, char **arguments, const char *help)
{
    struct site site;
    const char *unsafe = NULL;
    help_if_asked(arguments, help);
    const char *word = arguments[0] ? arguments[0] : "python3";
    if (*word == '-' || !*word || (arguments[0] && arguments[1]))
        die(USAGE, "%s: takes one interpreter (see stap-python %s --help)", command, command);
    site.python = program_in_path(word);
    if (!site.python)
        die(FAILED, "%s: no such program", word);
    if (geteuid() == 0 && (unsafe = unsafe_python(site.python)))
        die(FAILED, "%s: %s", site.python, unsafe);
    char *folder = ask_for_folder(site.python);
    if (!exists(folder))
        die(FAILED, "%s: its directory %s does not exist", site.python, folder);
    if (geteuid() == 0 && (unsafe = unsafe_path(folder)))
        die(FAILED, "%s: %s", folder, unsafe);
    site.pth = format("%s/python_stap.pth", folder);
    site.link = format("%s/python_stap.so", folder);
    return site;
}

static bool is_our_pth(const char *path)
{
    char *text = contents(path, sizeof pth);
    return text && strcmp(text, pth) == 0;
}

static bool is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

/* Whether it is a link to a file of the shim's name, which need not exist. */
static bool is_our_link(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return false;
    target[length] = '\0';
    const char *name = strrchr(target, '/');
    return name && strncmp(name, "/libpython-stap.so", 18) == 0;
}

static void refuse_others(const struct site *site)
{
    static const char text[] =
        "was not created by stap-python enable: check and remove it yourself";
    if (is_there(site->pth) && !is_our_pth(site->pth))
        die(FAILED, "%s %s", site->pth, text);
    if (is_there(site->link) && !is_our_link(site->link))
        die(FAILED, "%s %s", site->link, text);
}

static bool links_to(const char *path, const char *file)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    return length == (ssize_t)strlen(file) && strncmp(target, file, (size_t)length) == 0;
}

/* Exits; error is an errno. */
static void fail(const char *path, int error)
{
    die(FAILED, "%s: %s%s", path, strerror(error),
        error == EACCES || error == EPERM ? ": run this as the owner of that directory" : "");
}

int enable_main(char **arguments)
{
    struct site site = find_site("enable", arguments, enable_usage);
    const char *shim = shim_file();
    if (!exists(shim))
        die(FAILED, "%s", shim_not_found());
    refuse_others(&site);
    if (is_our_pth(site.pth) && links_to(site.link, shim)) {
        printf("already enabled: %s\n", site.pth);
        return 0;
    }
    /* A Python that starts meanwhile finds both or no .pth; other users must be able to read it. */
    char *link = format("%s.%d", site.link, getpid()), *new = format("%s.%d", site.pth, getpid());
    if (symlink(shim, link) != 0 || rename(link, site.link) != 0) {
        int error = errno;
        unlink(link);
        fail(site.link, error);
    }
    int fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fchmod(fd, 0644) != 0 || write(fd, pth, sizeof pth - 1) != sizeof pth - 1 ||
        close(fd) != 0 || rename(new, site.pth) != 0) {
        int error = errno;
        unlink(new);
        if (!is_there(site.pth))
            unlink(site.link);
        fail(site.pth, error);
    }
    printf("enabled: %s\n", site.pth);
    return 0;
}

int disable_main(char **arguments)
{
    struct site site = find_site("disable", arguments, disable_usage);
    refuse_others(&site);
    if (!is_there(site.pth) && !is_there(site.link)) {
        printf("not enabled: there is no %s\n", site.pth);
        return 0;
    }
    if (unlink(site.pth) != 0 && errno != ENOENT)
        fail(site.pth, errno);
    if (unlink(site.link) != 0 && errno != ENOENT)
        fail(site.link, errno);
    printf("disabled: %s\n", site.pth);
    return 0;
}
