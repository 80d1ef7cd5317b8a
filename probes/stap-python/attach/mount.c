/*
 * The shim in the root and mount namespace of another process.
 *
 * Other users control the process's root.  So links are resolved within it (RESOLVE_IN_ROOT), no
 * existing file is written to, and files are created with the rights of the process's own root
 * user.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/inject.h"
#include "lib/files.h"
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* System calls up to Linux 5.12 and their flags, which older headers lack. */
enum { CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT = 429, CALL_OPENAT2 = 437, CALL_MOUNT_SETATTR = 442 };
enum {
    TREE_CLONE = 1,
    MOVE_FROM_EMPTY_PATH = 0x04,
    MOVE_TO_EMPTY_PATH = 0x40,
    NO_MAGIC_LINKS = 0x02,
    IN_ROOT = 0x10,
    READ_ONLY = 0x1,
    NO_SUID = 0x2,
    NO_DEVICES = 0x4,
};

/* ---------------------------------------------------------------- users */

/* Our IDs of root and its group in the process's user namespace; false: it has no root. */
static bool root_of(pid_t pid, unsigned *user, unsigned *group)
{
    const char *ours = link_target("/proc/self/ns/user");
    const char *its = link_target(format("/proc/%d/ns/user", pid));
    *user = *group = 0;
    if (ours && its && strcmp(ours, its) == 0)
        return true;
    return sscanf(proc_file(pid, "uid_map"), " 0 %u", user) == 1 &&
           sscanf(proc_file(pid, "gid_map"), " 0 %u", group) == 1;
}

/* The users who may decide what is loaded into the process: root; the process's user, if the
 * process has no more rights than that user; the root of its user namespace.  users has room for
 * three; returns their number. */
static size_t users_of(const struct process *process, uid_t *users)
{
    const char *status = proc_file(process->pid, "status"), *ids = status_field(status, "Uid"),
               *rights = status_field(status, "CapPrm");
    unsigned real, effective, saved, root, group;
    size_t count = 0;
    users[count++] = 0;
    if (ids && rights && sscanf(ids, "%u %u %u", &real, &effective, &saved) == 3 &&
        real == effective && real == saved && strtoull(rights, NULL, 16) == 0)
        users[count++] = real;
    if (root_of(process->pid, &root, &group))
        users[count++] = root;
    return count;
}

/* unsafe_path_in() for the process's root and users_of(). */
static const char *unsafe_in(const struct process *process, const char *path, char **file)
{
    uid_t users[3];
    return unsafe_path_in(format("/proc/%d/root", process->pid), path, users,
                          users_of(process, users), file);
}

/* ---------------------------------------------------------------- what a path leads to */

/* As open() of an absolute path by a process with this root, but follows no magic links. */
static int open_in(int root, const char *path, int flags)
{
    const struct {
        uint64_t flags, mode, resolve;
    } how = {(unsigned)flags | O_CLOEXEC, 0, IN_ROOT | NO_MAGIC_LINKS};
    return (int)syscall(CALL_OPENAT2, root, path, &how, sizeof how);
}

