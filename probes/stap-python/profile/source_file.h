/*
 * Reads source files that a traced program names, for a page that others may see.
 *
 * The program may name any file, and root could read each.  So a name must end in ".py", and the
 * file is read in the process's root, with the rights of the process's user alone, by a child that
 * gives all others up.  After the process has ended, its root is not known: enum source_origin says
 * what is read then.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROFILE_SOURCE_FILE_H
#define PROFILE_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where the processes come from, whose files may be read from our root after their end. */
enum source_origin {
    SOURCE_ANY,       /* unknown: none, as they may have been in containers */
    SOURCE_NEIGHBOUR, /* a process that saw our files: those of its user, but not root's */
    SOURCE_OURS       /* a command that this program has started: those of its user; root's: all */
};

/* A process as the samples have it. */
struct source_process {
    pid_t pid;
    uid_t user;
    enum source_origin origin;
    bool is_alive; /* source_process() sets the rest */
    bool reads_all;
    bool is_slow;       /* source_read() took its whole time for one file: it reads no other one */
    ino_t mounts, root; /* what its paths mean */
    dev_t device;
};

struct source_file {
    const char *why; /* the reason why it was not read; NULL: it was */
    char *text;      /* ends with '\0', and may have others */
    size_t length;
    time_t changed;
    dev_t device;
    ino_t inode;
};

/* Looks at the process, which may have ended. */
struct source_process source_process(pid_t pid, uid_t user, enum source_origin origin);

/* Whether both processes have the same view of files. */
bool source_same_view(const struct source_process *one, const struct source_process *other);

/* Reads the file of this name, which is one of co_filename.  As root, does not if the process has
 * ended (or has another user by now) and its origin forbids that. */
struct source_file source_read(struct source_process *process, const char *name);

#endif
