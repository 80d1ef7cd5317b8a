/*
 * Seccomp: the modes and numbers of filters of a process's threads, by /proc; and for architectures
 * with HAS_REMOTE_CALLS, whether the filters allow the shim's system calls.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/inject.h"
#include "lib/files.h"
#include "lib/util.h"
#include "shared/offsets_page.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A thread's mode and, from Linux 5.9 on, its number of filters; NULL if it has ended. */
static char *filters_by_status(const char *path)
{
    char *status = read_file(path, 65536), *mode = status_field(status, "Seccomp"),
         *count = status_field(status, "Seccomp_filters");
    return mode ? format("%s %s", mode, count ? count : "") : NULL;
}

bool has_seccomp_filter(pid_t pid)
{
    char *filters = filters_by_status(under_root(format("/proc/%d/status", pid)));
    return filters && *filters != '0';
}

/* Greater for a thread with more filters, as in probes/shim/os/process.c: filters_in(). */
static long number_of_filters(const char *thread)
{
    char *filters = filters_by_status(format("%s/status", thread));
    long mode = 0, count = 0;
    if (filters)
        sscanf(filters, "%ld %ld", &mode, &count);
    return 1000 * (mode != 0) + count;
}

const char *silenced_by_seccomp(pid_t pid)
{
    long most = 0, own = -1;
    glob_t threads;
    if (glob(under_root(format("/proc/%d/task/*", pid)), GLOB_NOSORT, NULL, &threads) != 0)
        return NULL;
    for (size_t i = 0; i < threads.gl_pathc; i++) {
        char *name = read_file(format("%s/comm", threads.gl_pathv[i]), 64);
        long filters = number_of_filters(threads.gl_pathv[i]);
        most = filters > most ? filters : most;
        if (name && strncmp(name, SHIM_THREAD_NAME, sizeof SHIM_THREAD_NAME - 1) == 0)
            own = filters;
    }
    globfree(&threads);
    return own >= 0 && most > own
               ? "a thread of it has set a seccomp filter, after which no hooks are installed: "
                 "restart it, and trace it before it sets that"
               : NULL;
}

const char *seccomp_refusal(pid_t pid)
{
    char *first = NULL;
    bool differs = false;
    glob_t threads;
    if (glob(under_root(format("/proc/%d/task/*/status", pid)), GLOB_NOSORT, NULL, &threads) != 0)
        return NULL;
    for (size_t i = 0; i < threads.gl_pathc; i++) {
        char *filters = filters_by_status(threads.gl_pathv[i]);
        differs |= first && filters && strcmp(first, filters) != 0;
        first = filters ? filters : first;
    }
    globfree(&threads);
    if (differs)
        return "a thread of it has a seccomp filter that others have not, and the shim would do "
               "nothing: start it with stap-python run, and trace it before it sets that";
    if (first && *first == '1')
        return "seccomp leaves it only read() and write()";
#if !HAS_REMOTE_CALLS
    if (first && *first == '2')
        return "seccomp filters its system calls and might kill it: start it with stap-python run";
#endif
    return NULL;
}

#if HAS_REMOTE_CALLS

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---------------------------------------------------------------- evaluating a filter */

static uint32_t computed(unsigned operation, uint32_t a, uint32_t operand)
{
    switch (operation) {
    case BPF_ADD:
        return a + operand;
    case BPF_SUB:
        return a - operand;
    case BPF_MUL:
        return a * operand;
    case BPF_DIV:
        return operand ? a / operand : 0;
    case BPF_AND:
        return a & operand;
    case BPF_OR:
        return a | operand;
    case BPF_XOR:
        return a ^ operand;
    case BPF_LSH:
        return operand < 32 ? a << operand : 0;
    case BPF_RSH:
        return operand < 32 ? a >> operand : 0;
    default: /* BPF_NEG */
        return -a;
    }
}

static bool jumps(unsigned condition, uint32_t a, uint32_t operand)
{
    switch (condition) {
    case BPF_JEQ:
        return a == operand;
    case BPF_JGT:
        return a > operand;
    case BPF_JGE:
        return a >= operand;
    default: /* BPF_JSET */
        return a & operand;
    }
}

struct machine {
    uint32_t a, x, memory[BPF_MEMWORDS];
};

/* The value that BPF_LD or BPF_LDX loads. */
static uint32_t loaded(const struct sock_filter *step, const struct machine *machine,
                       const struct seccomp_data *data)
{
    uint32_t word = 0;
    switch (BPF_MODE(step->code)) {
    case BPF_ABS:
        if (step->k <= sizeof *data - sizeof word)
            memcpy(&word, (const char *)data + step->k, sizeof word);
        return word;
    case BPF_MEM:
        return machine->memory[step->k % BPF_MEMWORDS];
    case BPF_LEN:
        return sizeof *data;
    default: /* BPF_IMM */
        return step->k;
    }
}

/* The filter's result for a system call.  The loop ends, as the kernel accepts only filters without
 * backward jumps. */
