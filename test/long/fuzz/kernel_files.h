/*
 * What python_sleep.stp.in has of the kernel beside kernel.h: sockets, states, the reads that may
 * fail.  To be included before the tapset's C.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNEL_FILES_H
#define KERNEL_FILES_H

#include "kernel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef u16 umode_t;
typedef u16 __be16;
struct hlist_node {
    void *next, *pprev;
};
struct sock {
    struct sock_common {
        unsigned short skc_family;
        u16 skc_num;
        __be16 skc_dport;
        u32 skc_daddr, skc_rcv_saddr;
        u8 skc_v6_daddr[16], skc_v6_rcv_saddr[16];
    } __sk_common;
};
struct socket {
    short type;
    struct file *file;
    struct sock *sk;
};
struct unix_address {
    int len;
    struct sockaddr_un name[];
};
struct unix_sock {
    struct sock sk;
    struct unix_address *addr;
    struct sock *peer;
};

enum {
    __TASK_STOPPED = 4,
    __TASK_TRACED = 8,
    TASK_FROZEN_STATE = 0x8000,
    PF_EXITING = 4,
    PF_FORKNOEXEC = 0x40,
};
#define TASK_FROZEN TASK_FROZEN_STATE
#define CONFIG_CGROUPS
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))
#define hweight64(word) __builtin_popcountll(word)

static int __attribute__((unused)) hard_interrupt, soft_interrupt;
#define hardirq_count() (hard_interrupt)
#define in_serving_softirq() (soft_interrupt)

/* The kernel's functions that have names. */
static const char *symbol_names[16];
static inline int symbol_name(char *to, unsigned long address)
{
    if (address < ARRAY_SIZE(symbol_names) && symbol_names[address])
        return sprintf(to, "%s", symbol_names[address]);
    return sprintf(to, "f_%lx [module]", address);
}
#undef sprint_symbol_no_offset
#define sprint_symbol_no_offset(to, address) symbol_name(to, address)

/* With the kernel's formats for addresses. */
static inline int kernel_scnprintf(char *to, size_t size, const char *format, ...)
{
    char text[INET6_ADDRSTRLEN];
    va_list values;
    int length;
    va_start(values, format);
    if (!strcmp(format, "%pI4:"))
        length = scnprintf(to, size,
                           "%s:", inet_ntop(AF_INET, va_arg(values, void *), text, sizeof text));
    else if (!strcmp(format, "[%pI6c]:"))
        length = scnprintf(to, size,
                           "[%s]:", inet_ntop(AF_INET6, va_arg(values, void *), text, sizeof text));
    else
        length = vsnprintf(to, size, format, values);
    va_end(values);
    return length < (int)size ? length : (int)size - 1;
}
#define scnprintf kernel_scnprintf

/* Of other tasks, of what is mapped and of symbols nothing is known. */
struct task_struct *task_of(pid_t pid)
{
    (void)pid;
    return NULL;
}

struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long address)
{
    (void)mm;
    (void)address;
    return NULL;
}

void *kallsyms_lookup_name(const char *name)
{
    (void)name;
    return NULL;
}

#endif
