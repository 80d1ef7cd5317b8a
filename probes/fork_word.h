/*
 * Tells a process from the children that it forks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORK_WORD_H
#define FORK_WORD_H

/* A word that is 1, and 0 in each child with memory of its own, even one of a fork that the C
 * library does not know of (_Fork(), clone()).  Never freed.  NULL if the kernel or memory does not
 * allow it.  Called by fork.c and markers.c, once each, on any thread, without the GIL. */
int *zero_in_child_word(void);

#endif
