/*
 * Finds, by the number of a system call, what a thread that sleeps in the call waits for.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

enum python_wait_reason {
    PYTHON_WAITS_OTHER,     /* reported by the name of the call */
    PYTHON_WAITS_TIMER,
    PYTHON_WAITS_FUTEX,     /* the first argument is its address */
    PYTHON_WAITS_FILE,      /* the first argument is its descriptor */
    PYTHON_WAITS_FILE_LOCK, /* the first argument is the file's descriptor */
    PYTHON_WAITS_FCNTL,     /* a descriptor and a command */
    PYTHON_WAITS_PATH,      /* the first argument is the path */
    PYTHON_WAITS_PATH_AT,   /* a folder's descriptor and a path */
    PYTHON_WAITS_POLL,      /* an array of struct pollfd and its length */
    PYTHON_WAITS_SELECT,    /* a number of descriptors and three sets of bits */
    PYTHON_WAITS_EPOLL,
    PYTHON_WAITS_CHILD, /* a child process, or the end of one */
    PYTHON_WAITS_SIGNAL,
    PYTHON_WAITS_RESTART, /* whatever the call waited for that a signal interrupted */
};

struct python_system_call {
    u8 waits;
    const char *name;
};

#define PYTHON_CALL(call, for_what) [__NR_##call] = {PYTHON_WAITS_##for_what, #call}

/* Indexed by the numbers of the kernel for which this is compiled.  Calls that don't sleep, or that Python programs
 * hardly make, are left out. */
