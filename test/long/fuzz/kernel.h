/*
 * What the tapset's embedded C has of the kernel and of SystemTap's runtime, for a program of
 * ours: tapset.awk puts it before that C.  User memory is what user_byte() says.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef long long s64;
typedef int pid_t;
#define __user

/* As SystemTap has it where -DMAXSTRINGLEN doesn't say otherwise. */
#ifndef MAXSTRINGLEN
#define MAXSTRINGLEN 512
#endif
#define PAGE_SIZE 4096UL
#ifdef __LP64__
#define TASK_SIZE (0x800000000000UL - PAGE_SIZE)
#else
#define TASK_SIZE (0x100000000ULL - PAGE_SIZE)
#endif
#define pagefault_disable() ((void)0)
#define pagefault_enable() ((void)0)
#define TASK_SIZE_MAX TASK_SIZE
#define array_index_mask_nospec(index, size) ((index) < (size) ? ~0UL : 0UL)
#define HZ 250
#define NSEC_PER_MSEC 1000000

#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b) ((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define clamp_t(type, value, a, b) min_t(type, max_t(type, value, a), b)
#define U16_MAX 0xffffU
#define U32_MAX 0xffffffffU
#define DIV_ROUND_UP(a, b) (((a) + (b)-1) / (b))
#define ALIGN(a, b) (DIV_ROUND_UP(a, b) * (b))
#define __aligned(bytes) __attribute__((aligned(bytes)))
#define __read_mostly
#define min3(a, b, c) min(min(a, b), c)
#define strnstr(text, part, size) ((const char *)memmem(text, size, part, strlen(part)))
#define simple_strtol strtol

/* The locks that are held: meanwhile interrupts are off, so nothing of the process is read then,
 * which takes as long as the process makes it. */
static int __attribute__((unused)) locked;

/* A byte of the traced process, or -1. */
static int user_byte(unsigned long address);
/* How many reads there were, and their bytes. */
static unsigned long user_reads, user_bytes;

/* How many bytes could not be copied. */
static inline unsigned long __copy_from_user_inatomic(void *to, const char *from,
                                                      unsigned long size)
{
    user_reads++;
    if (locked)
        abort();
    for (unsigned long i = 0; i < size; i++) {
        int byte = user_byte((unsigned long)from + i);
        if (byte < 0)
            return size - i;
        user_bytes++;
        ((unsigned char *)to)[i] = (unsigned char)byte;
    }
    return 0;
}

/* As kernels have it that open the process's memory for more than one read. */
#ifndef WITHOUT_UNSAFE_GET_USER
#define user_read_access_begin(from, size) ((void)(from), (void)(size), true)
#define user_read_access_end() ((void)0)
#define unsafe_get_user(word, from, failed) \
    do { \
        if (__copy_from_user_inatomic(&(word), (const char *)(from), sizeof(word))) \
            goto failed; \
    } while (0)
#endif

/* The length without the NUL; size where there is none, which is then not put there. */
static inline long _stp_strncpy_from_user(char *to, const char *from, long size)
{
    user_reads++;
    for (long i = 0; i < size; i++) {
        int byte = user_byte((unsigned long)from + (unsigned long)i);
        if (byte < 0)
            return -EFAULT;
        user_bytes++;
        to[i] = (char)byte;
        if (!byte)
            return i;
    }
    return size;
}

/* What was warned of, last. */
static char __attribute__((unused)) warned[256];
#define _stp_warn(...) ((void)snprintf(warned, sizeof warned, __VA_ARGS__))

/* What was printed. */
static char printed[1 << 24];
static size_t printed_length;

static inline void _stp_print(const char *text)
{
    size_t length = strlen(text);
    if (length > sizeof printed - 1 - printed_length)
        abort();
    memcpy(printed + printed_length, text, length + 1);
    printed_length += length;
}

#define _stp_print_flush() ((void)0)

__attribute__((format(printf, 1, 2))) static inline void _stp_printf(const char *format, ...)
{
    char text[256 + MAXSTRINGLEN];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    _stp_print(text);
}

__attribute__((format(printf, 3, 4))) static inline int scnprintf(char *to, size_t size,
                                                                  const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = vsnprintf(to, size, format, values);
    va_end(values);
    return length < (int)size ? length : (int)size - 1;
}

static inline size_t kernel_strlcpy(char *to, const char *from, size_t size)
{
    size_t length = strlen(from), copied = length < size ? length : size - 1;
    memcpy(to, from, copied);
    to[copied] = '\0';
    return length;
}
#define strlcpy kernel_strlcpy

static inline void strreplace(char *text, char old, char new)
{
    for (; *text; text++)
        if (*text == old)
            *text = new;
}

static inline int fls(unsigned value)
{
    return value ? 32 - __builtin_clz(value) : 0;
}

