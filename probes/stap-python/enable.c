/*
 * `stap-python enable` and `disable`.  Code that root runs or files that it changes must not be
 * another user's: unsafe_path() decides.
 *
 * SPDX-License-Identifier: MIT
 */

#include "commands.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/program.h"
#include "lib/util.h"
#include "shared/cpython_structs.h"
#include "shared/versions.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who may write the files, for error lines. */
static const char owner[] = "the owner of that directory", root[] = "root";

static void fail(const char *path, int error, const char *who) __attribute__((noreturn));

static void fail(const char *path, int error, const char *who)
{
    bool denied = error == EACCES || error == EPERM;
    die(FAILED, "%s: %s%s", path, strerror(error), denied ? format(": run this as %s", who) : "");
}

/* ---------------------------------------------------------------- an interpreter */

struct site {
    const char *python;
    char *implementation; /* "cpython" */
    char *folder, *pth, *link;
    bool needs_start; /* ignores the .pth's line (PEP 829) */
};

/* The script by which an interpreter prints its site-packages.  With -S, no file in site-packages
 * runs; the script therefore detects a virtual environment itself, as site.py does. */
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

/* Runs the interpreter: its site-packages, *implementation and *minor.  Exits if it is not a
 * working Python 3.6 or later, or the shim does not support its version. */
static char *ask_for_folder(const char *python, char **implementation, int *minor)
{
    int status, major, at = 0;
    char free_threaded[16]; /* its version, or "-": it is not */
    const char *const ask[] = {python, "-IS", "-c", question, NULL};
    char *answer = run_and_capture(ask, 20, &status);
    char *line = strstr(answer, "\nsite: "), *name = status_field(answer, "implementation");
    *implementation = name ? strndup(name, strcspn(name, "\n")) : "cpython";
    if (status != 0 || !line ||
        sscanf(line, "\nsite: %d %d %15s %n", &major, minor, free_threaded, &at) != 3 || !at ||
        line[at] != '/')
        die(FAILED, "%s: not a working Python 3.6 or later", python);
    if (major != 3 || *minor < CPYTHON_OLDEST_MINOR)
        die(FAILED, "%s: the shim does not support it: Python %d.%d is older than 3.6", python,
            major, *minor);
    if (strcmp(free_threaded, "-") != 0 && !free_threading_supported(free_threaded))
        die(FAILED, "%s: the shim does not support it: %s", python, FREE_THREADING_TOO_OLD);
    char *folder = line + at;
    folder[strcspn(folder, "\n")] = '\0';
    return folder;
}

/* The absolute path of the interpreter that word names.  Exits if there is none. */
static const char *find_python(const char *word)
{
    const char *why;
    char *program = program_in_path(word);
    if (!program)
        die(FAILED, "%s: no such program", word);
    const char *python = pyenv_program(program, &why);
    if (!python)
        die(FAILED, "%s: %s", program, why);
    return absolute_path(python);
}

/* The paths of the files for an interpreter.  Exits if root must not run it or write there. */
static struct site find_site(const char *python)
{
    struct site site = {.python = python};
    const char *unsafe = NULL;
    int minor;
    if (geteuid() == 0 && (unsafe = unsafe_python(site.python)))
        die(FAILED, "%s: %s", site.python, unsafe);
    site.folder = ask_for_folder(site.python, &site.implementation, &minor);
    site.needs_start = minor >= NO_PTH_IMPORTS_MINOR;
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
    for (size_t i = 0; i < START_LINKS; i++) {
        const char *link = start_link(site->pth, i);
        if (is_present(link) && !is_our_start_link(link, i))
            die(FAILED, "%s %s", link, text);
    }
}

static bool leads_to(const char *link, const char *target)
{
    const char *found = link_target(link);
    return found && strcmp(found, target) == 0;
}

