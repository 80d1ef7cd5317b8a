/*
 * The table of hooks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOOKS_H
#define HOOKS_H

#include "hook.h"

/* All of them, in the order in which they are set; after the last a NULL. */
extern const struct hook *const hooks[];

#endif
