/*
 * See watcher_name.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "watcher_name.h"

#include "detach.h"
#include "interp.h"
#include "seccomp.h"

#include <pthread.h>
#include <stdatomic.h>

/* The watcher's.  Of two only the newer one still gets here: the other is STOPPING. */
static const char *_Atomic name;
static atomic_long filters;  /* of watcher_name_safe(); 0: not called */
static atomic_bool lacks_id; /* as the name says, or would */

static void set(const char *other)
{
    name = other;
    pthread_setname_np(pthread_self(), other);
}

void watcher_name_first(bool is_new)
{
    filters = 0;
    lacks_id = false;
    set(is_new ? WATCHER_NAME_NEW : WATCHER_NAME);
}

void watcher_name_safe(void)
{
    if (!filters)
        filters = seccomp_own();
    lacks_id = interp_lacks_id();
}

void watcher_name_change(enum watcher_state state)
{
    static const char *const names[] = {[WATCHER_IS_NEW] = WATCHER_NAME_NEW,
                                        [WATCHER_IS_ACTIVE] = WATCHER_NAME,
                                        [WATCHER_IS_FILTERED] = WATCHER_NAME_FILTERED,
                                        [WATCHER_DETACHES] = WATCHER_NAME_END};
    detach_publish_ids(interp_lacks_id());
    if (name == names[WATCHER_IS_NEW])
        lacks_id = interp_lacks_id();
    const char *other = state == WATCHER_IS_ACTIVE && lacks_id ? WATCHER_NAME_NO_IDS : names[state];
    if (other != name && (!filters || filters == seccomp_own()))
        set(other);
}
