/*
 * What a process sees of the machine: our files, or those of a container.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CONTAINER_H
#define CONTAINER_H

#include "process.h"

/* Where a process is that does not see our files: its container ("docker:0123456789ab",
 * "podman:...", "lxc:NAME", "pod:..." for one of Kubernetes) by its control group; else "other
 * root" or, if its root is ours, "other mounts".  NULL: it sees our files. */
const char *container_name(const struct process *process);

#endif