/* Whether `make install` or a package has created the files: only they make relative links. */
static bool is_installed(const struct site *site)
{
    const char *target = link_target(site->link);
    return is_our_pth(site->pth) && target && *target != '/';
}

/* Makes or replaces a link.  False, with errno: it is as before. */
static bool create_link(const char *target, const char *path)
{
    char *link = format("%s.%d", path, getpid());
    if (symlink(target, link) == 0 && rename(link, path) == 0)
        return true;
    int error = errno;
    unlink(link);
    errno = error;
    return false;
}

/* Whether all is as create_files() makes it. */
static bool is_complete(const struct site *site, const char *shim)
{
    bool complete = is_our_pth(site->pth) && leads_to(site->link, shim);
    for (size_t i = 0; i < START_LINKS && site->needs_start; i++)
        complete = complete && leads_to(start_link(site->pth, i), start_target(i));
    return complete;
}

/* Creates the files: a Python that starts meanwhile finds all that the .pth or .start file needs,
 * or neither.  False, with errno and the failed path in *at: no .pth was created. */
static bool create_files(const struct site *site, const char *shim, const char **at)
{
    bool done = create_link(shim, *at = site->link);
    for (size_t i = 0; i < START_LINKS && done && site->needs_start; i++)
        done = create_link(start_target(i), *at = start_link(site->pth, i));
    /* 0644: other users must be able to read it. */
    if (done && file_replace(*at = site->pth, pth_text, 0644))
        return true;
    int error = errno;
    if (!is_present(site->pth)) {
        for (size_t i = START_LINKS; i-- > 0;)
            unlink(start_link(site->pth, i));
        unlink(site->link);
    }
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
        printf("already enabled, by a package or make install: %s\n", printable(site.pth));
        return 0;
    }
    if (access(site.folder, W_OK) != 0)
        fail(site.link, errno, owner);
    /* Recorded first, so that no file exists that is not recorded. */
    bool was_listed = enabled_find(site.pth);
    enabled_add(site.pth);
    if (is_complete(&site, shim)) {
        printf("already enabled: %s\n", printable(site.pth));
        return 0;
    }
    if (!create_files(&site, shim, &at)) {
        int error = errno;
        if (!was_listed)
            enabled_drop(site.pth);
        fail(at, error, owner);
    }
    printf("enabled: %s\n", printable(site.pth));
    return 0;
}

int disable_python(const char *word)
{
    struct site site = find_site(find_python(word));
    refuse_others(&site);
    if (is_installed(&site))
        die(FAILED, "%s was installed by a package or make install: remove that package", site.pth);
    bool found = is_present(site.pth) || is_present(site.link);
    for (size_t i = 0; i < START_LINKS; i++)
        found |= is_present(start_link(site.pth, i));
    if (!found) {
        enabled_drop(site.pth);
        printf("not enabled: there is no %s\n", printable(site.pth));
        return 0;
    }
    if (access(site.folder, W_OK) != 0)
        fail(site.pth, errno, owner);
    const char *why = enabled_remove(site.pth);
    if (why)
        die(FAILED, "%s: %s", site.pth, why);
    printf("disabled: %s\n", printable(site.pth));
    return 0;
}

/* ---------------------------------------------------------------- systemd */

static bool systemd_runs(void)
{
    return file_exists(under_root("/run/systemd/system"));
}

/* Runs systemctl; the last arguments may be NULL.  Returns its output; exits if it fails. */
static char *systemctl(const char *verb, const char *properties, const char *unit)
{
    int status;
    const char *unsafe, *program = program_in_path("systemctl");
    if (!program)
        die(FAILED, "systemd runs, but there is no systemctl in PATH");
    if (geteuid() == 0 && (unsafe = unsafe_path(program)))
        die(FAILED, "%s: %s", program, unsafe);
    const char *const arguments[] = {program, verb, properties, unit, NULL};
    char *output = run_and_capture(arguments, 30, &status);
    if (status != 0)
        die(FAILED, "systemctl %s failed: %s", verb, strndup(output, strcspn(output, "\n")));
    return output;
}