static const struct python_system_call python_system_calls[] = {
    PYTHON_CALL(accept4, FILE), PYTHON_CALL(acct, OTHER), PYTHON_CALL(add_key, OTHER),
    PYTHON_CALL(bind, FILE), PYTHON_CALL(bpf, OTHER), PYTHON_CALL(brk, OTHER), PYTHON_CALL(chdir, PATH),
    PYTHON_CALL(chroot, OTHER), PYTHON_CALL(clock_nanosleep, TIMER), PYTHON_CALL(clock_settime, OTHER),
    PYTHON_CALL(clone, CHILD), PYTHON_CALL(close, OTHER), PYTHON_CALL(connect, FILE),
    PYTHON_CALL(copy_file_range, FILE), PYTHON_CALL(delete_module, OTHER), PYTHON_CALL(epoll_ctl, OTHER),
    PYTHON_CALL(epoll_pwait, EPOLL), PYTHON_CALL(execve, PATH), PYTHON_CALL(execveat, PATH_AT),
    PYTHON_CALL(exit, OTHER), PYTHON_CALL(exit_group, OTHER), PYTHON_CALL(faccessat, PATH_AT),
    PYTHON_CALL(fallocate, FILE), PYTHON_CALL(fchdir, FILE), PYTHON_CALL(fchmod, FILE),
    PYTHON_CALL(fchmodat, PATH_AT), PYTHON_CALL(fchown, FILE), PYTHON_CALL(fchownat, PATH_AT),
    PYTHON_CALL(fcntl, FCNTL), PYTHON_CALL(fdatasync, FILE), PYTHON_CALL(fgetxattr, FILE),
    PYTHON_CALL(finit_module, OTHER), PYTHON_CALL(flistxattr, FILE), PYTHON_CALL(flock, FILE_LOCK),
    PYTHON_CALL(fremovexattr, FILE), PYTHON_CALL(fsetxattr, FILE), PYTHON_CALL(fstat, FILE),
    PYTHON_CALL(fstatfs, FILE), PYTHON_CALL(fsync, FILE), PYTHON_CALL(ftruncate, FILE), PYTHON_CALL(futex, FUTEX),
    PYTHON_CALL(getdents64, FILE), PYTHON_CALL(getrandom, OTHER), PYTHON_CALL(getsockname, FILE),
    PYTHON_CALL(getsockopt, FILE), PYTHON_CALL(getxattr, PATH), PYTHON_CALL(init_module, OTHER),
    PYTHON_CALL(inotify_add_watch, OTHER), PYTHON_CALL(io_destroy, OTHER), PYTHON_CALL(io_getevents, OTHER),
    PYTHON_CALL(io_setup, OTHER), PYTHON_CALL(io_submit, OTHER), PYTHON_CALL(ioctl, FILE),
    PYTHON_CALL(kexec_load, OTHER), PYTHON_CALL(keyctl, OTHER), PYTHON_CALL(kill, OTHER), PYTHON_CALL(lgetxattr, PATH),
    PYTHON_CALL(linkat, PATH_AT), PYTHON_CALL(listen, FILE), PYTHON_CALL(listxattr, PATH),
    PYTHON_CALL(llistxattr, PATH), PYTHON_CALL(lremovexattr, PATH), PYTHON_CALL(lseek, FILE),
    PYTHON_CALL(lsetxattr, PATH), PYTHON_CALL(madvise, OTHER), PYTHON_CALL(mbind, OTHER),
    PYTHON_CALL(membarrier, OTHER), PYTHON_CALL(memfd_create, OTHER), PYTHON_CALL(migrate_pages, OTHER),
    PYTHON_CALL(mincore, OTHER), PYTHON_CALL(mkdirat, PATH_AT), PYTHON_CALL(mknodat, PATH_AT),
    PYTHON_CALL(mlock, OTHER), PYTHON_CALL(mlockall, OTHER), PYTHON_CALL(mount, OTHER),
    PYTHON_CALL(move_pages, OTHER), PYTHON_CALL(mprotect, OTHER), PYTHON_CALL(mq_timedreceive, OTHER),
    PYTHON_CALL(mq_timedsend, OTHER), PYTHON_CALL(mremap, OTHER), PYTHON_CALL(msgctl, OTHER),
    PYTHON_CALL(msgrcv, OTHER), PYTHON_CALL(msgsnd, OTHER), PYTHON_CALL(msync, OTHER), PYTHON_CALL(munlock, OTHER),
    PYTHON_CALL(munlockall, OTHER), PYTHON_CALL(munmap, OTHER), PYTHON_CALL(nanosleep, TIMER),
    PYTHON_CALL(openat, PATH_AT), PYTHON_CALL(perf_event_open, OTHER),
    PYTHON_CALL(pipe2, OTHER), PYTHON_CALL(pivot_root, OTHER), PYTHON_CALL(ppoll, POLL), PYTHON_CALL(prctl, OTHER),
    PYTHON_CALL(pread64, FILE), PYTHON_CALL(preadv, FILE), PYTHON_CALL(preadv2, FILE),
    PYTHON_CALL(process_vm_readv, OTHER), PYTHON_CALL(process_vm_writev, OTHER), PYTHON_CALL(pselect6, SELECT),
    PYTHON_CALL(ptrace, OTHER), PYTHON_CALL(pwrite64, FILE), PYTHON_CALL(pwritev, FILE), PYTHON_CALL(pwritev2, FILE),
    PYTHON_CALL(quotactl, OTHER), PYTHON_CALL(read, FILE), PYTHON_CALL(readahead, FILE),
    PYTHON_CALL(readlinkat, PATH_AT), PYTHON_CALL(readv, FILE), PYTHON_CALL(reboot, OTHER),
    PYTHON_CALL(recvfrom, FILE), PYTHON_CALL(recvmmsg, FILE), PYTHON_CALL(recvmsg, FILE),
    PYTHON_CALL(removexattr, PATH), PYTHON_CALL(renameat2, PATH_AT), PYTHON_CALL(request_key, OTHER),
    PYTHON_CALL(restart_syscall, RESTART), PYTHON_CALL(rt_sigsuspend, SIGNAL), PYTHON_CALL(rt_sigtimedwait, SIGNAL),
    PYTHON_CALL(sched_setaffinity, OTHER), PYTHON_CALL(sched_setscheduler, OTHER), PYTHON_CALL(sched_yield, OTHER),
    PYTHON_CALL(seccomp, OTHER), PYTHON_CALL(semctl, OTHER),
    PYTHON_CALL(sendfile, FILE), PYTHON_CALL(sendmmsg, FILE), PYTHON_CALL(sendmsg, FILE), PYTHON_CALL(sendto, FILE),
    PYTHON_CALL(set_mempolicy, OTHER), PYTHON_CALL(sethostname, OTHER), PYTHON_CALL(setns, OTHER),
    PYTHON_CALL(setrlimit, OTHER), PYTHON_CALL(setsockopt, FILE), PYTHON_CALL(setxattr, PATH),
    PYTHON_CALL(shmat, OTHER), PYTHON_CALL(shmctl, OTHER), PYTHON_CALL(shmdt, OTHER), PYTHON_CALL(shutdown, FILE),
    PYTHON_CALL(socket, OTHER), PYTHON_CALL(socketpair, OTHER), PYTHON_CALL(splice, OTHER), PYTHON_CALL(statfs, PATH),
    PYTHON_CALL(symlinkat, OTHER), PYTHON_CALL(sync, OTHER),
    PYTHON_CALL(syncfs, FILE), PYTHON_CALL(syslog, OTHER), PYTHON_CALL(tee, OTHER), PYTHON_CALL(tgkill, OTHER),
    PYTHON_CALL(timer_delete, OTHER), PYTHON_CALL(timer_settime, OTHER), PYTHON_CALL(truncate, PATH),
    PYTHON_CALL(umount2, OTHER), PYTHON_CALL(unlinkat, PATH_AT), PYTHON_CALL(unshare, OTHER),
    PYTHON_CALL(userfaultfd, OTHER), PYTHON_CALL(utimensat, PATH_AT), PYTHON_CALL(vmsplice, OTHER),
    PYTHON_CALL(wait4, CHILD), PYTHON_CALL(waitid, CHILD), PYTHON_CALL(write, FILE), PYTHON_CALL(writev, FILE),
/* Not on aarch64. */
#ifdef __NR_open
    PYTHON_CALL(access, PATH), PYTHON_CALL(chmod, PATH), PYTHON_CALL(chown, PATH), PYTHON_CALL(creat, PATH),
    PYTHON_CALL(epoll_wait, EPOLL), PYTHON_CALL(fork, CHILD), PYTHON_CALL(getdents, FILE), PYTHON_CALL(link, PATH),
    PYTHON_CALL(lstat, PATH), PYTHON_CALL(mkdir, PATH), PYTHON_CALL(open, PATH), PYTHON_CALL(pause, SIGNAL),
    PYTHON_CALL(mknod, PATH), PYTHON_CALL(poll, POLL), PYTHON_CALL(readlink, PATH), PYTHON_CALL(rename, PATH), PYTHON_CALL(rmdir, PATH),
    PYTHON_CALL(stat, PATH), PYTHON_CALL(unlink, PATH), PYTHON_CALL(vfork, CHILD),
#endif
/* Not on some other architectures: s390x, powerpc, and those of 32 bits. */
#ifdef __NR_accept
    PYTHON_CALL(accept, FILE),
#endif
#ifdef __NR_fadvise64
    PYTHON_CALL(fadvise64, FILE),
#endif
#ifdef __NR_mmap
    PYTHON_CALL(mmap, OTHER),
#endif
#ifdef __NR_newfstatat
    PYTHON_CALL(newfstatat, PATH_AT),
#endif
#ifdef __NR_select
    PYTHON_CALL(select, SELECT),
#endif
#ifdef __NR_semop
    PYTHON_CALL(semop, OTHER),
#endif
#ifdef __NR_semtimedop
    PYTHON_CALL(semtimedop, OTHER),
#endif
#ifdef __NR_sync_file_range
    PYTHON_CALL(sync_file_range, FILE),
#endif
#ifdef __NR_sync_file_range2
    PYTHON_CALL(sync_file_range2, FILE),
#endif
#ifdef __NR_renameat
    PYTHON_CALL(renameat, PATH_AT),
#endif
/* Not in older kernels. */
#ifdef __NR_statx
    PYTHON_CALL(statx, PATH_AT),
#endif
#ifdef __NR_clone3
    PYTHON_CALL(clone3, CHILD),
#endif
#ifdef __NR_io_uring_enter
    PYTHON_CALL(io_uring_enter, OTHER),
#endif
#ifdef __NR_openat2
    PYTHON_CALL(openat2, PATH_AT),
#endif
#ifdef __NR_faccessat2
    PYTHON_CALL(faccessat2, PATH_AT),
#endif
#ifdef __NR_epoll_pwait2
    PYTHON_CALL(epoll_pwait2, EPOLL),
#endif
#ifdef __NR_futex_wait
    PYTHON_CALL(futex_wait, FUTEX),
#endif
};

/* *name: the name of the call, or "" if the table lacks it. */
static enum python_wait_reason python_wait_reason_of(long number, const char **name)
{
    *name = "";
    if (number < 0 || number >= (long)ARRAY_SIZE(python_system_calls) || !python_system_calls[number].name)
        return PYTHON_WAITS_OTHER;
    *name = python_system_calls[number].name;
    return python_system_calls[number].waits;
}
