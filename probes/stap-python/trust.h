/*
 * What root must not run or load: a file that another user can change, or can replace by another.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TRUST_H
#define TRUST_H

#include <stddef.h>
#include <sys/types.h>

/* Why a user other than root could change or replace the file at path (absolute, or relative to the
 * working directory); NULL if none could. */
const char *unsafe_path(const char *path);

/* The same for an absolute path in another root, such as "/proc/PID/root", and for users other than
 * these count ones.  *file becomes the path, seen from here, of the last file looked at: if the
 * result is NULL, of what path leads to. */
const char *unsafe_path_in(const char *root, const char *path, const uid_t *users, size_t count,
                           char **file);

#endif
