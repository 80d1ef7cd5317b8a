/*
 * `stap-python attach`: loads the shim into a running Python.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_H
#define ATTACH_H

#include "process.h"

/* After it was loaded: for any thread to run Python code, which makes it active. */
enum { ACTIVE_MS = 1000 };

/* Loads the shim into a process that lacks it, if nothing forbids that; NULL, or why it is not
 * loaded. */
const char *attach_process(const struct process *process);

/* arguments end with NULL: one PID.  Exits with an error line if the shim can't be loaded there. */
int attach_main(char **arguments);

#endif
