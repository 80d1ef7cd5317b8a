/*
 * The watcher's name, in /proc/PID/task/TID/comm, which may be read without the right to trace the
 * process: it says what the shim can do in it.  stap-python reads it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WATCHER_NAME_H
#define WATCHER_NAME_H

#include <stdbool.h>

/* At most 15 characters each. */
/* - Active; */
#define WATCHER_NAME "python-stap"
/* - loaded into a running Python, which has not run any code since; */
#define WATCHER_NAME_NEW WATCHER_NAME "-new"
/* - active, but in an interpreter of the process all ids of sys.monitoring are taken by others, so
 *   that there are no markers of functions, lines, C functions and exceptions, and no sums.  As it
 *   was at attach, or while a marker was last wanted: filter_page.h has what is so now; */
#define WATCHER_NAME_NO_IDS WATCHER_NAME "-ids"
/* - active, but a thread has set a seccomp filter, so that hooks stay as they are.  Known from the
 *   last look, while a marker is wanted. */
#define WATCHER_NAME_FILTERED WATCHER_NAME "-sec"

/* - Asked to detach: it fires nothing any more, and ends when all hooks are gone. */
#define WATCHER_NAME_END WATCHER_NAME "-end"

enum watcher_state { WATCHER_IS_NEW, WATCHER_IS_ACTIVE, WATCHER_IS_FILTERED, WATCHER_DETACHES };

/* Gives the calling thread, the watcher, its first name. */
void watcher_name_first(bool is_new);

/* Gives it the name of another state, if that is another one, and notes in the page whether an id
 * is lacking.  Only then it makes system calls, of which prctl() only if this thread has no more
 * filters than at watcher_name_safe().  No GIL. */
void watcher_name_change(enum watcher_state state);

/* Called at each look, of which the first is to remember.  It looks at a file. */
void watcher_name_safe(void);

#endif
