/*
 * Detaching: whether stap-python detach has asked the shim to take its hooks out and to end its
 * thread, and whether that is done.
 *
 * The launcher writes the request into the page of filter_page.h.  It sees by /proc/PID/maps, which
 * needs fewer rights than the memory, that the shim is detached: the page is read-only then.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKERS_DETACH_H
#define MARKERS_DETACH_H

#include <stdbool.h>

#include "shared/filter_page.h"

/* The page in this process; without one there are no requests.  Called by the loader, before any
 * other of these; no lock. */
void detach_use(struct filter_page *page);

/* Writes into the page how far the function that attaches again is from the start of the library's
 * mapping: an address there would tell where ASLR has put things.  Called by the loader. */
void detach_publish(uint32_t attach);

/* Writes into the page whether an interpreter lacks an id of sys.monitoring.  Called on the
 * watcher's thread, before detach_done(). */
void detach_publish_ids(bool lacking);

/* Whether the shim is to have no hooks: it was asked to detach, or has.  Any thread, no lock. */
bool detach_is_asked(void);

/* The hooks are gone: commits to the end of the watcher.  raised: what the semaphores add up to,
 * for the launcher.  False: stap-python attach has taken the request back.  Called on the watcher's
 * thread, no GIL. */
bool detach_begin(unsigned raised);

/* Nothing of the watcher is needed any more.  Called on its thread after detach_begin(). */
void detach_done(void);

/* Whether no watcher may start: detach_begin() has committed.  Any thread. */
bool detach_has_ended(void);

/* Attaches again.  True: the request was taken back; *ended: the watcher had ended, and is to be
 * started.  False: the shim is not detached, or is just about to be.  Any thread, no GIL. */
bool detach_undo(bool *ended);

/* In the child of a fork, in which no other thread is. */
void detach_forked(void);

#endif
