/*
 * `stap-python enable` and `disable`: a .pth file by which every start of one interpreter loads the
 * shim, and the link beside it that it imports.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stap_python.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char enable_usage[] =
    "usage: stap-python enable [PYTHON]\n"
    "\n"
    "Lets every start of an interpreter (python3 in PATH; a name in PATH or a path) load the "
    "shim,\n"
    "by two files in its site-packages: python_stap.pth, and the link python_stap.so. Without\n"
    "them, or without the shim, the interpreter starts as before. Not with python's -S. Root can "
    "do\n"
    "it to interpreters only that no other user can change.\n";

static const char disable_usage[] =
    "usage: stap-python disable [PYTHON]\n"
    "\n"
    "Removes what stap-python enable has made for that interpreter. Programs that run keep the\n"
    "shim until they end.\n";

/* One line, as site.py wants it; it prints nothing whatever becomes of the link. */
static const char pth[] =
    "import sys; exec('try:\\n import python_stap\\nexcept Exception:\\n pass')\n";

struct site {
    const char *python;
    char *pth, *link;
};

/* By -S no file in its folders is run; so a virtual environment is found here, as site.py does. */
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

/* The interpreter's folder for such files, by what it says itself. */
static struct site find_site(const char *command, char **arguments, const char *help)
{
    struct site site;
    int status, major, minor, at = 0;
    char free_threaded[8];
    help_if_asked(arguments, help);
    const char *word = arguments[0] ? arguments[0] : "python3";
    if (*word == '-' || !*word || (arguments[0] && arguments[1]))
        die(USAGE, "%s: one interpreter (see stap-python %s --help)", command, command);
    site.python = program_in_path(word);
    if (!site.python)
        die(FAILED, "%s: no such program", word);
    const char *others = geteuid() == 0 ? hold_of_python(site.python) : NULL;
    if (others)
        die(FAILED, "%s: %s", site.python, others);
    const char *const ask[] = {site.python, "-IS", "-c", question, NULL};
    char *answer = output_of(ask, 20, &status);
    char *line = strstr(answer, "\nsite: ");
    if (status != 0 || !line ||
        sscanf(line, "\nsite: %d %d %7s %n", &major, &minor, free_threaded, &at) != 3 || !at)
        die(FAILED, "%s: not a Python 3.6 or later that runs", site.python);
    if (major != 3 || minor < 6)
        die(FAILED, "%s: Python %d.%d is too old for the shim: it takes 3.6", site.python, major,
            minor);
    if (strcmp(free_threaded, "True") == 0)
        die(FAILED, "%s: it is free-threaded: the shim does nothing in it", site.python);
    char *folder = line + at;
    folder[strcspn(folder, "\n")] = '\0';
    if (!exists(folder))
        die(FAILED, "%s: its folder %s is not there", site.python, folder);
    others = geteuid() == 0 ? hold_of_others(folder) : NULL;
    if (others)
        die(FAILED, "%s: %s", folder, others);
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

/* A link to a file of the shim's name, wherever that is or was. */
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
    if (is_there(site->pth) && !is_our_pth(site->pth))
        die(FAILED, "%s is not what stap-python enable makes: look at it, and remove it yourself",
            site->pth);
    if (is_there(site->link) && !is_our_link(site->link))
        die(FAILED, "%s is not what stap-python enable makes: look at it, and remove it yourself",
            site->link);
}

static bool links_to(const char *path, const char *file)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    return length == (ssize_t)strlen(file) && strncmp(target, file, (size_t)length) == 0;
}

static void fail(const char *path)
{
    int error = errno;
    die(FAILED, "%s: %s%s", path, strerror(error),
        error == EACCES || error == EPERM ? ": try it as the owner of that folder" : "");
}

int enable_main(char **arguments)
{
    struct site site = find_site("enable", arguments, enable_usage);
    const char *shim = shim_file();
    if (!exists(shim))
        die(FAILED, "the shim is not there: %s: %s", shim,
            source_tree ? "run make" : "install systemtap-cpython anew");
    refuse_others(&site);
    if (is_our_pth(site.pth) && links_to(site.link, shim)) {
        printf("already enabled: %s\n", site.pth);
        return 0;
    }
    /* A Python that starts meanwhile finds all of it or no .pth; other users are to read it. */
    char *link = format("%s.%d", site.link, getpid()), *new = format("%s.%d", site.pth, getpid());
    if (symlink(shim, link) != 0 || rename(link, site.link) != 0) {
        int error = errno;
        unlink(link);
        errno = error;
        fail(site.link);
    }
    int fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fchmod(fd, 0644) != 0 || write(fd, pth, sizeof pth - 1) != sizeof pth - 1 ||
        close(fd) != 0 || rename(new, site.pth) != 0) {
        int error = errno;
        unlink(new);
        if (!is_there(site.pth))
            unlink(site.link);
        errno = error;
        fail(site.pth);
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
        fail(site.pth);
    if (unlink(site.link) != 0 && errno != ENOENT)
        fail(site.link);
    printf("disabled: %s\n", site.pth);
    return 0;
}
