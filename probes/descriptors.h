/*
 * The watcher's file descriptors.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <stdbool.h>

/* Called by the watcher before it opens a file: gives its thread an empty table of descriptors,
 * unless *left, which becomes true.  A program may close all that it doesn't know, and be given the
 * number of one that this thread is about to close; and its pipes are to end when it closes them.
 * Not under a filter, which may kill at a system call that is newer than itself.  No GIL. */
void descriptors_leave(bool *left);

#endif
