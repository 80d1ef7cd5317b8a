/*
 * See enable_python.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "enable_python.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "cpython_layout.h"
#include "enabled.h"
#include "file.h"
#include "free_threaded.h"
#include "interpreter.h"
#include "program.h"
#include "pyenv.h"
#include "shim.h"
#include "text.h"
#include "trust.h"

struct site {
    const char *python;
    char *implementation; /* "cpython" */
    char *folder, *pth, *link;
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
    "print('\\nimplementation:', sys.implementation.name)\n"
    "print('\\nsite:', sys.version_info[0], sys.version_info[1], sys.version.split()[0] "
    "if 't' in getattr(sys, 'abiflags', '') else '-', folders[0])\n";

/* The interpreter's site-packages, as it says itself, and what it says that it is.  Exits if the
 * shim does not support that CPython. */
static char *ask_for_folder(const char *python, char **implementation)
{
    int status, major, minor, at = 0;
    char free_threaded[16]; /* its version, or "-": it is not */
    const char *const ask[] = {python, "-IS", "-c", question, NULL};
    char *answer = run_and_capture(ask, 20, &status);
    char *line = strstr(answer, "\nsite: "), *name = status_field(answer, "implementation");
    *implementation = name ? strndup(name, strcspn(name, "\n")) : "cpython";
    if (status != 0 || !line ||
        sscanf(line, "\nsite: %d %d %15s %n", &major, &minor, free_threaded, &at) != 3 || !at)
        die(FAILED, "%s: not a working Python 3.6 or later", python);
    if (major != 3 || minor < CPYTHON_OLDEST_MINOR)
        die(FAILED, "%s: the shim does not support it: Python %d.%d is older than 3.6", python,
            major, minor);
    if (strcmp(free_threaded, "-") != 0 && !free_threading_supported(free_threaded))
        die(FAILED, "%s: the shim does not support it: %s", python, FREE_THREADING_TOO_OLD);
    char *folder = line + at;
    folder[strcspn(folder, "\n")] = '\0';
    return folder;
}

/* The interpreter that word names, by an absolute path. */
static const char *find_python(const char *word)
{
    const char *why;
    char *program = program_in_path(word);
    if (!program)
        die(FAILED, "%s: no such program", word);
    const char *python = pyenv_program(program, &why);
    if (!python)
        die(FAILED, "%s: %s", program, why);
    return *python == '/' ? python : format("%s/%s", getcwd(NULL, 0), python);
}

/* The interpreter with its files. */
static struct site find_site(const char *python)
{
    struct site site = {.python = python};
    const char *unsafe = NULL;
    if (geteuid() == 0 && (unsafe = unsafe_python(site.python)))
        die(FAILED, "%s: %s", site.python, unsafe);
    site.folder = ask_for_folder(site.python, &site.implementation);
    if (!file_exists(site.folder))
        die(FAILED, "%s: its directory %s does not exist", site.python, site.folder);
    if (geteuid() == 0 && (unsafe = unsafe_path(site.folder)))
        die(FAILED, "%s: %s", site.folder, unsafe);
    site.pth = format("%s/python_stap.pth", site.folder);
    site.link = link_next_to(site.pth);
    return site;
}

static void refuse_others(const struct site *site)
{
    static const char text[] =
        "was not created by stap-python enable: check and remove it yourself";
    if (is_present(site->pth) && !is_our_pth(site->pth))
        die(FAILED, "%s %s", site->pth, text);
    if (is_present(site->link) && !is_our_link(site->link))
        die(FAILED, "%s %s", site->link, text);
}

static char *target_of(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    return strndup(target, length < 0 ? 0 : (size_t)length);
}

/* Whether `make install` or a package has put both there: its link is a relative one. */
static bool is_installed(const struct site *site)
{
    const char *target = target_of(site->link);
    return is_our_pth(site->pth) && *target && *target != '/';
}

/* Exits; error is an errno. */
static void fail(const char *path, int error)
{
    die(FAILED, "%s: %s%s", path, strerror(error),
        error == EACCES || error == EPERM ? ": run this as the owner of that directory" : "");
}

/* Creates both files: a Python that starts meanwhile finds both or no .pth.  False, with errno and
 * *at, if that fails; then there is no .pth. */
static bool create(const struct site *site, const char *shim, const char **at)
{
    char *link = format("%s.%d", site->link, getpid());
    *at = site->link;
    if (symlink(shim, link) != 0 || rename(link, site->link) != 0) {
        int error = errno;
        unlink(link);
        errno = error;
        return false;
    }
    *at = site->pth;
    /* Other users must be able to read it. */
    if (file_replace(site->pth, pth_text, 0644))
        return true;
    int error = errno;
    if (!is_present(site->pth))
        unlink(site->link);
    errno = error;
    return false;
}

int enable_python(const char *word)
{
    const char *python = find_python(word), *shim = shim_file(), *at, *why;
    struct interpreter found;
    if (!interpreter_open(python, &found, &why) && found.file.other)
        die(FAILED, "%s: %s", python, why);
    if (found.file.is_cpython && (why = unsupported_reason(&found.file)))
        die(FAILED, "%s: the shim does not support it: %s", python, why);
    struct site site = find_site(python);
    if (strcmp(site.implementation, "cpython") != 0)
        die(FAILED, "%s: it is %s, not CPython: nothing can be seen of it", python,
            site.implementation);
    if (!file_exists(shim))
        die(FAILED, "%s", shim_not_found());
    refuse_others(&site);
    if (is_installed(&site)) {
        printf("already enabled, by a package or make install: %s\n", site.pth);
        return 0;
    }
    if (access(site.folder, W_OK) != 0)
        fail(site.link, errno);
    /* First, so that nothing is there that is not listed. */
    bool was_listed = enabled_find(site.pth);
    enabled_add(site.pth);
    if (is_our_pth(site.pth) && strcmp(target_of(site.link), shim) == 0) {
        printf("already enabled: %s\n", site.pth);
        return 0;
    }
    if (!create(&site, shim, &at)) {
        int error = errno;
        if (!was_listed)
            enabled_drop(site.pth);
        fail(at, error);
    }
    printf("enabled: %s\n", site.pth);
    return 0;
}

int disable_python(const char *word)
{
    struct site site = find_site(find_python(word));
    refuse_others(&site);
    if (is_installed(&site))
        die(FAILED, "%s was installed by a package or make install: remove that package", site.pth);
    if (!is_present(site.pth) && !is_present(site.link)) {
        enabled_drop(site.pth);
        printf("not enabled: there is no %s\n", site.pth);
        return 0;
    }
    if (access(site.folder, W_OK) != 0)
        fail(site.pth, errno);
    const char *why = enabled_remove(site.pth);
    if (why)
        die(FAILED, "%s: %s", site.pth, why);
    printf("disabled: %s\n", site.pth);
    return 0;
}