static uint32_t answer(const struct sock_filter *filter, size_t length,
                       const struct seccomp_data *data)
{
    struct machine machine = {0};
    for (size_t at = 0; at < length; at++) {
        const struct sock_filter *step = &filter[at];
        uint32_t operand = BPF_SRC(step->code) == BPF_X ? machine.x : step->k;
        switch (BPF_CLASS(step->code)) {
        case BPF_LD:
            machine.a = loaded(step, &machine, data);
            break;
        case BPF_LDX:
            machine.x = loaded(step, &machine, data);
            break;
        case BPF_ST:
            machine.memory[step->k % BPF_MEMWORDS] = machine.a;
            break;
        case BPF_STX:
            machine.memory[step->k % BPF_MEMWORDS] = machine.x;
            break;
        case BPF_ALU:
            machine.a = computed(BPF_OP(step->code), machine.a, operand);
            break;
        case BPF_JMP:
            at += BPF_OP(step->code) == BPF_JA                    ? step->k
                  : jumps(BPF_OP(step->code), machine.a, operand) ? step->jt
                                                                  : step->jf;
            break;
        case BPF_RET:
            return BPF_RVAL(step->code) == BPF_A ? machine.a : step->k;
        default: /* BPF_MISC */
            if (BPF_MISCOP(step->code) == BPF_TAX)
                machine.x = machine.a;
            else
                machine.a = machine.x;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

/* ---------------------------------------------------------------- system calls of the shim */

enum { ANY_ERROR = -1 };

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

struct call {
    const char *name;
    int number;
    int error; /* it may fail with this errno: there is a fallback; 0: it must not fail */
    uint64_t arguments[6];
};

#define CALL(name, error, ...) \
    { \
#name, SYS_##name, error, \
        { \
            __VA_ARGS__ \
        } \
    }

/* The system calls of loading the shim, of its thread and its hooks, with the arguments that
 * filters check. */
static const struct call calls[] = {
    CALL(openat, 0, 0, 0, O_RDONLY | O_CLOEXEC),
    CALL(read, 0),
    CALL(pread64, 0),
    CALL(lseek, 0),
    CALL(fstat, ENOSYS),
    CALL(newfstatat, 0),
    CALL(uname, ANY_ERROR),
    CALL(close, 0),
    CALL(getdents64, 0),
    CALL(mmap, 0, 0, 0, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE),
    CALL(mmap, 0, 0, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1UL),
    CALL(mprotect, 0, 0, 0, PROT_READ),
    CALL(munmap, 0),
    CALL(mremap, ANY_ERROR),
    CALL(brk, ANY_ERROR),
    CALL(madvise, ANY_ERROR),
    CALL(futex, 0, 0, FUTEX_WAIT_PRIVATE),
    CALL(futex, 0, 0, FUTEX_WAKE_PRIVATE),
    CALL(rt_sigprocmask, 0),
    CALL(clone3, ENOSYS),
    CALL(clone, 0,
         CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD |
             CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID),
    CALL(set_robust_list, ANY_ERROR),
    CALL(rseq, ANY_ERROR),
    CALL(exit, 0),
    CALL(gettid, 0),
    CALL(getpid, 0),
    CALL(prctl, ANY_ERROR, PR_SET_NAME),
    CALL(prctl, ANY_ERROR, PR_GET_SECCOMP),
    CALL(prlimit64, ANY_ERROR, 0, RLIMIT_STACK),
    CALL(sched_getaffinity, ANY_ERROR),
    CALL(sched_yield, ANY_ERROR), /* CPython's own locks, in free-threaded builds (Python/lock.c) */
};

static bool allows(const struct sock_filter *filter, size_t length, const struct call *call)
{
    struct seccomp_data data = {.nr = call->number, .arch = ARCHITECTURE};
    memcpy(data.args, call->arguments, sizeof data.args);
    uint32_t result = answer(filter, length, &data);
    switch (result & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
        return true;
    case SECCOMP_RET_ERRNO:
        return call->error == ANY_ERROR ||
               (call->error && call->error == (int)(result & SECCOMP_RET_DATA));
    default:
        return false;
    }
}

/* The name of the first system call that the filter forbids, or NULL. */
static const char *forbidden_by(const struct sock_filter *filter, size_t length)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!allows(filter, length, &calls[i]))
            return calls[i].name;
    return NULL;
}

const char *seccomp_filter_refusal(pid_t tid)
{
    static struct sock_filter filter[BPF_MAXINSNS];
    char *mode = status_field(read_file(format("/proc/%d/status", tid), 65536), "Seccomp");
    if (!mode || atoi(mode) == 0)
        return NULL;
    for (long number = 0;; number++) {
        long length = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)number, filter);
        if (length < 0 && errno == ENOENT && number > 0)
            return NULL;
        if (length < 0 && errno == EACCES)
            return "seccomp filters its system calls, and only root outside of a container may see "
                   "the filter: use sudo, or start it with stap-python run";
        if (length < 0)
            return format("seccomp filters its system calls, and the kernel does not show the "
                          "filter (%s): start it with stap-python run",
                          strerror(errno));
        const char *name = forbidden_by(filter, (size_t)length);
        if (name)
            return format("its seccomp filter forbids %s(), which the shim needs: start it with "
                          "stap-python run, and trace it before it sets the filter",
                          name);
    }
}

#endif
