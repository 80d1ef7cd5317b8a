/*
 * What the hooks ask of arm.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hook.h"

static __thread bool is_busy;

bool hook_busy(void)
{
    return is_busy;
}

bool hook_set_busy(bool busy)
{
    bool before = is_busy;
    is_busy = busy;
    return before;
}

atomic_uint hook_knocks;
