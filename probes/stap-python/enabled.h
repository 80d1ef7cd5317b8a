/*
 * The files that make interpreters and services load the shim: whether each still works, and
 * undoing it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ENABLED_H
#define ENABLED_H

#include <stdbool.h>

#include "record.h"

/* Whether an entry is a service's drop-in, not an interpreter's .pth file. */
bool is_service(const struct record *record);

/* The link to the shim beside a .pth file. */
char *link_beside(const char *pth);

/* Whether path is a link to a file of the shim's name, which need not exist. */
bool is_our_link(const char *path);

/* Why the file of an entry does not load the shim; NULL if it does, or we may not see it. */
const char *enabled_fault(const struct record *record);

/* Removes what an entry names, with its link or its directory, and the entry.  NULL, or why it is
 * left: another one has changed it, or could replace it. */
const char *enabled_undo(const struct record *record);

#endif
