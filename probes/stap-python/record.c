/*
 * See record.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "file.h"
#include "text.h"
#include "trust.h"

enum { LONGEST = 1 << 20 };

static const char *root_folder(void)
{
    return rooted("/var/lib/systemtap-cpython");
}

/* The directory of this user's record. */
static const char *own_folder(void)
{
    if (geteuid() == 0)
        return root_folder();
    const char *state = secure_getenv("XDG_STATE_HOME"), *home = secure_getenv("HOME");
    if (state && *state == '/')
        return rooted(format("%s/systemtap-cpython", state));
    struct passwd *user = home ? NULL : getpwuid(geteuid());
    home = home ? home : user ? user->pw_dir : "";
    return rooted(format("%s/.local/state/systemtap-cpython", home));
}

/* FNV-1a */
static unsigned long long sum_of(const char *text)
{
    unsigned long long sum = 0xcbf29ce484222325;
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 0x100000001b3;
    return sum;
}

/* ---------------------------------------------------------------- reading */

/* Fills in *record from a line "SUM, PATH, NAME" with tabs between, which it cuts; false if it is
 * none. */
static bool parse(char *line, struct record *record)
{
    char *sum = strsep(&line, "\t"), *end;
    record->sum = strtoull(sum, &end, 16);
    record->path = strsep(&line, "\t");
    record->name = line;
    return end != sum && !*end && record->name && *record->path == '/';
}

static void read_from(const char *folder, struct record **found, size_t *count)
{
    char *text = contents(format("%s/enabled", folder), LONGEST);
    for (char *line; text && (line = strsep(&text, "\n"));) {
        struct record record;
        if (!parse(line, &record))
            continue;
        *found = reallocarray(*found, *count + 1, sizeof record);
        if (!*found)
            abort();
        (*found)[(*count)++] = record;
    }
}

size_t records_read(bool with_root, struct record **found)
{
    size_t count = 0;
    const char *unsafe, *own = format("%s/enabled", own_folder());
    *found = NULL;
    /* Root removes what it names. */
    if (geteuid() == 0 && exists(own) && (unsafe = unsafe_path(own)))
        die(FAILED, "%s: %s", own, unsafe);
    read_from(own_folder(), found, &count);
    if (with_root && geteuid() != 0)
        read_from(root_folder(), found, &count);
    return count;
}

struct record *record_of(const char *path)
{
    struct record *all;
    size_t count = records_read(false, &all);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].path, path) == 0)
            return &all[i];
    return NULL;
}

bool record_is_changed(const struct record *record)
{
    char *text = contents(record->path, LONGEST);
    return !text || sum_of(text) != record->sum;
}

/* ---------------------------------------------------------------- writing */

static void fail(const char *path, int error) __attribute__((noreturn));

static void fail(const char *path, int error)
{
    die(FAILED, "%s: cannot record what is enabled: %s%s", path, strerror(error),
        geteuid() == 0 ? "" : ": set XDG_STATE_HOME to a directory of yours");
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
    if (mkdir(path, mode) == 0)
        return chmod(path, mode) == 0;
    return errno == EEXIST;
}

/* Makes the directory and locks it: the result is a descriptor, to be closed. */
static int lock(const char *folder)
{
    struct stat opened, named;
    const char *unsafe;
    int fd = -1;
    do {
        if (fd >= 0)
            close(fd);
        if (!make_folders(folder) || (fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
            flock(fd, LOCK_EX) != 0 || fstat(fd, &opened) != 0)
            fail(folder, errno);
        /* The one that had the lock may have removed it. */
    } while (stat(folder, &named) != 0 || named.st_ino != opened.st_ino);
    if (geteuid() == 0 && (unsafe = unsafe_path(folder)))
        die(FAILED, "%s: %s", folder, unsafe);
    return fd;
}

/* The lines of the record but that of this path; other lines stay as they are. */
static char *lines_without(const char *file, const char *path)
{
    char *text = contents(file, LONGEST), *kept = "";
    if (exists(file) && (!text || strlen(text) == LONGEST))
        fail(file, text ? EFBIG : errno);
    for (char *line; text && (line = strsep(&text, "\n"));) {
        struct record record;
        if (*line && !(parse(strdup(line), &record) && strcmp(record.path, path) == 0))
            kept = format("%s%s\n", kept, line);
    }
    return kept;
}

/* Replaces the line of this path by another one, which may be "". */
static void replace_line(const char *path, const char *line)
{
    const char *folder = own_folder();
    const char *file = format("%s/enabled", folder);
    int locked = lock(folder);
    char *text = format("%s%s", lines_without(file, path), line);
    if (*text ? !file_replace(file, text, geteuid() == 0 ? 0644 : 0600)
              : unlink(file) != 0 && errno != ENOENT)
        fail(file, errno);
    if (!*text)
        rmdir(folder);
    close(locked);
}

void record_add(const char *path, const char *name, const char *text)
{
    if (strpbrk(path, "\t\n") || strpbrk(name, "\t\n"))
        die(FAILED, "%s: cannot record a path with a tab or line break", path);
    replace_line(path, format("%016llx\t%s\t%s\n", sum_of(text), path, name));
}

void record_drop(const char *path)
{
    if (record_of(path))
        replace_line(path, "");
}
