/*
 * Reading files: regular ones only, as opening a device alone may do something, and below
 * STAP_PYTHON_ROOT, which tests set; and replacing a file.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_H
#define FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* An absolute path below STAP_PYTHON_ROOT; path itself if that is not set, if the path is relative,
 * or if this program has more rights than its caller. */
const char *under_root(const char *path);

/* Whether there is a file of any kind at path, as it is (not rooted). */
bool file_exists(const char *path);

/* Whether there is a file at path, or a link that leads nowhere; errno if not. */
bool is_present(const char *path);

/* A descriptor to read the regular file at path, whose *status it fills in; -1 and errno if it
 * can't be opened, errno EINVAL if it is not a regular file. */
int open_regular(const char *path, struct stat *status);

/* At most limit bytes of the regular file (or file of /proc) at path, as a string; NULL if it can't
 * be read. */
char *read_file(const char *path, size_t limit);

/* Whether the first 4 MB of the file at path, rooted, contain text; false if it can't be read. */
bool file_has(const char *path, const char *text);

/* Creates the file at path with this text and mode, or replaces it: a reader finds the old text or
 * all of the new.  False and errno if that fails; then it is as before. */
bool file_replace(const char *path, const char *text, mode_t mode);

#endif
