/*
 * Attaching to one process.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_LOAD_H
#define ATTACH_LOAD_H

#include <stdbool.h>
#include <sys/types.h>

#include "process.h"

/* After it was loaded: for any thread to run Python code, which makes it active. */
enum { ACTIVATION_TIMEOUT_MS = 1000 };

/* Whether the shim in the process is detached, or about to be: attach_process() undoes that. */
bool process_lacks_watcher(const struct process *process);

/* Loads the shim into a process that lacks it, or attaches a detached one again, if nothing forbids
 * that; NULL, or why it is not done. */
const char *attach_process(struct process *process);

/* The same for the process of that PID, unless the shim is there and not detached; prints a line
 * with its state. NULL, or why that fails; exits with an error line if a thread of it does not
 * stop. */
const char *attach_to(pid_t pid);

#endif
