/*
 * See watcher_name.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "watcher_name.h"

#include "interp.h"
#include "seccomp.h"

#include <pthread.h>

static __thread const char *name;
static __thread long filters; /* of watcher_name_safe(); 0: not called */

static void set(const char *other)
{
    name = other;
    pthread_setname_np(pthread_self(), other);
}

void watcher_name_first(bool is_new)
{
    set(is_new ? WATCHER_NAME_NEW : WATCHER_NAME);
}

void watcher_name_safe(void)
{
    if (!filters)
        filters = seccomp_own();
}

void watcher_name_change(bool filtered)
{
    const char *other = filtered            ? WATCHER_NAME_FILTERED
                        : interp_lacks_id() ? WATCHER_NAME_NO_IDS
                                            : WATCHER_NAME;
    if (other != name && (!filters || filters == seccomp_own()))
        set(other);
}
