/*
 * The list of the files that `stap-python enable` has created, and whether these files are
 * unchanged.
 *
 * SPDX-License-Identifier: MIT
 */

#include "generated/installed.h"
#include "lib/files.h"
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the list */

enum { LONGEST = 1 << 20 };

static const char *root_folder(void)
{
    return under_root("/var/lib/systemtap-cpython");
}

/* The directory of this user's list. */
static const char *own_folder(void)
{
    if (geteuid() == 0)
        return root_folder();
    const char *state = secure_getenv("XDG_STATE_HOME"), *home = secure_getenv("HOME");
    if (state && *state == '/')
        return under_root(format("%s/systemtap-cpython", state));
    return under_root(format("%s/.local/state/systemtap-cpython", home ? home : ""));
}

/* The path in a line: the whole line, or the second field of "SUM<tab>PATH<tab>NAME", which older
 * versions wrote.  NULL if there is none. */
static char *path_in(const char *line)
{
    char *rest = strdup(line), *field;
    while ((field = strsep(&rest, "\t")) && *field != '/')
        ;
    return field;
}

static void read_from(const char *folder, char ***paths, size_t *count)
{
    char *text = read_file(format("%s/enabled", folder), LONGEST);
    for (char *line, *path; text && (line = strsep(&text, "\n"));) {
        if (!(path = path_in(line)))
            continue;
        *paths = reallocarray(*paths, *count + 1, sizeof path);
        if (!*paths)
            abort();
        (*paths)[(*count)++] = path;
    }
}

size_t enabled_read(bool with_root, char ***paths)
{
    size_t count = 0;
    const char *unsafe, *own = format("%s/enabled", own_folder());
    *paths = NULL;
    /* `disable` as root removes the files that the list names. */
    if (geteuid() == 0 && file_exists(own) && (unsafe = unsafe_path(own)))
        die(FAILED, "%s: %s", own, unsafe);
    read_from(own_folder(), paths, &count);
    if (with_root && geteuid() != 0)
        read_from(root_folder(), paths, &count);
    return count;
}

bool enabled_find(const char *path)
{
    char **paths;
    size_t count = enabled_read(false, &paths);
    for (size_t i = 0; i < count; i++)
        if (strcmp(paths[i], path) == 0)
            return true;
    return false;
}

static void fail(const char *path, int error) __attribute__((noreturn));

static void fail(const char *path, int error)
{
    die(FAILED, "%s: cannot record what is enabled: %s%s", path, strerror(error),
        geteuid() == 0 ? "" : ": set XDG_STATE_HOME to a directory of yours");
}

/* Who can open the directory can lock it: so others may enter root's, to read the list, but not
 * open it. */
static mode_t mode_of_folder(void)
{
    return geteuid() == 0 ? 0711 : 0700;
}

