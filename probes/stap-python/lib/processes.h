/*
 * The processes of this machine that run CPython: what /proc shows of each, and the shim's page in
 * its memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIB_PROCESSES_H
#define LIB_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/interpreters.h"
#include "shared/filter_page.h"

/* ---------------------------------------------------------------- process */

/* Names of files are as in /proc/PID/maps.  A path "for us" is one by which this program can open
 * the file. */
struct process {
    pid_t pid;
    unsigned long long start;  /* its start time: a PID may be reused */
    bool is_hidden;            /* its maps, or its CPython's file, can't be read */
    char *shim;                /* the name of the shim's file, or NULL */
    char *shim_code;           /* the shim's path for us, or NULL */
    bool has_other_shim;       /* deleted, or with our mounts not the file that tracers search */
    bool has_copy;             /* another file, in a root or mount namespace of its own */
    bool has_pages;            /* the shim's page is mapped: CPython is supported, the shim on */
    unsigned long shim_start;  /* the shim's load address */
    unsigned shims;            /* how many executable mappings of shims there are */
    char *libc;                /* the path for us of the file with dlopen(), or NULL */
    char *libc_name;           /* the name of that file */
    bool libc_is_gone;         /* the C library's file was deleted, and has no path for us */
    unsigned long libc_bias;   /* an address in the process minus that in the file libc */
    struct interpreter python; /* code: its path for us; NULL: another Python or none */
    char *code_name;           /* the name of python.code */
    unsigned pythons;          /* CPythons of which any may be the one that runs; usually 1 */
    const char *load_path;     /* from where the process loads the shim: set by attach/mount.c */
    bool is_mounted;           /* attach has mounted the shim there, at the shim's own path */
};

/* The PID in word; 0 if word is not one. */
pid_t parse_pid(const char *word);

/* Fills in *process.  False, and the reason in *why, if there is no such process, it does not run
 * CPython, or /proc does not show whether it does (process->is_hidden). */
bool process_open(pid_t pid, struct process *process, const char **why);

/* The start time in the kernel's clock ticks; 0 if there is no such process. */
unsigned long long process_start(pid_t pid);

/* R, S and so on; 0 if the thread has ended. */
char thread_state(pid_t pid, pid_t tid);

/* Whether the process has ended, or is ending and has no memory any more. */
bool process_has_ended(const struct process *process);

/* The text of /proc/PID/name, at most 64 KB; "" if it can't be read. */
char *proc_file(pid_t pid, const char *name);

/* Whether the process no longer runs the program of which process_open() filled in *process.
 * exec() keeps the PID and the start time, but not the mappings.  Also true if it has ended. */
bool process_has_changed(const struct process *process);

/* Whether the same process has the shim in its maps now. */
bool process_has_shim(const struct process *process);

/* The name of the watcher, which shows the shim's state (shared/offsets_page.h); NULL: no watcher.
 * Waits up to ms milliseconds for a watcher that is active: none runs while the program forks.  On
 * a busy machine it waits up to 60 times as long, until the process has had a processor for ms. */
char *process_watcher(const struct process *process, long ms);

/* Whether the shim is detached: it has neither hooks nor a watcher until it is attached again. */
bool process_is_detached(const struct process *process);

/* The TID of the watcher, whatever its state; 0 if there is none. */
pid_t process_watcher_thread(const struct process *process);

/* Whether the process's root directory is ours. */
bool process_has_our_root(const struct process *process);

/* Whether the process has our root and mounts: every path leads it to the same file as us. */
bool process_shares_our_mounts(const struct process *process);

/* Whether its program is a CPython with sys.remote_exec(): 3.14 and later. */
bool process_has_remote_exec(const struct process *process);

/* ---------------------------------------------------------------- processes */

struct processes {
    struct process_entry {
        pid_t pid, parent;
        bool chosen; /* false at first: for the caller */
    } * all;         /* sorted by PID */
    size_t count;
};

/* All processes in /proc except this one. */
struct processes processes_find(void);

/* Sets `chosen` of the process; false if there is none with this PID. */
bool processes_choose(struct processes *processes, pid_t pid);

/* The PID of the parent; 0 if the process has no parent, or is not there. */
pid_t processes_parent(const struct processes *processes, pid_t pid);

/* Whether this program runs in a PID namespace of its own.  Its PIDs then differ from the kernel's,
 * and so from those in a tracer's script. */
bool in_pid_namespace(void);

/* Sets `chosen` of all descendants of chosen processes. */
void processes_choose_descendants(struct processes *processes);

/* If count is not 0, warns that so many processes could not be checked. */
void processes_warn_of_hidden(size_t count);

/* ---------------------------------------------------------------- how a process was started */

/* By its command line and environment.  A program may overwrite both; a result that is unknown then
 * is NULL. */

/* The strings in the first MB of /proc/PID/name ("cmdline", "environ"), NULL-terminated; none if
 * the file can't be read.  The caller frees the list, and with it the strings: a program may have a
 * million. */
char **proc_strings(pid_t pid, const char *name);

/* The words of the command line, separated by blanks; "" if there are none. */
char *proc_command_line(pid_t pid);

/* The value of a variable in the environment at the start, its first 64 KB; NULL if it was not set,
 * or is unknown. */
char *proc_environ(pid_t pid, const char *name);

/* Whether /proc shows the environment as at the start.  If not, the program has written a title
 * over it: a variable that is missing may have been set. */
bool started_environment_is_whole(pid_t pid);

/* The title that the program has written over its command line, as servers do (setproctitle); NULL
 * if the command line looks unchanged. */
char *started_title(const struct process *process);

/* The script that Python was started with, as an absolute path in the process's root, or the module
 * of -m; NULL if there is none, or the program does not take Python's command line. */
char *proc_script(const struct process *process);

/* The directory of the virtual environment in the process's root, or NULL.  As Python, finds
 * pyvenv.cfg in the program's directory or the one above.  If the program is not called python, or
 * its path is unknown, uses uwsgi's options, then VIRTUAL_ENV. */
char *proc_venv(const struct process *process);

/* ---------------------------------------------------------------- container */

/* For a process that does not see our files: its container by its control group
 * ("docker:0123456789ab", "podman:...", "lxc:NAME", Kubernetes's "pod:..."); else "other root", or
 * "other mounts" if its root is ours.  NULL: the process sees our files. */
const char *container_name(const struct process *process);

/* ---------------------------------------------------------------- offsets page */

/* What can't be read of the process's stacks and values, and why, as its shim says; NULL: nothing,
 * or its memory can't be read. */
char *process_lacks(const struct process *process);

/* ---------------------------------------------------------------- filter page */

/* The shim's page in a process (shared/filter_page.h), by /proc/PID/mem. */

/* Opens the process's memory; -1, and the reason in *why, on failure. */
int page_open(const struct process *process, const char **why);

/* Reads the page and returns its address; 0, and the reason in *why, on failure. */
uint64_t page_read(int memory, const struct process *process, struct filter_page *page,
                   const char **why);

/* Writes to the process's memory at this address.  NULL, or the reason for the failure. */
const char *page_write(int memory, uint64_t at, const void *data, size_t size);

/* Writes patterns, which must be shorter than the page's, to the page at this address.  generation:
 * the page's.  NULL, or the reason for the failure. */
const char *page_write_patterns(int memory, uint64_t page, uint32_t generation,
                                const char *patterns);

/* Writes patterns to the process, if only_if is NULL or its present ones.  Those that it had are in
 * *before.  NULL, or the reason for the failure. */
const char *process_replace_patterns(pid_t pid, const char *patterns, const char *only_if,
                                     char **before);

#endif
