/*
 * stap's folder, ~/.systemtap or $SYSTEMTAP_DIR, whose cache has modules that root loads: only its
 * owner may write to it.  SystemTap 5.1 runs with umask 0, and lets everybody.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_CACHE_H
#define STAP_CACHE_H

#include <stdbool.h>

/* The path of the folder; NULL if neither HOME nor SYSTEMTAP_DIR is set. */
char *stap_folder(void);

/* The first file of stap's folder or cache that others can write to, group members included unless
 * the group is the owner's own; NULL: there is none.  *others becomes who: "others", or the file's
 * owner, another user. */
char *stap_file_of_others(const char **others);

/* Called before stap or bpftrace starts.  A umask that lets everybody write is replaced by 022.
 * stap's cache is created for its owner alone, so that files which stap creates with umask 0 are
 * out of others' reach; a folder or cache of ours that everybody could write to is closed, and that
 * is said. */
void keep_others_out(void);

/* The same umask for a tracer that has no cache. */
void set_tracers_umask(void);

/* The command line, for stap's -c, with the umask that this program was started with, if the
 * command would not get it: stap hands on its own. */
char *with_callers_umask(const char *command, const char *stap);

#endif
