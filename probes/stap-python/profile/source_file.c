/*
 * SPDX-License-Identifier: MIT
 */

#include "profile/source_file.h"

#include "lib/files.h"
#include "lib/processes.h"
#include "lib/program.h"
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGEST = 4 << 20, SECONDS = 10, GROUPS = 256, NOBODY = 65534, FILES = 1024 };

/* What the child says of the file, before its bytes. */
struct answer {
    int error; /* errno, or one of these */
    struct source_file file;
};
enum { TOO_LARGE = -1, IS_EMPTY = -2 };

/* ---------------------------------------------------------------- process */

static ino_t inode_of(pid_t pid, const char *name, dev_t *device)
{
    struct stat status = {0};
    if (stat(format("/proc/%d/%s", pid, name), &status) != 0)
        return 0;
    *device = status.st_dev;
    return status.st_ino;
}

struct source_process source_process(pid_t pid, uid_t user, enum source_origin origin)
{
    static const unsigned long long reads = 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH;
    struct source_process process = {.pid = pid, .user = user, .origin = origin};
    const char *status = proc_file(pid, "status"), *users = status_field(status, "Uid"),
               *rights = status_field(status, "CapEff");
    dev_t device;
    /* The PID may be another process's by now. */
    process.is_alive = users && rights && strtoul(users, NULL, 10) == user && !in_pid_namespace() &&
                       (process.mounts = inode_of(pid, "ns/mnt", &device)) &&
                       (process.root = inode_of(pid, "root", &process.device));
    process.reads_all = user == 0 && (process.is_alive ? (strtoull(rights, NULL, 16) & reads) != 0
                                                       : origin == SOURCE_OURS);
    return process;
}

bool source_same_view(const struct source_process *one, const struct source_process *other)
{
    return one->user == other->user && one->is_alive == other->is_alive &&
           one->reads_all == other->reads_all && one->mounts == other->mounts &&
           one->root == other->root && one->device == other->device;
}

/* ---------------------------------------------------------------- child */

static void refuse(int answers, int error) __attribute__((noreturn));

static void refuse(int answers, int error)
{
    struct answer answer = {.error = error};
    _exit(write(answers, &answer, sizeof answer) != sizeof answer);
}

/* Takes the process's root and working directory. */
static bool enter_root(const struct source_process *process)
{
    struct stat status;
    int root = open(format("/proc/%d/root", process->pid), O_PATH | O_DIRECTORY | O_CLOEXEC);
    int place = open(format("/proc/%d/cwd", process->pid), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || place < 0 || fstat(root, &status) != 0)
        return false;
    errno = ESRCH;
    return status.st_ino == process->root && status.st_dev == process->device &&
           fchdir(root) == 0 && chroot(".") == 0 && fchdir(place) == 0;
}

/* Whether the process that /proc shows has this user, and no other that it could become. */
static bool is_of(const char *status, uid_t user)
{
    char *users = status_field(status, "Uid");
    unsigned real, effective, saved;
    return users && sscanf(users, "%u %u %u", &real, &effective, &saved) == 3 && real == user &&
           effective == user && saved == user;
}

/* The groups of the process; none after its end, and if its PID is another process's by now, or a
 * set-user-ID program's, which may take the groups of any user. */
static bool take_groups(const struct source_process *process)
{
    const char *status = process->is_alive ? proc_file(process->pid, "status") : NULL;
    status = is_of(status, process->user) ? status : NULL;
    char *groups = status_field(status, "Groups"), *group = status_field(status, "Gid");
    gid_t list[GROUPS], own = group ? (gid_t)strtoul(group, NULL, 10) : NOBODY;
    size_t count = 0;
    for (char *end; groups && count < GROUPS; groups = end) {
        gid_t next = (gid_t)strtoul(groups, &end, 10);
        if (end == groups)
            break;
        list[count++] = next;
    }
    return setgroups(count, list) == 0 && setresgid(own, own, own) == 0;
}

/* Gives up all rights but the process's user's. */
static bool take_rights(const struct source_process *process)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[2] = {{0}};
    if (process->reads_all)
        rights[0].effective = rights[0].permitted = 1U << CAP_DAC_READ_SEARCH;
    return setresuid(process->user, process->user, process->user) == 0 &&
           syscall(SYS_capset, &head, rights) == 0;
}

