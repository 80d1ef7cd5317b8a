/*
 * See enabled.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "enabled.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "shim.h"
#include "text.h"
#include "trust.h"

bool is_service(const struct record *record)
{
    size_t length = strlen(record->path);
    return length < 4 || strcmp(record->path + length - 4, ".pth") != 0;
}

char *link_beside(const char *pth)
{
    return format("%s/python_stap.so", dirname(strdup(pth)));
}

bool is_our_link(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return false;
    target[length] = '\0';
    const char *name = strrchr(target, '/');
    return name && strncmp(name, "/libpython-stap.so", 18) == 0;
}

/* Whether the drop-in preloads a shim that exists.  The path of an installed one may have ld.so's
 * $LIB. */
static bool names_a_shim(const char *drop_in)
{
    static const char key[] = "LD_PRELOAD=";
    char *text = contents(drop_in, 65536), *at = text ? strstr(text, key) : NULL;
    if (!at)
        return false;
    at += sizeof key - 1;
    at[strcspn(at, ":\"")] = '\0';
    return exists(rooted(strchr(at, '$') ? shim_file() : at));
}

const char *enabled_fault(const struct record *record)
{
    struct stat status;
    if (lstat(record->path, &status) != 0)
        return errno == EACCES ? NULL : strerror(errno);
    if (record_is_changed(record))
        return "it was changed since stap-python enable created it";
    if (!is_service(record) && !exists(link_beside(record->path)))
        return format("the link %s leads to no shim", link_beside(record->path));
    if (is_service(record) && !names_a_shim(record->path))
        return "the shim that it names does not exist";
    return NULL;
}

const char *enabled_undo(const struct record *record)
{
    struct stat status;
    const char *unsafe, *folder = dirname(strdup(record->path));
    bool is_there = lstat(record->path, &status) == 0;
    if (!is_there && errno != ENOENT && errno != ENOTDIR)
        return strerror(errno);
    if (geteuid() == 0 && exists(folder) && (unsafe = unsafe_path(folder)))
        return unsafe;
    if (is_there && record_is_changed(record))
        return "it was changed since stap-python enable created it: check and remove it yourself";
    if (is_there && unlink(record->path) != 0)
        return strerror(errno);
    if (is_service(record))
        rmdir(folder);
    else if (is_our_link(link_beside(record->path)))
        unlink(link_beside(record->path));
    record_drop(record->path);
    return NULL;
}
