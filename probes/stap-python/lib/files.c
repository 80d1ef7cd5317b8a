/*
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"

#include "generated/installed.h"
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
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

/* Whether the file system may be one that another user has mounted, who says whose its files are:
 * one of FUSE that the user serves, or a disk image.  Such mounts have no set-user-ID programs and
 * no devices; those of /tmp have neither, too, but are in memory. */
static bool is_users_mount(const struct statfs *mount)
{
    enum {
        FUSE_MAGIC = 0x65735546,
        TMPFS_MAGIC = 0x01021994
    }; /* of <linux/magic.h>; FUSE_SUPER_MAGIC is not in older headers */
    if (!(mount->f_flags & ST_NOSUID))
        return false;
    return mount->f_type == FUSE_MAGIC ||
           (mount->f_flags & ST_NODEV && mount->f_type != TMPFS_MAGIC);
}

bool others_can_change(int fd, const struct stat *status)
{
    struct statfs mount;
    return (status->st_uid != 0 && status->st_uid != geteuid()) ||
           status->st_mode & (S_IWGRP | S_IWOTH) || fstatfs(fd, &mount) != 0 ||
           is_users_mount(&mount);
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
    int fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return false;
    bool written = fchmod(fd, mode) == 0;
    /* On a full disk the first write is cut short, and only the next one sets errno. */
    for (ssize_t got; written && *text; text += got) {
        got = write(fd, text, strlen(text));
        written = got > 0;
    }
    if (close(fd) == 0 && written && rename(new, path) == 0)
        return true;
    int error = errno;
    unlink(new);
    errno = error;
    return false;
}

static bool is_ours_or_roots(const struct stat *status)
{
    return status->st_uid == geteuid() || status->st_uid == 0;
}

/* Opens what is at path in a folder where everybody can make files, if it is this user's or root's.
 * Another user may put something else there at any time. */
static int open_in_shared(const struct stat *folder, const char *path, int flags)
{
    /* Nobody else can replace what is ours. */
    bool is_kept = folder->st_mode & S_ISVTX && is_ours_or_roots(folder);
    struct stat found;
    int fd = -1, place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0)
        return -1;
    errno = EACCES;
    if (fstat(place, &found) == 0 && is_ours_or_roots(&found)) {
        if (S_ISLNK(found.st_mode) && is_kept)
            fd = open(path, flags | O_CREAT, 0666);
        /* Another user may have made a hard link to a file of ours. */
        else if (!S_ISLNK(found.st_mode) && (!S_ISREG(found.st_mode) || found.st_nlink == 1))
            fd = open(format("/proc/self/fd/%d", place), flags);
    }
    int error = errno;
    close(place);
    errno = error;
    return fd;
}

int open_output(const char *path)
{
    enum { FLAGS = O_WRONLY | O_CLOEXEC | O_NOCTTY, TRIES = 100 };
    struct stat folder;
    bool is_shared =
        stat(dirname(strdup(path)), &folder) == 0 &&
        (folder.st_mode & S_IWOTH || (folder.st_mode & S_ISVTX && folder.st_mode & S_IWGRP));
    if (!is_shared)
        return open(path, FLAGS | O_CREAT, 0666);
    int fd = -1;
    /* Again if what was there is gone. */
    for (int i = 0; fd < 0 && i < TRIES && (i == 0 || errno == ENOENT); i++) {
        fd = open(path, FLAGS | O_CREAT | O_EXCL, 0666);
        if (fd < 0 && errno == EEXIST)
            fd = open_in_shared(&folder, path, FLAGS);
    }
    return fd;
}

FILE *output_stream(int fd)
{
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    /* EINVAL: it is a pipe or a terminal. */
    return stream && (ftruncate(fd, 0) == 0 || errno == EINVAL) ? stream : NULL;
}

char *link_target(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target);
    return length > 0 ? format("%.*s", (int)length, target) : NULL;
}

const char *absolute_path(const char *path)
{
    if (*path == '/')
        return path;
    const char *folder =
        getcwd(NULL, 0); /* NULL: it is deleted; "(unreachable)...": not below "/" */
    return format("%s%s/%s", folder && *folder == '/' ? "" : "/", folder ? folder : "", path);
}

char *own_program(void)
{
    return link_target("/proc/self/exe");
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
    char *rest = format("/.%s", path), *done = strdup("/");
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
            const char *target = link_target(*file);
            rest = format("%s/%s", target ? target : "", rest);
            to_parent(done);
            if (target && *target == '/')
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
    const char *why = unsafe_path_in("", absolute_path(path), &root, 1, &file);
    /* A link of /proc/PID may lead to another file than its text names. */
    if (!why && (stat(file, &found) != 0 || stat(path, &named) != 0 ||
                 found.st_dev != named.st_dev || found.st_ino != named.st_ino))
        why = "cannot tell who can change it: give its real path";
    return why;
}

const char *unsafe_mount(const char *path)
{
    struct statfs mount;
    if (statfs(path, &mount) == 0 && !is_users_mount(&mount))
        return NULL;
    return format("%s is on a file system that another user may have mounted (nosuid, nodev): if "
                  "root did, remount it with dev",
                  path);
}

const char *unsafe_file(const char *path)
{
    const char *why = unsafe_path(path);
    return why ? why : unsafe_mount(path);
}

const char *unsafe_folder(const char *path)
{
    char *folder = strdup(path);
    struct stat status;
    while (!file_exists(folder) && folder[1])
        folder = dirname(folder);
    const char *why = unsafe_file(folder);
    if (!why && stat(folder, &status) == 0 && status.st_mode & (S_IWGRP | S_IWOTH))
        why = format("%s is writable by others", folder);
    return why;
}

const char *temporary_folder(void)
{
    const char *folder = secure_getenv("TMPDIR"), *unsafe;
    if (!folder || !*folder)
        return "/tmp";
    if (geteuid() != 0 || !(unsafe = unsafe_file(folder)))
        return folder;
    warn("TMPDIR is not used: %s", unsafe);
    unsetenv("TMPDIR");
    return "/tmp";
}

/* ---------------------------------------------------------------- shim */

const char *source_tree;

void find_source_tree(void)
{
    char *self = own_program();
    /* The caller of a set-user-ID program may have hard-linked it into a tree of his own. */
    if (!self || getauxval(AT_SECURE))
        return;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(self, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    if (file_exists(format("%s/probes/python.d", self)) &&
        file_exists(format("%s/build/stap-python", self)))
        source_tree = self;
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
