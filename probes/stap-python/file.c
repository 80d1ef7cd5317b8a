/*
 * See file.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

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
        /* In a root without /proc, as while packages are removed from one, it is opened again. */
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
    /* A large limit may be many times the length; callers with a small one read up to it. */
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
