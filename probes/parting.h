/*
 * Has what was counted told before the process executes another program, or ends at once: where no
 * atexit function is called (os._exit(), as a worker of multiprocessing ends; os.execv(),
 * os.execve()).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PARTING_H
#define PARTING_H

#include <stdbool.h>

/* Finds these functions.  Called by setup.c on a thread that runs Python, GIL held, no exception in
 * flight. */
void exit_flush_find(void);

/* Puts ours before them, or takes them away.  Any thread, GIL held; runs no code of the program. */
void exit_flush_set(bool wanted);

#endif
