/*
 * Processes that run CPython, by what /proc says of them.
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

struct process {
    pid_t pid;
    unsigned long long start;  /* its start time: the PID alone may be reused */
    bool is_hidden;            /* its maps, or its CPython's file, can't be read */
    char *shim;                /* the shim's file in its maps, or NULL */
    char *shim_code;           /* the same, as we can open it; NULL: we can't */
    bool has_other_shim;       /* that is not the file at the path where tracers look for it */
    bool has_copy;             /* it is another file, in a root or mount namespace of its own */
    bool has_pages;            /* the shim's page is there: it supports this CPython, and is on */
    unsigned long shim_start;  /* where that is mapped */
    unsigned shims;            /* how many such files are */
    char *libc;                /* the file with dlopen(), as we can open it, or NULL */
    char *libc_name;           /* the same as in its maps */
    bool libc_is_gone;         /* its file was deleted, and we can't open it any more */
    unsigned long libc_bias;   /* from that file's addresses to the process's */
    struct interpreter python; /* code: as we can open it, NULL: another Python or none */
    char *code_name;           /* the same as in its maps */
    unsigned pythons;          /* of which we can't tell which one runs; usually 1 */
    const char *load_path;     /* where it is to load the shim from: attach sets it */
    bool is_mounted;           /* attach has mounted the shim at its own path there */
};

/* The PID that word is; 0 if it is not one. */
pid_t parse_pid(const char *word);

/* Fills in *process.  False, and *why is the reason, if there is no such process, it does not run
 * CPython, or /proc does not let us see that: then is_hidden is set. */
bool process_open(pid_t pid, struct process *process, const char **why);

/* When the process started, in the kernel's clock ticks; 0 if there is none. */
unsigned long long process_start(pid_t pid);

/* Whether it has ended, or is about to and has no memory any more. */
bool process_has_ended(const struct process *process);

/* The text of /proc/PID/name, "" if it can't be read; at most 64 KB. */
char *proc_file(pid_t pid, const char *name);

/* Whether the shim is in its maps now, in the same process. */
bool process_has_shim(const struct process *process);

/* The name of the shim's thread, which says what it does (watcher.h), now or within so many
 * milliseconds; it does not run while the program forks.  NULL: there is none. */
char *process_watcher(const struct process *process, long ms);

/* Whether the shim in it is detached: it has neither hooks nor a thread, until attach makes it
 * active again. */
bool process_is_detached(const struct process *process);

/* The shim's thread in it, in whatever state; 0: none runs. */
pid_t process_watcher_thread(const struct process *process);

/* Whether its root directory is ours. */
bool process_has_our_root(const struct process *process);

/* Whether each path leads the process to the same file as us: same root and mounts. */
bool process_shares_our_mounts(const struct process *process);

/* Whether its program is a CPython that has sys.remote_exec(), from 3.14 on. */
bool process_has_remote_exec(const struct process *process);

/* ---------------------------------------------------------------- processes */

/*
 * The processes of this machine, and which descend from which.
 */

struct processes {
    struct process_entry {
        pid_t pid, parent;
        bool chosen; /* false at first: for the caller */
    } * all;         /* by PID */
    size_t count;
};

/* All processes that /proc shows but ourselves. */
struct processes processes_find(void);

/* Chooses the process of that PID; false if it is not there. */
bool processes_choose(struct processes *processes, pid_t pid);

/* The parent of the process of that PID; 0: there is none, or it is not there. */
pid_t processes_parent(const struct processes *processes, pid_t pid);

/* Whether this program runs in a PID namespace of its own: the PIDs in it are not those by which
 * the kernel, and so a tracer's script, knows the processes. */
bool in_pid_namespace(void);

/* Chooses the descendants of all that are chosen. */
void processes_choose_descendants(struct processes *processes);

/* Says on stderr that this many processes could not be looked at, if any. */
void processes_warn_of_hidden(size_t count);

/* ---------------------------------------------------------------- started */

/*
 * How a process was started, by /proc: its words, its environment, and what follows from these.
 *
 * A program may overwrite both; what is not known then is NULL.
 */

/* The strings of /proc/PID/name ("cmdline", "environ"), of its first MB, and NULL behind the last;
 * none if it can't be read. */
char **proc_strings(pid_t pid, const char *name);

/* The command line, its words with a blank between them; "" if there is none. */
char *proc_command_line(pid_t pid);

/* The value of that variable of its environment as it was at the start; NULL: it was not set, or
 * can't be read. */
char *proc_environ(pid_t pid, const char *name);

/* Whether its environment is as it was at the start; else the program has written a title over it
 * or a part of it, and a variable that is not there may have been set. */
bool started_environment_is_whole(pid_t pid);

/* The title that the program has written over its command line, as servers do (setproctitle); NULL:
 * that is as it was at the start, as far as can be told. */
char *started_title(const struct process *process);

/* The script that Python was to run, by its absolute path in the process's root, or the module of
 * -m; NULL: there is none, or the program is not a Python of any name. */
char *proc_script(const struct process *process);

/* The directory of the virtual environment, as the process sees it: by the pyvenv.cfg beside or
 * above the program's directory, as Python itself finds it; for a program that is not called
 * python, or no longer says how it was called, by uwsgi's options, then by VIRTUAL_ENV.  NULL:
 * none. */
char *proc_venv(const struct process *process);

/* ---------------------------------------------------------------- container */

/*
 * What a process sees of the machine: our files, or those of a container.
 */

/* Where a process is that does not see our files: its container ("docker:0123456789ab",
 * "podman:...", "lxc:NAME", "pod:..." for one of Kubernetes) by its control group; else "other
 * root" or, if its root is ours, "other mounts".  NULL: it sees our files. */
const char *container_name(const struct process *process);

/* ---------------------------------------------------------------- page */

/*
 * The shim's page in a process (filter_page.h), by /proc/PID/mem.
 */

/* Opens the process's memory; -1, and *why is the reason, if that can't be done. */
int page_open(const struct process *process, const char **why);

/* Reads the page; returns where it is, or 0, and *why is the reason. */
uint64_t page_read(int memory, const struct process *process, struct filter_page *page,
                   const char **why);

/* Writes into it.  NULL, or why that fails. */
const char *page_write(int memory, uint64_t at, const void *data, size_t size);

#endif
