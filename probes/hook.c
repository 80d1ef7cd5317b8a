/*
 * What the hooks ask of arm.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hook.h"

static __thread bool is_busy;

bool thread_is_arming(void)
{
    return is_busy;
}

bool set_thread_is_arming(bool busy)
{
    bool before = is_busy;
    is_busy = busy;
    return before;
}

atomic_uint rearm_requests;