static inline int fls64(u64 value)
{
    return value ? 64 - __builtin_clzll(value) : 0;
}

static inline u64 div64_u64(u64 a, u64 b)
{
    return a / b;
}

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rest)
{
    *rest = a % b;
    return a / b;
}

static inline u64 div_u64_rem(u64 a, u32 b, u32 *rest)
{
    *rest = (u32)(a % b);
    return a / b;
}

/* Files: as much of them as the tapset reads. */
struct super_block {
    u32 s_dev;
    unsigned long s_magic;
    char s_id[32];
    const struct file_system_type {
        const char *name;
    } * s_type;
};
struct inode {
    struct super_block *i_sb;
    unsigned long i_ino;
    u32 i_generation;
    s64 i_size;
    u16 i_mode;
};
struct dentry {
    struct {
        const unsigned char *name;
        u32 len;
    } d_name;
    struct dentry *d_parent;
    struct super_block *d_sb;
    struct {
        void *pprev;
    } d_hash;
};
struct vfsmount {
    struct dentry *mnt_root;
    struct super_block *mnt_sb;
};
struct path {
    struct dentry *dentry;
    struct vfsmount *mnt;
};
struct file {
    struct path f_path;
    struct inode *f_inode;
    void *private_data;
};
struct fdtable {
    unsigned max_fds;
    struct file **fd;
};
struct files_struct {
    struct fdtable *fdt;
};
struct fs_struct {
    struct path root;
};

/* What a thread waits for that a signal has interrupted. */
struct restart_block {
    void *fn;
    struct {
        const u32 *uaddr;
    } futex;
    struct {
        const void *ufds;
        int nfds;
    } poll;
};

/* One CPU, which runs one of the tasks. */
struct mm_struct {
    struct file *exe_file;
    unsigned long env_start, env_end;
    struct {
        void *vdso;
    } context;
};
enum { TASK_COMM_LEN = 16 };
typedef struct {
    int counter;
} atomic_t;
#define atomic_read(number) ((number)->counter)
#define atomic_inc(number) (void)__atomic_fetch_add(&(number)->counter, 1, __ATOMIC_SEQ_CST)
struct signal_struct {
    atomic_t live;
};
#define PF_IO_WORKER 0x10u
#define PF_KTHREAD 0x200000u
struct task_struct {
    struct mm_struct *mm;
    pid_t pid, tgid;
    char comm[TASK_COMM_LEN];
    struct {
        unsigned long fsbase, tpidr_el0;
    } thread;
    struct task_struct *real_parent, *group_leader;
    struct signal_struct *signal;
    struct files_struct *files;
    struct fs_struct *fs;
    struct restart_block restart_block;
    unsigned flags;
    bool frozen;
    u64 start_time, self_exec_id, stime;
    struct {
        u64 sum_exec_runtime;
        bool sched_delayed;
    } se;
    struct {
        u64 run_delay, last_queued;
    } sched_info;
    int on_rq;
    unsigned __state;
    struct nsproxy {
        void *mnt_ns;
    } * nsproxy;
};
static struct mm_struct current_mm;
static struct task_struct first_task = {.mm = &current_mm, .pid = 1, .group_leader = &first_task};
static struct task_struct __attribute__((unused)) *current = &first_task;
struct user_namespace {
    int level;
};
static struct user_namespace __attribute__((unused)) init_user_ns;
#define current_uid() 0u
#define current_euid() 0u
#define __kuid_val(user) (user)
#define get_random_bytes(to, size) memset(to, 'r', size)
#define cmpxchg(at, old, new) __sync_val_compare_and_swap(at, old, new)
#define from_kuid_munged(namespace, user) ((void)(namespace), (user))
/* The threads of a process are the running one, so many times. */
static int __attribute__((unused)) process_threads = 1;
#define for_each_thread(process, thread) \
    for (int more_threads = process_threads; more_threads-- > 0 && ((thread) = (process));)
#define task_user_tls(task) (&(task)->thread.tpidr_el0)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference(pointer) (pointer)
#define assert_is_myproc() ((void)0)
typedef int raw_spinlock_t;
#define DEFINE_RAW_SPINLOCK(name) raw_spinlock_t name
#define __RAW_SPIN_LOCK_UNLOCKED(name) 0
#define in_nmi() false
/* A lock that is taken twice, or given back by who has not taken it, is a fault of the tapset. */
#define raw_spin_trylock_irqsave(lock, flags) \
    (*(lock) == 0 && (*(lock) = 1, locked++, (flags) = 0, true))
#define raw_spin_lock_irqsave(lock, flags) \
    (*(lock) ? abort() : (void)(*(lock) = 1, locked++, (flags) = 0))
#define raw_spin_unlock_irqrestore(lock, flags) \
    (*(lock) ? (void)(*(lock) = 0, locked--, (flags)) : abort())