static bool make_folders(const char *folder)
{
    mode_t mode = geteuid() == 0 ? 0755 : 0700;
    char *path = strdup(folder);
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        if (mkdir(path, mode) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(path, mode_of_folder()) == 0 || errno == EEXIST;
}

/* Creates and locks the directory; returns a descriptor, which the caller closes to unlock. */
static int lock(const char *folder)
{
    struct stat opened, named;
    const char *unsafe;
    int fd = -1;
    do {
        if (fd >= 0)
            close(fd);
        if (!make_folders(folder) || (fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
            fail(folder, errno);
        if (geteuid() == 0 && (unsafe = unsafe_path(folder)))
            die(FAILED, "%s: %s", folder, unsafe);
        /* Older versions made root's for everybody to open. */
        if ((geteuid() == 0 && fchmod(fd, mode_of_folder()) != 0) || flock(fd, LOCK_EX) != 0 ||
            fstat(fd, &opened) != 0)
            fail(folder, errno);
        /* The previous holder of the lock may have removed the directory. */
    } while (stat(folder, &named) != 0 || named.st_ino != opened.st_ino);
    return fd;
}

/* Rewrites this user's list without the path, or with the path last.  Lines without a path stay. */
static void write_list(const char *path, bool with_path)
{
    const char *folder = own_folder(), *file = format("%s/enabled", folder);
    int locked = lock(folder);
    char *rest = read_file(file, LONGEST), *text = "";
    if (file_exists(file) && (!rest || strlen(rest) == LONGEST))
        fail(file, rest ? EFBIG : errno);
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        const char *other = path_in(line);
        if (*line && !(other && strcmp(other, path) == 0))
            text = format("%s%s\n", text, line);
    }
    if (with_path)
        text = format("%s%s\n", text, path);
    if (*text ? !file_replace(file, text, geteuid() == 0 ? 0644 : 0600)
              : unlink(file) != 0 && errno != ENOENT)
        fail(file, errno);
    if (!*text)
        rmdir(folder);
    close(locked);
}

void enabled_add(const char *path)
{
    if (strpbrk(path, "\t\n"))
        die(FAILED, "%s: cannot record a path with a tab or line break", path);
    write_list(path, true);
}

void enabled_drop(const char *path)
{
    if (enabled_find(path))
        write_list(path, false);
}

/* ---------------------------------------------------------------- the files */

/* One line, as site.py requires.  The line prints nothing if the link is broken. */
const char pth_text[] = PTH_LINE "\n";

const char drop_in_head[] =
    "# Created by stap-python enable --service; stap-python disable --service removes it.\n"
    "[Service]\n"
    "Environment=\"LD_PRELOAD=";

bool is_service(const char *path)
{
    return !ends_with(path, ".pth");
}

char *link_next_to(const char *pth)
{
    return format("%s/python_stap.so", dirname(strdup(pth)));
}

bool is_our_link(const char *path)
{
    const char *target = link_target(path), *name = target ? strrchr(target, '/') : NULL;
    return name && strncmp(name, "/libpython-stap.so", 18) == 0;
}

static const char *const start_names[START_LINKS] = {"/python_stap_start", "/python_stap.start"};
static const char *const start_targets[START_LINKS] = {"/python_stap_start",
                                                       "/python_stap_start/python_stap.start"};

char *start_link(const char *pth, size_t which)
{
    return format("%s%s", dirname(strdup(pth)), start_names[which]);
}

char *start_target(size_t which)
{
    return format("%s%s", dirname(strdup(shim_file())), start_targets[which]);
}

bool is_our_start_link(const char *path, size_t which)
{
    const char *target = link_target(path);
    size_t length = target ? strlen(target) : 0, end = strlen(start_targets[which]);
    return length >= end && strcmp(target + length - end, start_targets[which]) == 0;
}

bool is_our_pth(const char *path)
{
    char *text = read_file(path, strlen(pth_text) + 1);
    return text && strcmp(text, pth_text) == 0;
}

/* LD_PRELOAD's value in a drop-in; NULL if the drop-in is not as enable creates it. */
static char *preload_in(const char *drop_in)
{
    char *text = read_file(drop_in, 65536);
    if (!text || strncmp(text, drop_in_head, strlen(drop_in_head)) != 0)
        return NULL;
    char *value = text + strlen(drop_in_head), *at = value, *end = value;
    while (*at && *at != '"' && *at != '\n') {
        if ((*at == '\\' && at[1] && strchr("\\\"", at[1])) || (*at == '%' && at[1] == '%'))
            at++;
        *end++ = *at++;
    }
    if (strcmp(at, "\"\n") != 0)
        return NULL;
    *end = '\0';
    return strstr(value, "/libpython-stap.so") ? value : NULL;
}

bool enabled_is_ours(const char *path)
{
    if (is_service(path))
        return !is_present(path) || preload_in(path);
    const char *link = link_next_to(path);
    bool ours = (!is_present(path) || is_our_pth(path)) && (!is_present(link) || is_our_link(link));
    for (size_t i = 0; i < START_LINKS; i++) {
        link = start_link(path, i);
        ours = ours && (!is_present(link) || is_our_start_link(link, i));
    }
    return ours;
}

/* Whether the drop-in preloads a shim that exists.  An installed shim's path may contain ld.so's
 * $LIB. */
static bool names_a_shim(const char *drop_in)
{
    char *rest = preload_in(drop_in);
    for (char *file; (file = strsep(&rest, " :"));)
        if (strstr(file, "/libpython-stap.so"))
            return file_exists(under_root(strchr(file, '$') ? shim_file() : file));
    return false;
}

const char *enabled_problem(const char *path)
{
    if (!is_present(path))
        return errno == EACCES ? NULL : strerror(errno);
    if (!enabled_is_ours(path))
        return "it was changed since stap-python enable created it";
    if (!is_service(path) && !file_exists(link_next_to(path)))
        return format("the link %s leads to no shim", link_next_to(path));
    if (!is_service(path) && file_exists(start_link(path, 1)) && !file_exists(start_link(path, 0)))
        return format("the link %s leads nowhere", start_link(path, 0));
    if (is_service(path) && !names_a_shim(path))
        return "the shim that it names does not exist";
    return NULL;
}

const char *enabled_remove(const char *path)
{
    const char *unsafe, *folder = dirname(strdup(path));
    bool found = is_present(path);
    if (!found && errno != ENOENT && errno != ENOTDIR)
        return strerror(errno);
    if (geteuid() == 0 && file_exists(folder) && (unsafe = unsafe_path(folder)))
        return unsafe;
    if (!enabled_is_ours(path))
        return "it was changed since stap-python enable created it: check and remove it yourself";
    for (size_t i = START_LINKS; i-- > 0 && !is_service(path);)
        unlink(start_link(path, i));
    if (found && unlink(path) != 0)
        return strerror(errno);
    if (is_service(path))
        rmdir(folder);
    else
        unlink(link_next_to(path));
    enabled_drop(path);
    return NULL;
}
