/*
 * The shim in the root and the mount namespace of a process to attach to.
 *
 * If the process's root lacks the shim, our file is mounted there, read-only: then tracers, which
 * find the shim by its file or (SystemTap) by its path within the process's root, see the process
 * like any other.  That needs Linux 5.12 and CAP_SYS_ADMIN.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_ROOT_H
#define ATTACH_ROOT_H

#include <stdbool.h>

#include "process.h"

/* Sets process->load_path to where the process can load the shim from, and mounts it there if it
 * must (process->is_mounted: at the shim's own path).  NULL, or why there is no such place. */
const char *mount_shim(struct process *process);

/* Whether process->load_path, in another root or mount namespace, leads to our own shim. */
bool load_path_is_our_shim(const struct process *process);

/* Why the file to which process->load_path leads in the process must not be loaded: it does not
 * exist, or, in another root, a user can change it who has no right to change the process.  NULL:
 * it may be loaded. */
const char *root_refusal(const struct process *process);

#endif