#define raw_smp_processor_id() 0
#define cpu_relax() ((void)0)
#define smp_rmb() ((void)0)
#define smp_wmb() ((void)0)
#define smp_store_release(to, value) ((void)(*(to) = (value)))
#define smp_load_acquire(from) (*(from))
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)

/* What is mapped: the first part that ends beyond an address, or NULL. */
struct vm_area_struct {
    unsigned long vm_start, vm_end, vm_pgoff;
    struct file *vm_file;
};
struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long address);
#define PAGE_SHIFT 12
#define file_inode(file) ((file)->f_inode)
#define mmap_read_trylock(mm) ((mm) != NULL)
#define mmap_read_unlock(mm) ((void)(mm))
#define IS_ENABLED(option) (option)
#define CONFIG_PREEMPT_RT 0
#define CONFIG_IPV6 1

/* How many bytes could not be read: all of them, if any could not. */
static unsigned long __attribute__((unused)) kernel_reads;
static inline long copy_from_kernel_nofault(void *to, const void *from, size_t size)
{
    struct iovec ours = {to, size}, its = {(void *)(uintptr_t)from, size};
    kernel_reads++;
    return size && process_vm_readv(getpid(), &ours, 1, &its, 1, 0) != (ssize_t)size ? -EFAULT : 0;
}

/* Where it was interrupted, and the kernel's functions then; and the system call in which the
 * thread is. */
struct pt_regs {
    unsigned long ip;
    long number;
    unsigned long arguments[6];
};
static struct pt_regs __attribute__((unused)) system_call = {.number = -1};
#define task_pt_regs(task) ((void)(task), &system_call)
#define syscall_get_nr(task, regs) ((void)(task), (regs)->number)
#define syscall_get_arguments(task, regs, to) \
    ((void)(task), memcpy((to), (regs)->arguments, sizeof(regs)->arguments))
static struct {
    int user_mode_p, actionremaining;
    struct pt_regs *uregs, *kregs;
} __attribute__((unused)) interrupted;
#define CONTEXT (&interrupted)
#define REG_IP(regs) ((regs)->ip)
#define CONFIG_STACKTRACE
#define KSYM_SYMBOL_LEN 64
#define MODULES_VADDR 0xffffffffc0000000UL
#define MODULES_END 0xffffffffff000000UL
#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))
static unsigned long kernel_addresses[200];
static unsigned kernel_addresses_count;
static inline unsigned stack_trace_save(unsigned long *to, unsigned most, unsigned skip)
{
    unsigned count = min(kernel_addresses_count, most);
    (void)skip;
    memcpy(to, kernel_addresses, count * sizeof *to);
    return count;
}
#define sprint_symbol_no_offset(to, address) sprintf(to, "f_%lx [module]", address)

/* Tasks by their PIDs: task_of() says. */
struct task_struct *task_of(pid_t pid);
enum { PIDTYPE_PID, PIDTYPE_TGID, TASK_RUNNING = 0, TASK_DEAD = 128 };
static const int init_pid_ns;
#define find_pid_ns(pid, space) ((void)*(space), pid)
#define pid_task(pid, type) task_of(pid)

/* The process of -x or -c. */
static pid_t __attribute__((unused)) _stp_target;

/* Time, as the fuzzer has it pass. */
static u64 now_ns;
static unsigned long __attribute__((unused)) jiffies;
#define ktime_get_ns() now_ns
#define ktime_get_real_ns() now_ns
#define local_clock() now_ns
#define CONFIG_SCHED_INFO
#define time_before(a, b) ((long)((a) - (b)) < 0)
#define READ_ONCE(word) (word)
#define WRITE_ONCE(word, value) ((word) = (value))
#define xchg(word, value) __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST)
#define read_sysreg(name) (current->thread.name)
#define KERNEL_VERSION(a, b, c) ((a)*65536 + (b)*256 + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 12, 0)
void *kallsyms_lookup_name(const char *name);

static inline void sort(void *base, size_t count, size_t size,
                        int (*compare)(const void *, const void *), void *swap)
{
    (void)swap;
    qsort(base, count, size, compare);
}

static inline int kstrtol(const char *text, unsigned base, long *value)
{
    char *end;
    *value = strtol(text, &end, (int)base);
    return *text && !*end ? 0 : -EINVAL;
}

/* SystemTap's histograms. */
enum { HIST_LOG, HIST_LOG_BUCKETS = 128 };
typedef struct {
    s64 count, histogram[];
} stat_data;
struct _Hist {
    int type, buckets;
};
#define _stp_val_to_bucket(value) (64 + fls((unsigned)(value)))
#define _stp_bucket_to_val(bucket) ((bucket) <= 64 ? 0LL : 1LL << ((bucket)-65))
#define _stp_stat_print_histogram(histogram, data) ((void)(histogram), (void)(data))

#endif
