/*
 * stap's folder: who can write to its cache, and the umask with which stap runs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"
#include "lib/util.h"
#include "systemtap/systemtap.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *stap_folder(void)
{
    const char *folder = secure_getenv("SYSTEMTAP_DIR"), *home = secure_getenv("HOME");
    if (folder && *folder)
        return strdup(folder);
    const struct passwd *user = home && *home ? NULL : getpwuid(geteuid());
    home = user ? user->pw_dir : home;
    return home && *home ? format("%s/.systemtap", home) : NULL;
}

/* ---------------------------------------------------------------- who can write to stap's cache */

bool others_can_write(const struct stat *status)
{
    bool own_group = status->st_gid == status->st_uid;
    return status->st_mode & S_IWOTH || (status->st_mode & S_IWGRP && !own_group);
}

static char *found;
static const char *who;

static int look_at(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)where;
    /* The mode of a link has no meaning. */
    if (kind == FTW_SL || kind == FTW_SLN || kind == FTW_NS)
        return 0;
    if (others_can_write(status))
        who = "others";
    else if (status->st_uid != geteuid() && status->st_uid != 0)
        who = format("another user (uid %u)", status->st_uid);
    if (who)
        found = strdup(path);
    return who != NULL;
}

char *stap_file_of_others(const char **others)
{
    enum { DESCRIPTORS = 8 };
    char *named = stap_folder();
    struct stat status;
    if (!named)
        return NULL;
    const char *folder = under_root(named);
    found = NULL;
    who = NULL;
    if (stat(folder, &status) == 0 && !look_at(folder, &status, FTW_D, NULL))
        nftw(format("%s/cache", folder), look_at, DESCRIPTORS, FTW_PHYS);
    *others = who;
    /* The path without STAP_PYTHON_ROOT. */
    return found ? found + strlen(folder) - strlen(named) : NULL;
}

/* ---------------------------------------------------------------- umask */

static mode_t callers;
static bool is_known;

mode_t callers_umask(void)
{
    if (!is_known) {
        callers = umask(S_IWGRP | S_IWOTH);
        umask(callers);
        is_known = true;
    }
    return callers;
}

void set_tracers_umask(void)
{
    if (!(callers_umask() & S_IWOTH))
        umask(callers_umask() | S_IWGRP | S_IWOTH);
}

/* Opens the folder at path, relative to parent, and creates it if it is missing; -1 if it is not
 * ours.  If everybody could write to it, removes the mode bits closed, and sets *is_closed. */
static int open_own(int parent, const char *path, mode_t mode, mode_t closed, bool *is_closed)
{
    struct stat status;
    mkdirat(parent, path, mode);
    /* O_NOFOLLOW: root must not change the mode of a file to which another user's link leads. */
    int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_uid != geteuid()) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    /* One with the sticky bit is for everybody, as /tmp. */
    if (status.st_mode & S_IWOTH && !(status.st_mode & S_ISVTX) &&
        fchmod(fd, status.st_mode & 07777 & ~closed) == 0)
        *is_closed = true;
    return fd;
}

/* The reason why another user could replace the folder at path, which need not exist, or has made
 * the cache in it; NULL: none. */
static const char *why_others(const char *path)
{
    char real[PATH_MAX], *parent = strdup(path);
    struct stat status;
    if (!is_present(path))
        return unsafe_folder(dirname(parent));
    if (!realpath(path, real))
        return format("%s: %s", path, strerror(errno));
    /* The path may be a link, which stap follows anew. */
    const char *why = NULL, *names[] = {path, real, format("%s/cache", real)};
    for (size_t i = 0; i < 3 && !why; i++) {
        why = i < 2 ? unsafe_file(dirname(strdup(names[i]))) : NULL;
        if (!why && lstat(names[i], &status) == 0 && status.st_uid != 0)
            why = format("%s is owned by another user (uid %u)", names[i], status.st_uid);
    }
    if (!why)
        why = unsafe_mount(real);
    if (!why && stat(real, &status) == 0 && status.st_mode & S_ISVTX && status.st_mode & S_IWOTH)
        why = format("everybody can make files in %s", path);
    return why;
}

static void leave_folder(const char *folder, const char *why)
{
    const struct passwd *root = getpwuid(0);
    char *own = format("%s/.systemtap", root ? root->pw_dir : "/root");
    if (why_others(under_root(own)))
        die(FAILED, "stap's folder is %s: %s: set SYSTEMTAP_DIR to one of root's", folder, why);
    warn("stap's folder is %s and not %s: %s", own, folder, why);
    setenv("SYSTEMTAP_DIR", own, 1);
}

/* stap takes the tapsets of each folder in XDG_DATA_DIRS, and a tapset may have C. */
static void leave_tapsets(const char *folders)
{
    char *rest = strdup(folders), *kept = "";
    for (char *folder; (folder = strsep(&rest, ":"));)
        if (*folder == '/' && !unsafe_folder(format("%s/systemtap/tapset", under_root(folder))))
            kept = format("%s%s%s", kept, *kept ? ":" : "", folder);
    if (strcmp(kept, folders) == 0)
        return;
    if (*kept)
        setenv("XDG_DATA_DIRS", kept, 1);
    else
        unsetenv("XDG_DATA_DIRS");
}

void leave_others_folders(void)
{
    const char *why, *folders = getenv("XDG_DATA_DIRS");
    char *folder = stap_folder();
    if (geteuid() != 0)
        return;
    temporary_folder();
    if (folders)
        leave_tapsets(folders);
    if (folder && (why = why_others(under_root(folder))))
        leave_folder(folder, why);
}

void keep_others_out(void)
{
    leave_others_folders();
    char *path = stap_folder();
    bool is_closed = false;
    set_tracers_umask();
    int folder =
        path ? open_own(AT_FDCWD, under_root(path), 0755, S_IWGRP | S_IWOTH, &is_closed) : -1;
    if (folder < 0 && geteuid() == 0)
        /* Another user may have made it in the meantime. */
        leave_others_folders();
    if (folder < 0)
        return;
    int cache = open_own(folder, "cache", S_IRWXU, S_IRWXG | S_IRWXO, &is_closed);
    if (cache >= 0)
        close(cache);
    else if (geteuid() == 0)
        leave_others_folders();
    close(folder);
    if (is_closed)
        warn("everybody could write to %s, where stap keeps the modules that it loads, until now: "
             "rm -rf %s removes what is there",
             printable(path), printable(shell_word(format("%s/cache", path))));
}

/* SystemTap 5.1 sets umask 0, which the programs that it starts inherit. */
static bool has_umask_0(void)
{
    struct stap_version version = known_stap_version();
    return version.major == 5 && version.minor == 1;
}

char *with_callers_umask(const char *command)
{
    bool changed = !(callers_umask() & S_IWOTH);
    if (!changed && !has_umask_0())
        return strdup(command);
    return format("sh -c 'umask %03o && exec \"$@\"' sh %s", callers_umask(), command);
}
