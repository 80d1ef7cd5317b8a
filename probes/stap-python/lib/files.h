/*
 * Reading and replacing files, who could change them, where the shim is, and what `stap-python
 * enable` has created.
 *
 * Only regular files are read, as opening a device may have effects.  Absolute paths of the machine
 * are below STAP_PYTHON_ROOT, which tests set.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIB_FILES_H
#define LIB_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---------------------------------------------------------------- file */

/* An absolute path below STAP_PYTHON_ROOT; path itself if STAP_PYTHON_ROOT is not set, if the path
 * is relative, or if this program has more rights than its caller. */
const char *under_root(const char *path);

/* Whether a file of any kind is at path; under_root() is not applied. */
bool file_exists(const char *path);

/* As file_exists(), but true for a broken link; sets errno if false. */
bool is_present(const char *path);

/* Opens the regular file at path for reading, and fills in *status.  -1 and errno if that fails;
 * errno is EINVAL if the file is not a regular one. */
int open_regular(const char *path, struct stat *status);

/* Whether users other than root and this one can change a file that open_regular() has opened.  It
 * does not look at the directories of its path. */
bool others_can_change(int fd, const struct stat *status);

/* At most limit bytes of the regular file (or file of /proc) at path, as a string; NULL if it can't
 * be read. */
char *read_file(const char *path, size_t limit);

/* Whether the first 4 MB of the file at under_root(path) contain text; false if it can't be read.
 */
bool file_has(const char *path, const char *text);

/* Creates or replaces the file at path, with this text and mode.  A reader finds the old text or
 * the whole new one.  False and errno on failure: the file is unchanged. */
bool file_replace(const char *path, const char *text, mode_t mode);

/* Opens the file at path, which the caller has named, for writing, and creates it if it is missing.
 * -1 and errno on failure.  EACCES: also if another user may have put it into a folder where
 * everybody can make files, whatever the kernel's fs.protected_symlinks and its like say. */
int open_output(const char *path);

/* The stream of an output, which is emptied if it is a file.  NULL and errno on failure, also if fd
 * is -1. */
FILE *output_stream(int fd);

/* Where the link at path leads to, as the link says it; NULL and errno if it can't be read. */
char *link_target(const char *path);

/* The path itself if it is absolute, else the same from the root on. */
const char *absolute_path(const char *path);

/* The path of the program that runs here; NULL and errno: unknown. */
char *own_program(void);

/* ---------------------------------------------------------------- trust */

/* root must not run or load a file that another user can change, or can replace by another file. */

/* The reason why a user other than root could change or replace the file at path (absolute, or
 * relative to the working directory); NULL if none could. */
const char *unsafe_path(const char *path);

/* The reason why another user could say whose file it is: as the one who has mounted the file
 * system. */
const char *unsafe_mount(const char *path);

/* As unsafe_path() and unsafe_mount(). */
const char *unsafe_file(const char *path);

/* As unsafe_file(), and the reason why another user could make a file in the folder at path, or the
 * folder itself if it is missing. */
const char *unsafe_folder(const char *path);

/* As unsafe_path(), for an absolute path below another root, such as "/proc/PID/root", and for
 * users other than the count ones in users.  *file becomes the last file checked, as a path from
 * our own root; if the result is NULL, *file is the file to which path leads. */
const char *unsafe_path_in(const char *root, const char *path, const uid_t *users, size_t count,
                           char **file);

/* The folder for temporary files: TMPDIR, or /tmp.  As root, unsets a TMPDIR that another user can
 * change, as one that su(1) has kept, and says so: no program that is started later may use it. */
const char *temporary_folder(void);

/* ---------------------------------------------------------------- shim */

/* The root directory of the checkout that this program was built in; NULL if it is installed. */
extern const char *source_tree;

/* Sets source_tree, by this program's own path.  source_tree stays NULL in a program with more
 * rights than its caller. */
void find_source_tree(void);

/* The shim's path for LD_PRELOAD, which may contain ld.so's $LIB. */
const char *shim_preload(void);

/* The shim's file, or the path where it should be. */
const char *shim_file(void);

/* The error text for a missing shim, with the remedy. */
char *shim_not_found(void);

/* The shim's path and others (a value of LD_PRELOAD, or NULL), as a value of LD_PRELOAD.  Exits
 * with an error line if the shim does not exist, or has a path that LD_PRELOAD can't hold. */
char *preload_with(const char *others);

/* preload_with() the current value of LD_PRELOAD. */
char *preload_value(void);

/* ---------------------------------------------------------------- enabled */

/*
 * What `stap-python enable` creates: python_stap.pth in an interpreter's site-packages, with a link
 * to the shim beside it, and for CPython 3.15 and later the links of start_link(); or a service's
 * drop-in.  A list has their paths, one a line: root's is
 * /var/lib/systemtap-cpython/enabled, another user's is systemtap-cpython/enabled in XDG_STATE_HOME
 * (~/.local/state).
 */

/* Reads the paths of this user's list, and if with_root of root's; returns their number.  A missing
 * or unreadable list is empty.  As root, exits with an error line if another user could have
 * written the list. */
size_t enabled_read(bool with_root, char ***paths);

/* Whether this user's list has the path. */
bool enabled_find(const char *path);

/* Adds the path to this user's list.  Exits with an error line on failure. */
void enabled_add(const char *path);

/* Removes the path from this user's list, and the list with its last path.  Exits with an error
 * line on failure. */
void enabled_drop(const char *path);

/* Whether the path is that of a service's drop-in, not of a .pth file. */
bool is_service(const char *path);

/* The path of the link to the shim beside a .pth file. */
char *link_next_to(const char *pth);

/*
 * CPython 3.15 and later read .start files, and ignore the import lines of a .pth file with the
 * same name; from 3.18 on they ignore all import lines in .pth files (PEP 829).  enable makes links
 * for 3.18 and later: for a .start file CPython imports pkgutil, which takes longer than the rest
 * of its site.  Links, as CPython says nothing of a .start file that leads nowhere: first the
 * module that python_stap.start names, then python_stap.start.  They are made in this order.
 */
enum { START_LINKS = 2, START_FILES_MINOR = 15, NO_PTH_IMPORTS_MINOR = 18 };

/* The path of such a link beside a .pth file. */
char *start_link(const char *pth, size_t which);

/* Where the link leads to, in a folder beside the shim. */
char *start_target(size_t which);

/* Whether path is such a link, of a shim that need not exist. */
bool is_our_start_link(const char *path, size_t which);

/* Whether path is a link to a file with the shim's name, which need not exist. */
bool is_our_link(const char *path);

/* The text of a .pth file; the text of a drop-in up to the value of LD_PRELOAD, after which it has
 * only a quote and a newline. */
extern const char pth_text[], drop_in_head[];

/* Whether path is a file with pth_text. */
bool is_our_pth(const char *path);

/* Whether a .pth file and its links, or a drop-in, are absent or as enable creates them.  A
 * drop-in's LD_PRELOAD may have any value with a shim in it. */
bool enabled_is_ours(const char *path);

/* The reason why the file does not load the shim; NULL if it does, or if this user may not see it.
 */
const char *enabled_problem(const char *path);

/* Removes the file, with its links or its directory, and its path from the list.  NULL, or the
 * reason why the file stays: somebody has changed it, another user could replace it, or an error.
 */
const char *enabled_remove(const char *path);

#endif
