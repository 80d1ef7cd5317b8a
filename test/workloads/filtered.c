/*
 * "filtered ANSWER CALL... -- COMMAND..." runs a command with a seccomp filter that answers so to
 * these system calls: "kill", "trap", or the number of an error.  CALL may be "namespaces", clone()
 * with their flags, or "writable-code", mmap() and mprotect() for it.  As a library: limit() sets
 * the filter.  The file calls.h is a list of system calls: {"read", SYS_read}, and so on.
 *
 * SPDX-License-Identifier: MIT
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE AUDIT_ARCH_X86_64
#endif

static const struct {
    const char *name;
    int number;
} calls[] = {
#include "calls.h"
};
static struct sock_filter filter[4096];
static unsigned short count;

static void add(struct sock_filter step)
{
    filter[count++] = step;
}

static void load(size_t offset)
{
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

/* The answer, if this argument of that system call has all of these bits; or any of them. */
static void add_masked(int number, int argument, unsigned bits, int all, unsigned answer)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4));
    load(offsetof(struct seccomp_data, args[0]) + 8 * argument);
    add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
    add(all ? (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1)
            : (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 0, 0, 1));
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
    load(offsetof(struct seccomp_data, nr));
}

static void add_call(const char *name, unsigned answer)
{
    if (!strcmp(name, "namespaces"))
        add_masked(SYS_clone, 0, 0x7e020000, 0, answer);
    if (!strcmp(name, "writable-code")) {
        add_masked(SYS_mmap, 2, 6, 1, answer);
        add_masked(SYS_mprotect, 2, 4, 1, answer);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(name, calls[i].name)) {
            add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1));
            add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
        }
}

int limit(int arguments, char **words, unsigned flags)
{
    struct sock_fprog program = {0, filter};
    unsigned answer = !strcmp(words[0], "kill")   ? SECCOMP_RET_KILL_PROCESS
                      : !strcmp(words[0], "trap") ? SECCOMP_RET_TRAP
                                                  : SECCOMP_RET_ERRNO | atoi(words[0]);
    load(offsetof(struct seccomp_data, arch));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    load(offsetof(struct seccomp_data, nr));
    for (int i = 1; i < arguments; i++)
        add_call(words[i], answer);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    program.len = count;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int main(int arguments, char **words)
{
    int i = 1;
    while (i < arguments && strcmp(words[i], "--"))
        i++;
    if (limit(i - 1, words + 1, 0))
        return 1;
    execv(words[i + 1], words + i + 1);
    return 1;
}
