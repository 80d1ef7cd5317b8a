/*
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"

#include "generated/installed.h"
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- file */

const char *under_root(const char *path)
{
    const char *root = secure_getenv("STAP_PYTHON_ROOT");
    return root && *root && *path == '/' ? format("%s%s", root, path) : path;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool is_present(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

int open_regular(const char *path, struct stat *status)
{
    char link[64];
    int fd = -1, place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    errno = EINVAL;
    if (fstat(place, status) == 0 && S_ISREG(status->st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", place);
        fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        /* A root may have no /proc, for example while packages are removed from it. */
        if (fd < 0 && errno == ENOENT)
            fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    int error = errno;
    close(place);
    errno = error;
    return fd;
}

char *read_file(const char *path, size_t limit)
{
    struct stat status;
    int fd = open_regular(path, &status);
    if (fd < 0)
        return NULL;
    char *text = malloc(limit + 1);
    size_t length = 0;
    ssize_t got = 0;
    while (text && length < limit && (got = read(fd, text + length, limit - length)) > 0)
        length += (size_t)got;
    close(fd);
    if (!text || got < 0) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    /* A large limit may be many times the length; with a small one there is little to save. */
    char *fitting = limit < 4096 ? NULL : realloc(text, length + 1);
    return fitting ? fitting : text;
}

bool file_has(const char *path, const char *text)
{
    char *all = read_file(under_root(path), 4 << 20);
    return all && strstr(all, text);
}

bool file_replace(const char *path, const char *text, mode_t mode)
{
    char *new = format("%s.%d", path, getpid());
    size_t length = strlen(text);
    int fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return false;
    bool written = fchmod(fd, mode) == 0 && write(fd, text, length) == (ssize_t)length;
    if (close(fd) == 0 && written && rename(new, path) == 0)
        return true;
    int error = errno;
    unlink(new);
    errno = error;
    return false;
}

/* ---------------------------------------------------------------- trust */

static bool is_among(uid_t user, const uid_t *users, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (user == users[i])
            return true;
    return false;
}

/* Removes the last component of an absolute path. */
static void to_parent(char *path)
{
    strcpy(strrchr(path, '/'), strchr(path + 1, '/') ? "" : "/");
}

const char *unsafe_path_in(const char *root, const char *path, const uid_t *users, size_t count,
                           char **file)
{
    enum { LINKS = 40 };
    /* The components still to check; the path checked so far. */
    char *rest = format("/.%s", path), *done = strdup("/"), target[PATH_MAX];
    /* Others can create files in the directory before, even a hard link to a file of root's. */
    bool shared = false;
    for (int links = 0; links < LINKS;) {
        struct stat status;
        rest += strspn(rest, "/");
        size_t length = strcspn(rest, "/");
        if (length == 2 && strncmp(rest, "..", 2) == 0)
            to_parent(done);
        else if (length && (length != 1 || *rest != '.'))
            done = format("%s/%.*s", done[1] ? done : "", (int)length, rest);
        rest += length;
        *file = format("%s%s", root, done);
        if (lstat(*file, &status) != 0)
            return format("%s: %s", done, strerror(errno));
        if (!is_among(status.st_uid, users, count))
            return format("%s is owned by another user (uid %u)%s", done, status.st_uid,
                          *root ? "" : ": run this as that user");
        if (shared && !S_ISDIR(status.st_mode))
            return format("%s may be another user's: its directory is writable by others", done);
        if (S_ISLNK(status.st_mode)) {
            ssize_t size = readlink(*file, target, sizeof target - 1);
            target[size < 0 ? 0 : size] = '\0';
            rest = format("%s/%s", target, rest);
            to_parent(done);
            if (*target == '/')
                strcpy(done, "/");
            links++;
            continue;
        }
        shared = status.st_mode & (S_IWGRP | S_IWOTH);
        if (shared && !(S_ISDIR(status.st_mode) && status.st_mode & S_ISVTX))
            return format("%s is writable by others: run chmod go-w %s", done, done);
        if (!rest[strspn(rest, "/")])
            return NULL;
    }
    return strerror(ELOOP);
}

const char *unsafe_path(const char *path)
{
    static const uid_t root;
    struct stat found, named;
    char *file;
    const char *why = unsafe_path_in(
        "", *path == '/' ? path : format("/%s/%s", getcwd(NULL, 0), path), &root, 1, &file);
    /* A link of /proc/PID may lead to another file than its text names. */
    if (!why && (stat(file, &found) != 0 || stat(path, &named) != 0 ||
                 found.st_dev != named.st_dev || found.st_ino != named.st_ino))
        why = "cannot tell who can change it: give its real path";
    return why;
}

/* ---------------------------------------------------------------- shim */

const char *source_tree;

void find_source_tree(void)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    /* The caller of a set-user-ID program may have hard-linked it into a tree of his own. */
    if (length <= 0 || getauxval(AT_SECURE))
        return;
    self[length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(self, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    if (file_exists(format("%s/probes/python.d", self)) &&
        file_exists(format("%s/build/stap-python", self)))
        source_tree = strdup(self);
}

const char *shim_preload(void)
{
    return source_tree ? format("%s/build/libpython-stap.so.0", source_tree) : SHIM_PATH;
}

/* ld.so's $LIB is lib64, lib, or Debian's lib/x86_64-linux-gnu.  If none of them has a shim, the
 * result is the path in MULTIARCH. */
const char *shim_file(void)
{
    static const char *const folders[] = {MULTIARCH, "lib64", "lib"};
    const char *path = shim_preload(), *lib = strstr(path, "$LIB");
    if (!lib)
        return path;
    char *file, *first = NULL;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        file = format("%.*s%s%s", (int)(lib - path), path, folders[i], lib + strlen("$LIB"));
        if (file_exists(under_root(file)))
            return file;
        first = first ? first : file;
    }
    return first;
}

char *shim_not_found(void)
{
    return format("shim not found: %s: %s", shim_file(),
                  source_tree ? "run make" : "reinstall systemtap-cpython");
}

char *preload_with(const char *others)
{
    const char *shim = shim_preload();
    size_t length = strlen(shim);
    if (!file_exists(shim_file()))
        die(FAILED, "%s", shim_not_found());
    if (strpbrk(shim, " :"))
        die(FAILED, "%s: LD_PRELOAD cannot hold a path with a space or colon: move the checkout",
            shim);
    if (!others || !*others)
        return strdup(shim);
    if (strncmp(others, shim, length) == 0 && strchr(" :", others[length]))
        return strdup(others);
    return format("%s:%s", shim, others);
}

char *preload_value(void)
{
    return preload_with(getenv("LD_PRELOAD"));
}

/* ---------------------------------------------------------------- stap cache */

char *stap_folder(void)
{
    const char *folder = secure_getenv("SYSTEMTAP_DIR"), *home = secure_getenv("HOME");
    if (folder && *folder)
        return strdup(folder);
    return home && *home ? format("%s/.systemtap", home) : NULL;
}

/* ---------------------------------------------------------------- who can write to stap's cache */

static char *found;
static const char *who;

static int look_at(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)where;
    /* The mode of a link has no meaning. */
    if (kind == FTW_SL || kind == FTW_SLN || kind == FTW_NS)
        return 0;
    bool own_group = status->st_gid == status->st_uid;
    if (status->st_mode & S_IWOTH || (status->st_mode & S_IWGRP && !own_group))
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

/* The umask with which this program was started, even after keep_others_out(). */
static mode_t callers_umask(void)
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
    if (status.st_mode & S_IWOTH && fchmod(fd, status.st_mode & 07777 & ~closed) == 0)
        *is_closed = true;
    return fd;
}

void keep_others_out(void)
{
    char *path = stap_folder();
    bool is_closed = false;
    set_tracers_umask();
    int folder =
        path ? open_own(AT_FDCWD, under_root(path), 0755, S_IWGRP | S_IWOTH, &is_closed) : -1;
    if (folder < 0)
        return;
    int cache = open_own(folder, "cache", S_IRWXU, S_IRWXG | S_IRWXO, &is_closed);
    if (cache >= 0)
        close(cache);
    close(folder);
    if (is_closed)
        warn("everybody could write to %s, where stap keeps the modules that it loads, until now: "
             "rm -rf %s removes what is there",
             printable(path), printable(shell_word(format("%s/cache", path))));
}

/* SystemTap 5.1 sets umask 0, which the programs that it starts inherit. */
static bool has_umask_0(const char *stap)
{
    const char *const command[] = {stap, "--version", NULL};
    int status;
    return strstr(run_and_capture(command, 10, &status), "version 5.1/") != NULL;
}

char *with_callers_umask(const char *command, const char *stap)
{
    bool changed = !(callers_umask() & S_IWOTH);
    if (!changed && !has_umask_0(stap))
        return strdup(command);
    return format("sh -c 'umask %03o && exec \"$@\"' sh %s", callers_umask(), command);
}
