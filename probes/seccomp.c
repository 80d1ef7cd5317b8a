/*
 * Looks for filters of system calls in /proc.  A thread that wants the GIL makes the one that holds
 * it call futex() next, and hooks need memory: so the watcher leaves a program with a filter as it
 * is.
 *
 * SPDX-License-Identifier: MIT
 */
#include "seccomp.h"

#include "number.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A number that is greater for a thread with more filters; -1 if /proc does not tell. */
static long filters_in(const char *status_path)
{
    char text[4096];
    int fd = open(status_path, O_RDONLY | O_CLOEXEC);
    /* Not read(): if the watcher shares the program's descriptors, this may be a pipe by now. */
    ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (fd >= 0)
        close(fd);
    text[size < 0 ? 0 : size] = '\0';
    const char *mode = strstr(text, "\nSeccomp:"), *count = strstr(text, "\nSeccomp_filters:");
    if (!mode)
        return -1;
    return 1000 * (number_at(mode + sizeof "\nSeccomp:", NULL) != 0) +
           (count ? number_at(count + sizeof "\nSeccomp_filters:", NULL) : 0); /* Linux 5.9 */
}

/* Whether a thread of this part of /proc/self/task has more filters than that. */
static bool any_exceeds(long own, const char *entries, long size)
{
    const struct dirent64 *thread;
    for (long at = 0; at < size; at += thread->d_reclen) {
        thread = (const void *)(entries + at);
        char path[64 + sizeof thread->d_name];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", thread->d_name);
        if (filters_in(path) > own)
            return true;
    }
    return false;
}

long seccomp_own(void)
{
    return filters_in("/proc/thread-self/status") + 2;
}

/* Without opendir(), which allocates. */
bool any_thread_has_seccomp(void)
{
    _Alignas(struct dirent64) char entries[4096];
    long own = filters_in("/proc/thread-self/status"), size;
    int fd = own < 0 ? -1 : open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    while (fd >= 0 && !found && (size = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        found = any_exceeds(own, entries, size);
    if (fd >= 0)
        close(fd);
    return found;
}
