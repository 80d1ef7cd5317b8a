/*
 * The record of what `stap-python enable` has created, a line for each file: root's in
 * /var/lib/systemtap-cpython/enabled, another user's in systemtap-cpython/enabled of XDG_STATE_HOME
 * (~/.local/state).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>

struct record {
    char *path;             /* the .pth file or drop-in that was created */
    char *name;             /* what loads the shim by it: the interpreter's path, or the unit */
    unsigned long long sum; /* of the text that it got */
};

/* Reads this user's record, and if with_root also root's; returns the number of *found.  A record
 * that is not there or can't be read has none.  Exits with an error line if root's could be another
 * user's. */
size_t records_read(bool with_root, struct record **found);

/* This user's entry of that path; NULL if there is none. */
struct record *record_of(const char *path);

/* Adds a file of that text to this user's record, in place of an entry of the same path.  Exits
 * with an error line if it can't be recorded. */
void record_add(const char *path, const char *name, const char *text);

/* Removes the entry of that path from this user's record, and the record with the last one.  Exits
 * with an error line if that fails. */
void record_drop(const char *path);

/* Whether the file of an entry has another text than it got, or can't be read. */
bool record_is_changed(const struct record *record);

#endif
