/*
 * Reading files: regular ones only, as opening a device alone may do something, and below
 * STAP_PYTHON_ROOT, which tests set; and replacing a file.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIB_FILES_H
#define LIB_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---------------------------------------------------------------- file */

/* An absolute path below STAP_PYTHON_ROOT; path itself if that is not set, if the path is relative,
 * or if this program has more rights than its caller. */
const char *under_root(const char *path);

/* Whether there is a file of any kind at path, as it is (not rooted). */
bool file_exists(const char *path);

/* Whether there is a file at path, or a link that leads nowhere; errno if not. */
bool is_present(const char *path);

/* A descriptor to read the regular file at path, whose *status it fills in; -1 and errno if it
 * can't be opened, errno EINVAL if it is not a regular file. */
int open_regular(const char *path, struct stat *status);

/* At most limit bytes of the regular file (or file of /proc) at path, as a string; NULL if it can't
 * be read. */
char *read_file(const char *path, size_t limit);

/* Whether the first 4 MB of the file at path, rooted, contain text; false if it can't be read. */
bool file_has(const char *path, const char *text);

/* Creates the file at path with this text and mode, or replaces it: a reader finds the old text or
 * all of the new.  False and errno if that fails; then it is as before. */
bool file_replace(const char *path, const char *text, mode_t mode);

/* ---------------------------------------------------------------- trust */

/*
 * What root must not run or load: a file that another user can change, or can replace by another.
 */

/* Why a user other than root could change or replace the file at path (absolute, or relative to the
 * working directory); NULL if none could. */
const char *unsafe_path(const char *path);

/* The same for an absolute path in another root, such as "/proc/PID/root", and for users other than
 * these count ones.  *file becomes the path, seen from here, of the last file looked at: if the
 * result is NULL, of what path leads to. */
const char *unsafe_path_in(const char *root, const char *path, const uid_t *users, size_t count,
                           char **file);

/* ---------------------------------------------------------------- shim */

/*
 * Where the shim is: in the checkout that this program was built in, or where it is installed.
 */

/* The root directory of the checkout that this program was built in; NULL if it is installed. */
extern const char *source_tree;

/* Sets source_tree, by this program's own path; it stays NULL in a program with more rights than
 * its caller. */
void find_source_tree(void);

/* The shim's path for LD_PRELOAD, perhaps with ld.so's $LIB. */
const char *shim_preload(void);

/* The shim's file, or the path where it should be. */
const char *shim_file(void);

/* The error text that the shim does not exist, with what to do. */
char *shim_not_found(void);

/* A value of LD_PRELOAD, or NULL, with the shim in it.  Exits with an error line if the shim does
 * not exist, or has a path that LD_PRELOAD can't hold. */
char *preload_with(const char *others);

/* The same with LD_PRELOAD's current value. */
char *preload_value(void);

/* ---------------------------------------------------------------- enabled */

/*
 * What `stap-python enable` creates: for an interpreter python_stap.pth in its site-packages, with
 * a link to the shim beside it, for a service a drop-in.  Their paths are in a list, a line each:
 * root's in /var/lib/systemtap-cpython/enabled, another user's in systemtap-cpython/enabled of
 * XDG_STATE_HOME (~/.local/state).
 */

/* Reads this user's list, and if with_root also root's; returns the number of *paths.  A list that
 * is not there or can't be read has none.  Exits with an error line if root's could be another
 * user's. */
size_t enabled_read(bool with_root, char ***paths);

/* Whether this user's list has the path. */
bool enabled_find(const char *path);

/* Adds the path to this user's list.  Exits with an error line if that fails. */
void enabled_add(const char *path);

/* Removes the path from this user's list, and the list with its last path.  Exits with an error
 * line if that fails. */
void enabled_drop(const char *path);

/* Whether the path is that of a service's drop-in, not of an interpreter's .pth file. */
bool is_service(const char *path);

/* The link to the shim beside a .pth file. */
char *link_next_to(const char *pth);

/* Whether path is a link to a file of the shim's name, which need not exist. */
bool is_our_link(const char *path);

/* The text of a .pth file, and that of a drop-in up to the value of LD_PRELOAD; a quote and a
 * newline end it. */
extern const char pth_text[], drop_in_head[];

/* Whether path is a file with pth_text. */
bool is_our_pth(const char *path);

/* Whether a .pth file and its link, or a drop-in, are as enable creates them, or not there.  A
 * drop-in's LD_PRELOAD may have any value with a shim in it. */
bool enabled_is_ours(const char *path);

/* Why the file does not load the shim; NULL if it does, or we may not see it. */
const char *enabled_problem(const char *path);

/* Removes the file, with its link or its directory, and its path from the list.  NULL, or why it is
 * left: another one has changed it, or could replace it. */
const char *enabled_remove(const char *path);

/* ---------------------------------------------------------------- stap cache */

/*
 * stap's folder, ~/.systemtap or $SYSTEMTAP_DIR, whose cache has modules that root loads: only its
 * owner may write to it.  SystemTap 5.1 runs with umask 0, and lets everybody.
 */

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
