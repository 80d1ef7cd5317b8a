/*
 * The table of hooks, for arm.c.  A new hook is one line here.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hooks.h"

#include "hook_frame.h"

#include <stddef.h>

extern const struct hook hook_gc, hook_import, hook_audit, hook_monitoring;

const struct hook *const hooks[] = {
    &hook_gc,
    &hook_import,
    &hook_audit,
    /* functions last: what the others do in Python is not the program's */
    &hook_monitoring,
    &hook_frame,
    NULL,
};