static int open_root(const struct process *process)
{
    return open(format("/proc/%d/root", process->pid), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_ours_at(const struct process *process, const char *path)
{
    struct stat ours, its;
    int root = open_root(process), file = root < 0 ? -1 : open_in(root, path, O_PATH);
    bool is = file >= 0 && fstat(file, &its) == 0 && stat(shim_file(), &ours) == 0 &&
              ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
    if (file >= 0)
        close(file);
    if (root >= 0)
        close(root);
    return is;
}

bool load_path_is_our_shim(const struct process *process)
{
    return !process_shares_our_mounts(process) && is_ours_at(process, process->load_path);
}

/* root_refusal() for this path; *lacks: no shim is there. */
static const char *refused_at(const struct process *process, const char *path, bool *lacks)
{
    struct elf_file elf;
    struct stat status;
    const char *why;
    char *file;
    *lacks = false;
    if (process_shares_our_mounts(process))
        return elf_read(path, &elf, &why) && elf.entries ? NULL : shim_not_found();
    if (is_ours_at(process, path))
        return NULL;
    const char *unsafe = unsafe_in(process, path, &file);
    if (unsafe && lstat(file, &status) == 0)
        return format("it is in a container or another root, whose shim others can change: %s",
                      unsafe);
    if (!unsafe && elf_read(file, &elf, &why) && elf.entries)
        return NULL;
    *lacks = true;
    return "it is in a container or another root, which lacks the shim";
}

const char *root_refusal(const struct process *process)
{
    bool lacks;
    return refused_at(process, process->load_path, &lacks);
}

/* ---------------------------------------------------------------- mounting */

struct mounting {
    int tree;             /* our shim, as a mount that is not attached anywhere yet */
    int root, mounts;     /* the process's root and mount namespace */
    unsigned user, group; /* root in the process's user namespace */
    char *folder;         /* of the mount point, a path in the process's root */
    const char *name;     /* of the mount point in the folder */
};

/* A detached mount of our shim; -1 and errno on failure. */
static int clone_shim(void)
{
    const struct {
        uint64_t set, clear, propagation, user_namespace;
    } attributes = {READ_ONLY | NO_SUID | NO_DEVICES, 0, 0, 0};
    int tree = (int)syscall(CALL_OPEN_TREE, AT_FDCWD, shim_file(), TREE_CLONE | O_CLOEXEC);
    if (tree >= 0 &&
        syscall(CALL_MOUNT_SETATTR, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
        close(tree);
        return -1;
    }
    return tree;
}

/* Opens a directory in root, and creates it if it is missing; -1 and errno on failure. */
static int folder_in(int root, const char *path)
{
    int folder = open_in(root, path, O_PATH | O_DIRECTORY);
    const char *name = strrchr(path, '/') + 1;
    if (folder >= 0 || errno != ENOENT || !*name)
        return folder;
    int above =
        folder_in(root, name - 1 == path ? "/" : format("%.*s", (int)(name - 1 - path), path));
    if (above < 0 || mkdirat(above, name, 0755) != 0)
        return -1;
    return openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Runs in a child process, as it enters the process's mount namespace.  0 or errno. */
static int enter_and_mount(const struct mounting *mounting)
{
    struct stat status;
    umask(022);
    if (setns(mounting->mounts, CLONE_NEWNS) != 0)
        return errno;
    setfsgid(mounting->group);
    setfsuid(mounting->user);
    int folder = folder_in(mounting->root, mounting->folder);
    if (folder < 0)
        return errno;
    int made =
        openat(folder, mounting->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (made < 0 && errno != EEXIST)
        return errno;
    int place = openat(folder, mounting->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0 || fstat(place, &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode) || (status.st_uid != mounting->user && status.st_uid != 0))
        return EEXIST;
    return syscall(CALL_MOVE_MOUNT, mounting->tree, "", place, "",
                   MOVE_FROM_EMPTY_PATH | MOVE_TO_EMPTY_PATH) == 0
               ? 0
               : errno;
}

/* 0 or errno. */
static int mount_in_child(const struct mounting *mounting)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(enter_and_mount(mounting));
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
}

/* Mounts the shim at path in the process's root; NULL, or the reason why not. */
static const char *mount_at(const struct process *process, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    struct mounting mounting = {.name = name, .root = -1, .mounts = -1};
    char *file;
    struct stat status;
    mounting.folder = format("%.*s", (int)(name - 1 - path), path);
    const char *unsafe = unsafe_in(process, mounting.folder, &file);
    if (unsafe && !(lstat(file, &status) != 0 && errno == ENOENT))
        return unsafe;
    mounting.tree = clone_shim();
    int error = mounting.tree < 0 ? errno : 0;
    if (!error && ((mounting.root = open_root(process)) < 0 ||
                   (mounting.mounts =
                        open(format("/proc/%d/ns/mnt", process->pid), O_RDONLY | O_CLOEXEC)) < 0))
        error = errno;
    /* After its root and mounts: it can leave our user namespace for its own with mounts of its
     * user's making, but not come back. */
    bool has_root = root_of(process->pid, &mounting.user, &mounting.group);
    if (!error && process_start(process->pid) != process->start)
        error = ESRCH;
    if (!error && !has_root)
        error = ENOTSUP;
    error = error ? error : mount_in_child(&mounting);
    close(mounting.mounts);
    close(mounting.root);
    close(mounting.tree);
    if (error == ENOSYS)
        return "needs Linux 5.12";
    if (error == EPERM && geteuid() != 0)
        return "run this as root";
    if (error == ENOTSUP && !has_root)
        return "its user namespace has no root";
    if (error)
        return format("%s: %s", path, strerror(error));
    return is_ours_at(process, path) ? NULL : format("%s: it does not appear there", path);
}

const char *mount_shim(struct process *process)
{
    /* Tracers other than SystemTap find the shim there, too. */
    static const char *const folders[] = {"/run", "/dev/shm", "/tmp", "/var/tmp"};
    bool lacks;
    process->load_path = shim_file();
    const char *why = refused_at(process, process->load_path, &lacks);
    if (!lacks)
        return why;
    const char *failed = mount_at(process, process->load_path);
    process->is_mounted = !failed;
    for (size_t i = 0; failed && i < sizeof folders / sizeof *folders; i++) {
        process->load_path = format("%s/%s", folders[i], strrchr(shim_file(), '/') + 1);
        if (is_ours_at(process, process->load_path) || !mount_at(process, process->load_path))
            return NULL;
    }
    return failed
               ? format("%s, and it cannot be mounted there (%s): copy %s to the same path there",
                        why, failed, shim_file())
               : NULL;
}