void reload_services(void)
{
    if (systemd_runs())
        systemctl("daemon-reload", NULL, NULL);
}

/* The value of a line "name=value" in systemctl's output; NULL: there is none. */
static char *property(const char *shown, const char *name)
{
    char *line = strstr(format("\n%s", shown), format("\n%s=", name));
    return line ? strndup(line + strlen(name) + 2, strcspn(line + strlen(name) + 2, "\n")) : NULL;
}

/* The next word of *text, without systemctl's double quotes and backslashes; NULL: the end. */
static char *next_word(const char **text)
{
    *text += strspn(*text, " ");
    bool quoted = **text == '"';
    const char *at = *text + quoted;
    char *word = strdup(at), *end = word;
    if (!**text)
        return NULL;
    for (; *at && *at != (quoted ? '"' : ' '); at++) {
        at += quoted && *at == '\\' && at[1];
        *end++ = *at;
    }
    *end = '\0';
    *text = at + (quoted && *at);
    return word;
}

/* The value of LD_PRELOAD among the assignments that systemctl prints; "": it is not set. */
static char *preload_in(const char *assignments)
{
    static const char key[] = "LD_PRELOAD=";
    char *value = "";
    for (char *word; (word = next_word(&assignments));)
        if (strncmp(word, key, sizeof key - 1) == 0)
            value = word + sizeof key - 1;
    return value;
}

/* Exits if a file of a line "EnvironmentFiles=/etc/default/x (ignore_errors=yes)" sets LD_PRELOAD:
 * that would override the drop-in's value. */
static void refuse_environment_files(const char *shown)
{
    static const char key[] = "EnvironmentFiles=";
    char *rest = strdup(shown);
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        if (strncmp(line, key, sizeof key - 1) != 0)
            continue;
        char *file = strdup(line + sizeof key - 1), *end = strstr(file, " (");
        if (end)
            *end = '\0';
        char *text = read_file(under_root(file), 65536);
        if (text && strstr(format("\n%s", text), "\nLD_PRELOAD="))
            die(FAILED, "%s sets LD_PRELOAD, which no drop-in can change: add %s to it there", file,
                shim_preload());
    }
}

/* The service's present LD_PRELOAD, drop-ins included.  Exits if systemd has no such unit. */
static char *preload_of(const char *unit)
{
    /* systemctl can't show a template. */
    if (!systemd_runs() || strstr(unit, "@.service"))
        return "";
    char *shown = systemctl("show", "--property=LoadState,Environment,EnvironmentFiles", unit);
    char *state = property(shown, "LoadState"), *set = property(shown, "Environment");
    if (!state || strcmp(state, "not-found") == 0)
        die(FAILED, "%s: systemd knows no such unit", unit);
    refuse_environment_files(shown);
    return preload_in(set ? set : "");
}

/* ---------------------------------------------------------------- the drop-in of a service */

/* The name of the service with ".service".  Exits if word can't be the name of one. */
static char *unit_of(const char *word)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@";
    size_t length = strlen(word);
    if (!length || length > 200 || word[strspn(word, allowed)] || strchr(".-@", *word))
        die(USAGE, "'%s' is not the name of a service", word);
    return format("%s%s", word, ends_with(word, ".service") ? "" : ".service");
}

static char *drop_in_of(const char *unit)
{
    return format("%s/%s.d/50-systemtap-cpython.conf", under_root("/etc/systemd/system"), unit);
}

/* LD_PRELOAD's value without shims: a checkout's, or the one of the present drop-in. */
static char *without_shims(const char *value)
{
    char *rest = strdup(value), *kept = "";
    for (char *file; (file = strsep(&rest, " :"));)
        if (*file && !strstr(file, "/libpython-stap.so"))
            kept = format("%s%s%s", kept, *kept ? ":" : "", file);
    return kept;
}

