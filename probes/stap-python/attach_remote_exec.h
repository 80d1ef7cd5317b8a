/*
 * Attaching by CPython 3.14's sys.remote_exec(): the program's main thread loads the shim when it
 * next runs Python code.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_REMOTE_EXEC_H
#define ATTACH_REMOTE_EXEC_H

#include <stdbool.h>

#include "process.h"

/* Whether we can start the process's own Python, whose sys.remote_exec() is to be called, and the
 * process can read our script: not if it has a /tmp of its own, as by systemd's PrivateTmp.  Root
 * starts no Python that another user can change. */
bool can_run_its_python(const struct process *process);

/* Asks the process to load the shim, or to attach again one that is detached.  NULL, and *script is
 * the path of the script that the process is to run and remove; else why that fails. */
const char *attach_by_remote_exec(const struct process *process, char **script);

#endif
