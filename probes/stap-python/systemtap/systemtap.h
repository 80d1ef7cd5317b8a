/*
 * The SystemTap of this machine: stap, its data, the kernel's headers, the faults of its runtime,
 * and its cache.
 *
 * All paths of the machine are below STAP_PYTHON_ROOT (lib/files.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SYSTEMTAP_SYSTEMTAP_H
#define SYSTEMTAP_SYSTEMTAP_H

#include "generated/installed.h"
#include "lib/util.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---------------------------------------------------------------- stap */

/* stap's name or path: the value of STAP, or "stap". */
const char *stap_name(void);

/* The path of that program; NULL: there is none. */
const char *stap_program(void);

struct stap_version {
    int major, minor; /* 0: unknown */
};

/* What `stap --version` prints.  Runs stap. */
struct stap_version stap_version(void);

/* The last result of stap_version(), which is called if there is none. */
struct stap_version known_stap_version(void);

/* The first line of stap's output that names an error; if none does, the first line. */
char *stap_error(char *said);

/* The path of a directory of stap's data, such as "tapset". */
char *stap_data_dir(const char *folder);

/* ---------------------------------------------------------------- kernel headers */

/* The running kernel's release, as uname -r prints it. */
const char *kernel_release(void);

/* The directory of the headers of a kernel (a release, or the path of a build tree, as stap's -r
 * takes them), which may not exist. */
char *kernel_headers(const char *kernel);

bool has_headers(const char *kernel);

/* The text of a file of the kernel's sources, such as "include/linux/uprobes.h"; NULL: the headers
 * lack it. */
char *kernel_file(const char *kernel, const char *name);

/* ---------------------------------------------------------------- runtime */

/*
 * SystemTap's runtime is source code, which stap compiles into each module.  An older runtime has
 * faults with a newer kernel.  stap-python runs stap with a corrected copy.
 */

/* The faults, one bit each. */
enum {
    FAULT_HANDLE = 1,
    FAULT_RENAME = 2,
    FAULT_PROTOTYPES = 4,
    FAULT_FOLIO = 8,
    FAULT_STRLCPY = 16,
    FAULT_OUTPUT = 32,
    /* With any of these, stap does not compile probes of programs. */
    FAULTS_FATAL = FAULT_HANDLE | FAULT_RENAME | FAULT_PROTOTYPES | FAULT_FOLIO | FAULT_STRLCPY
};

struct runtime {
    const char *kernel;  /* for which stap compiles */
    const char *folder;  /* of SystemTap's runtime; NULL: there is none */
    const char *too_old; /* the reason why no correction helps; NULL: it has none */
    unsigned faults;     /* 0 if the kernel's headers are missing: they are then unknown */
    const char *given; /* value of SYSTEMTAP_RUNTIME, which stap-python does not correct; or NULL */
};

/* Looks for faults with a kernel (see kernel_headers()). */
struct runtime runtime_for(const char *kernel);

/* What the faults do, as words for a sentence: "loses ..., and ...". */
char *runtime_faults_text(unsigned faults);

/* The folder of a copy with the faults corrected.  It is made if it is missing, in stap's folder,
 * for its owner alone.  A change of SystemTap, of the kernel or of the corrections leads to another
 * copy.  NULL and *why: it can't be made. */
char *runtime_corrected(const struct runtime *runtime, const char **why);

/* Sets SYSTEMTAP_RUNTIME to the corrected copy, if there are faults.  Exits with an error line if
 * stap can't compile probes of programs without it and it can't be made, or if SystemTap is too old
 * for the kernel. */
void use_corrected_runtime(const struct runtime *runtime);

/* Appends -B KCFLAGS=-w to stap's command line, if stap needs that to compile system calls and
 * other tracepoints for a kernel: SystemTap before 5.2 defines a macro, COUNT_ARGS, that
 * linux/args.h of Linux 6.6 and later has, and makes the warning an error. */
void add_no_warnings(struct texts *command, const char *kernel);

/* ---------------------------------------------------------------- kernels that were tried */

/* What stap has compiled: a probe of a program; all of this version's scripts. */
#define CHECKED_PROBE "probe"
#define CHECKED_SCRIPTS "scripts-" PACKAGE_VERSION

/* Remembers that stap has compiled that for a kernel, and in how many seconds, for a script. */
void checked_remember(const char *kernel, const char *what, int seconds);

/* Whether this stap has compiled that for the kernel, and in how many *seconds. */
bool checked_find(const char *kernel, const char *what, int *seconds);

/* ---------------------------------------------------------------- cache */

/*
 * stap's folder, ~/.systemtap or $SYSTEMTAP_DIR.  root loads the modules in its cache, so only its
 * owner may write there.  SystemTap 5.1 runs with umask 0: everybody may write to what it creates.
 */

/* The path of the folder, as stap chooses it: without HOME below the home of the password file.
 * NULL: this user has none. */
char *stap_folder(void);

/* Whether others than the owner can write to a file of this status.  A group counts as others,
 * unless it is the owner's own. */
bool others_can_write(const struct stat *status);

/* The path of stap's folder, or of the first file below its cache, to which others can write, or
 * which is another user's but not root's.  NULL if there is none.  *others becomes the words for
 * who can write. */
char *stap_file_of_others(const char **others);

/* The umask with which this program was started, even after a function below has changed it. */
mode_t callers_umask(void);

/* As root, takes no folder of stap's, of temporary files or of tapsets from the environment
 * (SYSTEMTAP_DIR, HOME, TMPDIR, XDG_DATA_DIRS) that another user can change, and changes the
 * environment accordingly.  Of the first two a line on stderr says so. */
void leave_others_folders(void);

/* Called before stap starts.  As leave_others_folders().  Adds 022 to a umask that lets everybody
 * write.  Creates stap's cache for its owner alone, so that others can't reach files that stap
 * creates with umask 0.  Closes a folder or cache of ours to which everybody could write, and
 * prints a warning. */
void keep_others_out(void);

/* Adds 022 to a umask that lets everybody write: for a tracer without a cache. */
void set_tracers_umask(void);

/* The command line for stap's -c.  It sets the umask with which this program was started, if the
 * command would inherit another one from stap. */
char *with_callers_umask(const char *command);

/* ---------------------------------------------------------------- commands */

/* `stap-python runtime`: prints the folder of the runtime, corrected if need be. */
int runtime_main(char **arguments);

#endif
