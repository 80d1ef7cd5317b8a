/*
 * Detach: stap-python detach requests that the shim removes its hooks and ends the watcher.  The
 * launcher writes the request into the page of shared/filter_page.h.  When the shim is detached,
 * the page is read-only: the launcher sees that in /proc/PID/maps, which needs fewer rights than
 * the memory.
 *
 * Any thread, with or without the GIL, unless stated otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_DETACH_H
#define MARKERS_DETACH_H

#include <stdbool.h>

#include "shared/filter_page.h"

/* Sets the page.  Without a page there are no requests.  Called once, before any function below. */
void detach_use(struct filter_page *page);

/* Writes page->attach: the distance of attach_again() in core/loader.c from the start of the
 * library's mapping.  Not the address of attach_again(), which would reveal what ASLR hides. */
void detach_publish(uint32_t attach);

/* Writes page->lacks_id: whether an interpreter lacks a tool id of sys.monitoring.  On the
 * watcher's thread, before detach_done(). */
void detach_publish_ids(bool lacking);

/* Whether detach was requested, or is done: the shim must have no hooks.  No lock. */
bool detach_is_requested(void);

/* Commits to the end of the watcher; no hook may be left.  raised: semaphores_sum(), for the
 * launcher.  False: stap-python attach has withdrawn the request.  On the watcher's thread. */
bool detach_begin(unsigned raised);

/* Reports the detach as done: the watcher ends.  On the watcher's thread, after detach_begin(). */
void detach_done(void);

/* Whether detach_begin() has committed: no watcher may start. */
bool detach_has_ended(void);

/* Withdraws the request.  *ended, set if true is returned: the watcher has ended, and the caller
 * must start one.  False: no detach was requested, or the watcher is just ending. */
bool detach_undo(bool *ended);

/* In the child of a fork, where no other thread exists: completes a detach that has committed. */
void detach_forked(void);

#endif
