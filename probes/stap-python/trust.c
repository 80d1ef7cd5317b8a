/*
 * See trust.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "trust.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

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
    /* What is to be looked at, and what has been. */
    char *rest = format("/.%s", path), *done = strdup("/"), target[PATH_MAX];
    /* Others can create files in the last directory: also a hard link to any file of root's. */
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
    /* The links of /proc/PID lead elsewhere than their text says. */
    if (!why && (stat(file, &found) != 0 || stat(path, &named) != 0 ||
                 found.st_dev != named.st_dev || found.st_ino != named.st_ino))
        why = "cannot tell who can change it: give its real path";
    return why;
}
