/*
 * Attaching to one process.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_LOAD_H
#define ATTACH_LOAD_H

#include <sys/types.h>

#include "process.h"

/* After it was loaded: for any thread to run Python code, which makes it active. */
enum { ACTIVE_MS = 1000 };

/* Loads the shim into a process that lacks it, if nothing forbids that; NULL, or why it is not
 * loaded. */
const char *attach_process(struct process *process);

/* Loads the shim into the process of that PID, if it has none, and prints a line with its state.
 * NULL, or why that fails; exits with an error line if a thread of it does not stop. */
const char *attach_to(pid_t pid);

#endif