static bool become(const struct source_process *process)
{
    bool has_our_view = process->mounts == inode_of(getpid(), "ns/mnt", &(dev_t){0});
    if (geteuid() != 0) {
        errno = EPERM;
        return process->user == geteuid() && (!process->is_alive || has_our_view);
    }
    return take_groups(process) && (!process->is_alive || enter_root(process)) &&
           take_rights(process);
}

static void read_in_child(const struct source_process *process, const char *name, int answers)
    __attribute__((noreturn));

static void read_in_child(const struct source_process *process, const char *name, int answers)
{
    char bytes[65536];
    struct stat status;
    struct answer answer = {0};
    alarm(SECONDS);
    /* The name could lead to an open file, by /proc/self/fd. */
    for (int fd = 0; fd < FILES; fd++)
        if (fd != answers)
            close(fd);
    /* The user's processes must not read the memory of this one. */
    if (!become(process) || prctl(PR_SET_DUMPABLE, 0) != 0)
        refuse(answers, errno);
    int fd = open_regular(name, &status);
    if (fd < 0)
        refuse(answers, errno);
    if (status.st_size == 0 || status.st_size > LARGEST)
        refuse(answers, status.st_size ? TOO_LARGE : IS_EMPTY);
    answer.file = (struct source_file){
        .changed = status.st_mtime, .device = status.st_dev, .inode = status.st_ino};
    ssize_t got = write(answers, &answer, sizeof answer);
    for (off_t left = status.st_size; got > 0 && left > 0; left -= got) {
        got = read(fd, bytes, left < (off_t)sizeof bytes ? (size_t)left : sizeof bytes);
        if (got > 0 && write(answers, bytes, (size_t)got) != got)
            break;
    }
    _exit(got < 0);
}

/* ---------------------------------------------------------------- parent */

static const char *reason(int error)
{
    switch (error) {
    case TOO_LARGE:
        return "it has more than 4 MB";
    case IS_EMPTY:
        return "it is empty";
    case EINVAL:
        return "not a regular file";
    default:
        return strerror(error);
    }
}

/* Reads up to the end of the pipe, until the deadline. */
static size_t read_all(int fd, void *to, size_t room, long long deadline)
{
    size_t length = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    for (ssize_t got = 1; length < room && got > 0; length += got > 0 ? (size_t)got : 0) {
        long long left = deadline - monotonic_ms();
        if (left <= 0 || poll(&ready, 1, (int)left) <= 0)
            break;
        got = read(fd, (char *)to + length, room - length);
    }
    return length;
}

/* Whether the process's names may be looked for in our root, now that it has ended. */
static bool may_look_here(const struct source_process *process)
{
    return geteuid() != 0 || process->origin == SOURCE_OURS ||
           (process->origin == SOURCE_NEIGHBOUR && process->user != 0);
}

struct source_file source_read(struct source_process *process, const char *name)
{
    int ends[2];
    const long long began = monotonic_ms(), deadline = began + 1000 * (SECONDS + 1);
    struct answer answer = {0};
    if (!ends_with(name, ".py"))
        return (struct source_file){.why = "its name does not end in .py"};
    if (!process->is_alive && !may_look_here(process))
        return (struct source_file){.why = "its process has ended, or changed its user"};
    if (process->is_slow)
        return (struct source_file){.why = "reading another file took too long"};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return (struct source_file){.why = strerror(errno)};
    pid_t child = fork();
    if (child == 0)
        read_in_child(process, name, ends[1]);
    close(ends[1]);
    char *text = malloc(LARGEST + 1);
    if (!text)
        abort();
    bool is_answered =
        child > 0 && read_all(ends[0], &answer, sizeof answer, deadline) == sizeof answer;
    size_t length = is_answered ? read_all(ends[0], text, LARGEST, deadline) : 0;
    close(ends[0]);
    bool has_failed = child < 0 || !child_ends_well(child, deadline) || !is_answered;
    process->is_slow = monotonic_ms() - began >= 1000 * SECONDS;
    if (has_failed)
        answer.file.why = "reading it failed, or took too long";
    else if (answer.error)
        answer.file.why = reason(answer.error);
    text[length] = '\0';
    answer.file.text = realloc(text, length + 1);
    answer.file.length = length;
    return answer.file;
}
