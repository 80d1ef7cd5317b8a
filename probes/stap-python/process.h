/*
 * Processes that run CPython, by what /proc says of them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "interpreter.h"

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

#endif