/* The drop-in's text.  To systemd, % begins a specifier; in quotes, \ and " are escaped. */
static char *text_for(const char *preload)
{
    char *escaped = "";
    for (; *preload; preload++)
        escaped = format("%s%s%c", escaped,
                         *preload == '%'            ? "%"
                         : strchr("\\\"", *preload) ? "\\"
                                                    : "",
                         *preload);
    return format("%s%s\"\n", drop_in_head, escaped);
}

/* Creates the drop-in and its directory, and records its path.  Exits if that fails. */
static void create_drop_in(const char *path, const char *text)
{
    char *folder = strndup(path, (size_t)(strrchr(path, '/') - path));
    const char *unsafe;
    bool was_there = file_exists(folder), was_listed = enabled_find(path);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        fail(folder, errno, root);
    if (geteuid() == 0 && (unsafe = unsafe_path(folder)))
        die(FAILED, "%s: %s", folder, unsafe);
    if (access(folder, W_OK) != 0)
        fail(path, errno, root);
    enabled_add(path);
    if (!file_replace(path, text, 0644)) {
        int error = errno;
        if (!was_listed)
            enabled_drop(path);
        if (!was_there)
            rmdir(folder);
        fail(path, error, root);
    }
}

static void say_what_next(const char *unit)
{
    if (systemd_runs())
        printf("restart it: systemctl restart %s\n", unit);
}

int enable_service(const char *word)
{
    char *unit = unit_of(word), *path = drop_in_of(unit);
    if (!enabled_is_ours(path))
        die(FAILED,
            "%s was not created by stap-python enable, or changed since: check and remove it "
            "yourself",
            path);
    char *text = text_for(preload_with(without_shims(preload_of(unit))));
    char *present = read_file(path, 65536);
    if (present && strcmp(present, text) == 0) {
        if (access(path, W_OK) == 0)
            enabled_add(path);
        printf("already enabled: %s\n", path);
        return 0;
    }
    create_drop_in(path, text);
    reload_services();
    printf("enabled: %s\n", path);
    say_what_next(unit);
    return 0;
}

int disable_service(const char *word)
{
    char *unit = unit_of(word), *path = drop_in_of(unit);
    if (!file_exists(path)) {
        enabled_drop(path);
        printf("not enabled: there is no %s\n", path);
        return 0;
    }
    const char *why =
        enabled_find(path) || enabled_is_ours(path)
            ? enabled_remove(path)
            : "it was not created by stap-python enable: check and remove it yourself";
    if (why)
        die(FAILED, "%s: %s", path, why);
    reload_services();
    printf("disabled: %s\n", path);
    say_what_next(unit);
    return 0;
}

/* ---------------------------------------------------------------- the commands */

static const char enable_usage[] =
    "usage: stap-python enable [PYTHON]\n"
    "       stap-python enable --service UNIT\n"
    "       stap-python enable --list\n"
    "\n"
    "Makes every start of an interpreter (a name in PATH or a path; default: python3) load the\n"
    "shim, by python_stap.pth and the link python_stap.so in its site-packages; from CPython 3.15\n"
    "on also by the links python_stap.start and python_stap_start. Without them, or without the\n"
    "shim, it starts as before. With -S it does not load the shim. Root can enable only\n"
    "interpreters that no other user can change.\n"
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

/* Removes a recorded file, and prints the result.  False: it could not be removed. */
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

/* Whether the option is the only argument. */
static bool is_option(char **arguments, const char *option)
{
    return arguments[0] && strcmp(arguments[0], option) == 0 && !arguments[1];
}

/* The unit, if the arguments are "--service UNIT"; else NULL. */
static const char *service_of(char **arguments)
{
    bool is = arguments[0] && strcmp(arguments[0], "--service") == 0 && arguments[1];
    return is && !arguments[2] ? arguments[1] : NULL;
}

/* The interpreter that the arguments name; "python3" if there are none. */
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
