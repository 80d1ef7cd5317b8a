/*
 * What `stap-python enable` creates: for an interpreter python_stap.pth in its site-packages, with
 * a link to the shim beside it, for a service a drop-in.  Their paths are in a list, a line each:
 * root's in /var/lib/systemtap-cpython/enabled, another user's in systemtap-cpython/enabled of
 * XDG_STATE_HOME (~/.local/state).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ENABLED_H
#define ENABLED_H

#include <stdbool.h>
#include <stddef.h>

/* Reads this user's list, and if with_root also root's; returns the number of *paths.  A list that
 * is not there or can't be read has none.  Exits with an error line if root's could be another
 * user's. */
size_t enabled_read(bool with_root, char ***paths);

/* Whether this user's list has the path. */
bool enabled_find(const char *path);

/* Adds the path to this user's list.  Exits with an error line if that fails. */
void enabled_add(const char *path);

/* Removes the path from this user's list, and the list with its last path.  Exits with an error
 * line if that fails. */
void enabled_drop(const char *path);

/* Whether the path is that of a service's drop-in, not of an interpreter's .pth file. */
bool is_service(const char *path);

/* The link to the shim beside a .pth file. */
char *link_next_to(const char *pth);

/* Whether path is a link to a file of the shim's name, which need not exist. */
bool is_our_link(const char *path);

/* The text of a .pth file, and that of a drop-in up to the value of LD_PRELOAD; a quote and a
 * newline end it. */
extern const char pth_text[], drop_in_head[];

/* Whether path is a file with pth_text. */
bool is_our_pth(const char *path);

/* Whether a .pth file and its link, or a drop-in, are as enable creates them, or not there.  A
 * drop-in's LD_PRELOAD may have any value with a shim in it. */
bool enabled_is_ours(const char *path);

/* Why the file does not load the shim; NULL if it does, or we may not see it. */
const char *enabled_problem(const char *path);

/* Removes the file, with its link or its directory, and its path from the list.  NULL, or why it is
 * left: another one has changed it, or could replace it. */
const char *enabled_remove(const char *path);

#endif
