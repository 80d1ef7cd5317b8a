/*
 * Attaching with ptrace(): the registers of each architecture, a call in a stopped thread, and the
 * search for a thread at a safe point.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/inject.h"
#include "lib/files.h"
#include "lib/processes.h"
#include "lib/util.h"

/* ---------------------------------------------------------------- registers */

#if HAS_REMOTE_CALLS

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

/* Reads a regset; returns its size, or -1 and errno. */
static ssize_t set_read(pid_t tid, int set, void *bytes, size_t size)
{
    struct iovec place = {bytes, size};
    return ptrace(PTRACE_GETREGSET, tid, (void *)(intptr_t)set, &place) ? -1
                                                                        : (ssize_t)place.iov_len;
}

static bool set_write(pid_t tid, int set, const void *bytes, size_t size)
{
    struct iovec place = {(void *)(uintptr_t)bytes, size};
    return ptrace(PTRACE_SETREGSET, tid, (void *)(intptr_t)set, &place) == 0;
}

/* False: the kernel or the processor does not have the regset. */
static bool read_vectors(pid_t tid, int set, struct registers *registers)
{
    ssize_t size = set_read(tid, set, registers->vectors, sizeof registers->vectors);
    if (size <= 0)
        return false;
    registers->vectors_set = set;
    registers->vectors_size = (size_t)size;
    return true;
}

bool general_write(pid_t tid, const struct user_regs_struct *general)
{
    return set_write(tid, NT_PRSTATUS, general, sizeof *general);
}

bool registers_write(pid_t tid, const struct registers *registers)
{
    return set_write(tid, registers->vectors_set, registers->vectors, registers->vectors_size) &&
           general_write(tid, &registers->general);
}

#ifdef __x86_64__

enum { CS_64 = 0x33 }; /* the code segment of 64-bit code */

bool general_read(pid_t tid, struct user_regs_struct *general)
{
    if (set_read(tid, NT_PRSTATUS, general, sizeof *general) != sizeof *general)
        return false;
    errno = ENOTSUP;
    return general->cs == CS_64;
}

bool registers_read(pid_t tid, struct registers *registers)
{
    return general_read(tid, &registers->general) && read_vectors(tid, NT_X86_XSTATE, registers);
}

unsigned long sp_of(const struct user_regs_struct *general)
{
    return general->rsp;
}

unsigned long pc_of(const struct user_regs_struct *general)
{
    return general->rip;
}

unsigned long return_value_of(const struct user_regs_struct *general)
{
    return general->rax;
}

bool maybe_outside_syscall(const struct user_regs_struct *general)
{
    return (long)general->orig_rax < 0;
}

bool was_sleeping_in_syscall(const struct user_regs_struct *general, unsigned long number,
                             unsigned long stack, unsigned long next)
{
    return general->orig_rax == number && general->rsp == stack && general->rip == next;
}

/* The kernel itself restarts the system call when the thread resumes. */
bool restarts_syscall(struct user_regs_struct *general, unsigned long next)
{
    (void)general;
    (void)next;
    return false;
}

void set_up_call(struct user_regs_struct *general, unsigned long function, unsigned long first,
                 unsigned long second)
{
    general->rdi = first;
    general->rsi = second;
    general->rax = 0;
    general->rsp = first - sizeof(unsigned long); /* the return address */
    general->rip = function;
    general->eflags &= ~0x400UL; /* the direction flag */
    general->orig_rax = -1UL;    /* no system call to restart */
}

bool has_shadow_stack(pid_t tid)
{
    (void)tid;
    return false;
}

#else /* aarch64 */

enum {
    SVC = 4,           /* the size of the instruction SVC, a system call */
    BTYPE = 0xc00,     /* in pstate: the kind of branch to the next instruction, for BTI */
    SVE_SET = 0x405,   /* NT_ARM_SVE, which contains the 128-bit registers, too */
    GCS_SET = 0x410,   /* NT_ARM_GCS, Linux 6.13 and later */
    GCS_ENABLED = 0x1, /* in the regset's first word */
};

bool general_read(pid_t tid, struct user_regs_struct *general)
{
    errno = ENOTSUP; /* 32-bit code has a smaller regset */
    return set_read(tid, NT_PRSTATUS, general, sizeof *general) == sizeof *general;
}

bool registers_read(pid_t tid, struct registers *registers)
{
    return general_read(tid, &registers->general) &&
           (read_vectors(tid, SVE_SET, registers) || read_vectors(tid, NT_PRFPREG, registers));
}

unsigned long sp_of(const struct user_regs_struct *general)
{
    return general->sp;
}

unsigned long pc_of(const struct user_regs_struct *general)
{
    return general->pc;
}

unsigned long return_value_of(const struct user_regs_struct *general)
{
    return general->regs[0];
}

/* A stopped thread's registers no longer show whether it was in a system call. */
bool maybe_outside_syscall(const struct user_regs_struct *general)
{
    (void)general;
    return true;
}

/* When it stops, the kernel has returned an error in x0, or has set pc back to SVC. */
bool was_sleeping_in_syscall(const struct user_regs_struct *general, unsigned long number,
                             unsigned long stack, unsigned long next)
{
    return general->regs[8] == number && general->sp == stack &&
           (general->pc == next || general->pc == next - SVC);
}

/* Whether the system call sleeps for a duration in its arguments, not until a point in time.  The
 * kernel resumes it as restart_syscall(), which has the remaining time, but does not show us that.
 */
static bool sleeps_for_a_while(const struct user_regs_struct *general)
{
    const unsigned long long *regs = general->regs;
    switch (regs[8]) {
    case SYS_nanosleep:
        return true;
    case SYS_clock_nanosleep:
        return !(regs[1] & TIMER_ABSTIME);
    case SYS_futex:
        return (regs[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && regs[3];
    default: /* others write the remaining time into their arguments, or fail with EINTR */
        return false;
    }
}

bool restarts_syscall(struct user_regs_struct *general, unsigned long next)
{
    if (general->pc == next)
        return false;
    if (sleeps_for_a_while(general))
        general->regs[8] = SYS_restart_syscall;
    return true;
}

void set_up_call(struct user_regs_struct *general, unsigned long function, unsigned long first,
                 unsigned long second)
{
    general->regs[0] = first;
    general->regs[1] = second;
    general->regs[29] = 0; /* the frame pointer */
    general->regs[30] = 0; /* the return address */
    general->sp = first - 64;
    general->pc = function;
    general->pstate &= ~(unsigned long long)BTYPE;
}

bool has_shadow_stack(pid_t tid)
{
    uint64_t state[3];
    return set_read(tid, GCS_SET, state, sizeof state) > 0 && (state[0] & GCS_ENABLED);
}

#endif
#endif

/* ---------------------------------------------------------------- a call in a thread */

#if HAS_REMOTE_CALLS

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { RED_ZONE = 128 }; /* of x86-64, below the stack pointer; aarch64 has none */

/* A function that has not returned by then is reported to the user.  A test sets less. */
#ifndef CALL_MS
#define CALL_MS 60000
#endif

enum stop_result wait_for_stop(pid_t tid, long ms, int *status)
{
    long long end = monotonic_ms() + ms;
    for (;;) {
        pid_t got = waitpid(tid, status, __WALL | WNOHANG);
        if (got)
            return got == tid && WIFSTOPPED(*status) ? STOP_SEEN : STOP_EXITED;
        if (monotonic_ms() > end)
            return STOP_TIMEOUT;
        sleep_ms(1);
    }
}

bool thread_save(struct stopped_thread *thread)
{
    thread->restarts_syscall = false;
    return registers_read(thread->tid, &thread->registers) &&
           ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof thread->blocked,
                  &thread->blocked) == 0;
}

/* No signal handler of the program may run during the call, or leave it by longjmp(). */
static bool block_signals(const struct stopped_thread *thread)
{
    uint64_t all = ~(1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1) | 1ULL << (SIGILL - 1) |
                     1ULL << (SIGFPE - 1));
    return ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof all, &all) == 0;
}

/* Whether a pending signal will reach the thread when its own signal mask is restored. */
static bool has_pending_signal(const struct stopped_thread *thread)
{
    const char *path = format("/proc/%d/task/%d/status", thread->pid, thread->tid);
    const char *status = read_file(path, 65536);
    const char *own = status_field(status, "SigPnd"), *shared = status_field(status, "ShdPnd");
    return own && shared &&
           ((strtoull(own, NULL, 16) | strtoull(shared, NULL, 16)) & ~thread->blocked);
}

static bool sleeps(const struct stopped_thread *thread)
{
    const char *path = format("/proc/%d/task/%d/syscall", thread->pid, thread->tid);
    const char *text = read_file(path, 256);
    return text && strncmp(text, "running", 7) != 0;
}

/* A thread that gets little of a processor takes seconds to stop. */
enum { STOP_MS = 20000 };

/* Before the thread's signals are unblocked, the thread must be in its interrupted system call
 * again: only there the kernel decides whether a signal ends the call. */
static bool make_system_call(const struct stopped_thread *thread)
{
    int status;
    if (ptrace(PTRACE_CONT, thread->tid, NULL, NULL) != 0)
        return false;
    for (int i = 0; i < 20 && !sleeps(thread); i++)
        sleep_ms(1);
    if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) != 0)
        return false;
    errno = ETIMEDOUT;
    return wait_for_stop(thread->tid, STOP_MS, &status) == STOP_SEEN;
}

bool thread_restore(struct stopped_thread *thread)
{
    return registers_write(thread->tid, &thread->registers) &&
           (!thread->restarts_syscall || !has_pending_signal(thread) || make_system_call(thread)) &&
           ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof thread->blocked,
                  &thread->blocked) == 0;
}

static bool write_to(pid_t pid, unsigned long address, const void *bytes, size_t size)
{
    struct iovec ours = {(void *)(uintptr_t)bytes, size}, its = {(void *)address, size};
    return process_vm_writev(pid, &ours, 1, &its, 1, 0) == (ssize_t)size;
}

/* Puts the thread at the function's first instruction, as if called from address 0. */
static bool enter(struct stopped_thread *thread, unsigned long function, const char *text)
{
    static const unsigned long nowhere;
    struct user_regs_struct now = thread->registers.general;
    unsigned long place = (sp_of(&now) - RED_ZONE - strlen(text) - 1) & ~63UL;
    set_up_call(&now, function, place, RTLD_NOW);
    return block_signals(thread) && write_to(thread->pid, place, text, strlen(text) + 1) &&
           write_to(thread->pid, sp_of(&now), &nowhere, sizeof nowhere) &&
           general_write(thread->tid, &now);
}

/* Waits for the thread's next stop without a limit. */
static enum stop_result wait_patiently(const struct stopped_thread *thread, int *status)
{
    enum stop_result waited = wait_for_stop(thread->tid, CALL_MS, status);
    if (waited == STOP_TIMEOUT)
        fprintf(stderr,
                "stap-python: attach: %d: %s is slow in it: waiting, as to end now would "
                "kill the program\n",
                thread->pid, thread->called);
    while (waited == STOP_TIMEOUT)
        waited = wait_for_stop(thread->tid, CALL_MS, status);
    return waited;
}

const char *thread_call(struct stopped_thread *thread, unsigned long function, const char *text,
                        unsigned long *result)
{
    struct user_regs_struct now;
    int status;
    if (!enter(thread, function, text))
        return format("cannot change its thread: %s", strerror(errno));
    long signal = 0;
    while (ptrace(PTRACE_CONT, thread->tid, NULL, (void *)signal) == 0) {
        if (wait_patiently(thread, &status) == STOP_EXITED)
            break;
        signal = status >> 16 ? 0 : WSTOPSIG(status);
        if (signal != SIGSEGV && signal != SIGBUS)
            continue;
        if (general_read(thread->tid, &now) && pc_of(&now) == 0) {
            *result = return_value_of(&now);
            return NULL;
        }
        return format("%s caused a fault in it", thread->called);
    }
    return format("it ended during %s", thread->called);
}

#endif

/* ---------------------------------------------------------------- attaching with ptrace() */

#if HAS_REMOTE_CALLS

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum {
    PATIENCE_MS = 5000, /* for a thread to reach a safe point */
    REST_MS = 25,       /* a thread that is so long in a system call counts as asleep there */
};

/* The addresses in the process of dlopen(), or where the shim is loaded its attach_again(), and of
 * dlerror() or 0.  After exec() name or offset is another one. */
struct places {
    unsigned long function, dlerror;
    const char *name; /* of the function's file, in the maps */
    long offset;      /* of the function in its mapping */
};

/* ---------------------------------------------------------------- a thread, by /proc */

static char *thread_text(pid_t pid, pid_t tid, const char *name, size_t limit)
{
    return read_file(format("/proc/%d/task/%d/%s", pid, tid, name), limit);
}

/* The line of /proc: the system call in which the thread sleeps, or "running". */
static char *waiting_in(pid_t pid, pid_t tid)
{
    char *text = thread_text(pid, tid, "syscall", 256);
    return text ? text : strdup("");
}

static bool is_running(pid_t pid, pid_t tid)
{
    char *waiting = waiting_in(pid, tid);
    bool is = strncmp(waiting, "running", 7) == 0;
    free(waiting);
    return is;
}

/* The signal set in a line of status; all signals if there is no such line. */
static unsigned long long signals_of(const char *status, const char *name)
{
    char *text = status_field(status, name);
    return text ? strtoull(text, NULL, 16) : ~0ULL;
}

/* If a thread blocks or ignores SIGSEGV, a fault in it resets the program's handler of SIGSEGV. */
static bool takes_fault(pid_t pid, pid_t tid)
{
    char *status = thread_text(pid, tid, "status", 65536);
    return status &&
           !((signals_of(status, "SigBlk") | signals_of(status, "SigIgn")) >> (SIGSEGV - 1) & 1);
}

/* Whether the thread may be in a signal handler, which may have interrupted any code: it blocks a
 * signal that has a handler. */
static bool handles_signal(pid_t pid, pid_t tid)
{
    char *status = thread_text(pid, tid, "status", 65536);
    return !status || (signals_of(status, "SigBlk") & signals_of(status, "SigCgt"));
}

/* Fills in the TIDs of at most `most` threads; returns their number. */
static size_t threads_of(pid_t pid, pid_t *tids, size_t most)
{
    size_t count = 0;
    struct dirent *entry;
    DIR *folder = opendir(format("/proc/%d/task", pid));
    while (folder && count < most && (entry = readdir(folder)))
        if (parse_pid(entry->d_name))
            tids[count++] = parse_pid(entry->d_name);
    if (folder)
        closedir(folder);
    return count;
}

/* ---------------------------------------------------------------- addresses */

/* The offset of the address in its mapping, and the mapping's name, which is valid until the next
 * call; -1 if the address is not mapped. */
static long offset_in_mapping(pid_t pid, unsigned long address, const char **name)
{
    static char *text;
    free(text);
    text = read_file(format("/proc/%d/maps", pid), 16 << 20);
    unsigned long start, end;
    char *rest = text;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (sscanf(line, "%lx-%lx", &start, &end) == 2 && address >= start && address < end) {
            *name = line + strcspn(line, "/[");
            return (long)(address - start);
        }
    return -1;
}

/* False after exec(), in which a process keeps its PID and start time, but not its mappings. */
static bool has_places(const struct process *process, const struct places *places)
{
    const char *name;
    return offset_in_mapping(process->pid, places->function, &name) == places->offset &&
           strcmp(name, places->name) == 0;
}

/* Finds dlopen(), or where the shim is loaded its attach_again().  NULL, or the reason why it is
 * unknown. */
static const char *find_function(const struct process *process, struct places *places)
{
    struct filter_page page;
    const char *why;
    if (!process->shim) {
        places->name = process->libc_name;
        places->function = elf_symbol(process->libc, "dlopen") + process->libc_bias;
        places->dlerror = elf_symbol(process->libc, "dlerror");
        if (places->dlerror)
            places->dlerror += process->libc_bias;
        return NULL;
    }
    if (process->shims > 1)
        return "two files of the shim are mapped in it: restart the program";
    int memory = page_open(process, &why);
    if (memory < 0)
        return why;
    uint64_t at = page_read(memory, process, &page, &why);
    close(memory);
    places->name = process->shim;
    places->function = process->shim_start + page.attach;
    return at ? NULL : why;
}

/* NULL, or the reason for a failure: for example the process has changed since process_open(). */
static const char *find_places(const struct process *process, struct places *places)
{
    const char *name, *why = find_function(process, places);
    if (why)
        return why;
    places->offset = offset_in_mapping(process->pid, places->function, &name);
    return places->offset >= 0 && strcmp(name, places->name) == 0 && !process_has_changed(process)
               ? NULL
               : another_program;
}

/* ---------------------------------------------------------------- a stopped thread */

/* Whether the thread is at a safe point.  waiting: the result of waiting_in() while it slept, where
 * it must still be.  NULL: it must be in CPython's own code, which neither malloc() nor the dynamic
 * linker calls. */
static bool is_safe(const struct process *process, struct stopped_thread *thread,
                    const char *waiting)
{
    struct user_regs_struct *now = &thread->registers.general;
    unsigned long number, stack, next;
    const char *name;
    if (!waiting)
        return maybe_outside_syscall(now) &&
               offset_in_mapping(process->pid, pc_of(now), &name) >= 0 &&
               strcmp(name, process->code_name) == 0 && !handles_signal(process->pid, thread->tid);
    if (sscanf(waiting, "%lu %*s %*s %*s %*s %*s %*s %lx %lx", &number, &stack, &next) != 3 ||
        !was_sleeping_in_syscall(now, number, stack, next))
        return false;
    thread->restarts_syscall = restarts_syscall(now, next);
    return true;
}

/* Whether the mapping of this name is a file's.  Reading or writing there waits for whoever serves
 * the file (FUSE), and kill -9 does not end that. */
static bool is_in_file(const char *name)
{
    return *name == '/';
}

/* Whether the stack has enough room for dlopen().  [stack] grows. */
static bool has_room(pid_t pid, unsigned long stack)
{
    const char *name;
    long room = offset_in_mapping(pid, stack, &name);
    return room >= 0 && !is_in_file(name) && (room >= 128 * 1024 || strcmp(name, "[stack]") == 0);
}

static const char *cure_of(const char *error)
{
    return strstr(error, "static TLS") ? ": libraries that it has loaded take all of that; start "
                                         "it with stap-python run CMD"
                                       : "";
}

/* The reason why the function returned NULL: the process's dlerror(), as far as it can be read. */
static const char *call_error(const struct process *process, struct stopped_thread *thread,
                              const struct places *places)
{
    static char text[512];
    unsigned long message = 0;
    const char *name;
    if (process->shim)
        return "it is still detached: try again";
    if (!places->dlerror || thread_call(thread, places->dlerror, "", &message) ||
        offset_in_mapping(process->pid, message, &name) < 0 || is_in_file(name))
        return "dlopen() failed in it";
    size_t size = 4096 - message % 4096, room = sizeof text - 1;
    size = size < room ? size : room;
    /* In two parts, as the page after the message's first page may not be mapped. */
    struct iovec ours = {text, room},
                 its[] = {{(void *)message, size}, {(void *)(message + size), room - size}};
    ssize_t got = process_vm_readv(thread->pid, &ours, 1, its, 2, 0);
    if (got <= 0)
        return "dlopen() failed in it";
    text[got] = '\0';
    return format("dlopen() failed in it: %s%s", text, cure_of(text));
}

/* Makes the call in the saved thread; NULL, or the reason for a failure. */
static const char *load_in(const struct process *process, struct stopped_thread *thread,
                           const struct places *places)
{
    unsigned long handle = 0;
    sigset_t all, old;
    /* Only SIGKILL may end this program during the call. */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    thread->called = process->shim ? "attaching again" : "dlopen()";
    const char *why =
        thread_call(thread, places->function, process->shim ? "" : process->load_path, &handle);
    if (!why && !handle)
        why = call_error(process, thread, places);
    if (!thread_restore(thread) && !why)
        why = format("cannot restore its thread: %s", strerror(errno));
    sigprocmask(SIG_SETMASK, &old, NULL);
    return why;
}

/* Traces and stops a thread.  False if it has ended, or with *why if it can't be traced. */
static bool stop_thread(pid_t pid, pid_t tid, int *status, const char **why)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        if (errno == EPERM)
            *why = "the kernel does not let you trace it (a container without CAP_SYS_PTRACE, "
                   "SELinux, or another tracer)";
        else if (errno != ESRCH)
            *why = strerror(errno);
        return false;
    }
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 &&
        wait_for_stop(tid, STOP_MS, status) == STOP_SEEN)
        return true;
    if (thread_state(pid, tid))
        die(FAILED, "attach: %d: cannot stop its thread %d", pid, tid);
    return false;
}

/* Makes the call in this thread if it is at a safe point.  *done: no other thread need be tried, as
 * the call was made or refused, or the thread can't be traced.  NULL, or the reason for a failure.
 * waiting: for is_safe(). */
static const char *try_thread(const struct process *process, const struct places *places, pid_t tid,
                              const char *waiting, bool *done)
{
    static struct stopped_thread thread;
    const char *why = NULL;
    int status;
    long signal = 0;
    thread.pid = process->pid;
    thread.tid = tid;
    if (!takes_fault(process->pid, tid))
        return NULL;
    if (!stop_thread(process->pid, tid, &status, &why)) {
        *done = why != NULL;
        return why;
    }
    if (status >> 16 != PTRACE_EVENT_STOP) {
        signal = WSTOPSIG(status);
    } else if (WSTOPSIG(status) == SIGTRAP && process_start(process->pid) == process->start &&
               has_places(process, places) && (process->shim || !root_refusal(process)) &&
               thread_save(&thread) && is_safe(process, &thread, waiting) &&
               has_room(process->pid, sp_of(&thread.registers.general))) {
        *done = true;
        why = has_shadow_stack(tid) ? shadow_stack_refusal : seccomp_filter_refusal(tid);
        why = why ? why : load_in(process, &thread, places);
    }
    ptrace(PTRACE_DETACH, tid, NULL, (void *)signal);
    return why;
}

/* ---------------------------------------------------------------- which thread */

/* Tries running threads for REST_MS, then those that slept all the time: to stop a sleeping thread
 * interrupts its system call, which is restarted.  *done and result: as try_thread()'s. */
static const char *try_threads(const struct process *process, const struct places *places,
                               bool *done)
{
    enum { THREADS = 64 };
    pid_t pid = process->pid, tids[THREADS];
    char *before[THREADS];
    const char *why = NULL;
    size_t count = threads_of(pid, tids, THREADS);
    for (size_t i = 0; i < count; i++)
        before[i] = thread_state(pid, tids[i]) == 'S' ? waiting_in(pid, tids[i]) : "";
    for (int i = 0; i < REST_MS && !*done; i++) {
        for (size_t j = 0; j < count && !*done; j++)
            if (is_running(pid, tids[j]))
                why = try_thread(process, places, tids[j], NULL, done);
        sleep_ms(1);
    }
    for (size_t i = 0; i < count && !*done; i++)
        if (*before[i] && strcmp(before[i], waiting_in(pid, tids[i])) == 0 &&
            thread_state(pid, tids[i]) == 'S')
            why = try_thread(process, places, tids[i], before[i], done);
    return why;
}

const char *attach_by_ptrace(const struct process *process)
{
    struct places places = {0};
    const char *why = find_places(process, &places);
    bool done = false;
    if (why)
        return why;
    for (long long end = monotonic_ms() + PATIENCE_MS; !done && monotonic_ms() < end;) {
        if (process_start(process->pid) != process->start ||
            !thread_state(process->pid, process->pid))
            return "it has ended";
        if (!has_places(process, &places))
            return another_program;
        if (!process->shim && (why = root_refusal(process)))
            return why;
        why = try_threads(process, &places, &done);
    }
    return done ? why
                : format("no thread reached a safe point within %d s: try again",
                         PATIENCE_MS / 1000);
}

const char *refused_to_thread(pid_t pid, pid_t tid)
{
    int status;
    const char *why = NULL;
    if (!stop_thread(pid, tid, &status, &why))
        return why;
    why = seccomp_filter_refusal(tid);
    ptrace(PTRACE_DETACH, tid, NULL, NULL);
    return why;
}

#else

const char *refused_to_thread(pid_t pid, pid_t tid)
{
    (void)pid, (void)tid;
    return NULL;
}

const char *attach_by_ptrace(const struct process *process)
{
    if (process_has_remote_exec(process) && !process_shares_our_mounts(process))
        return format("it has its own mounts or root: run this there (nsenter -t %d -m)",
                      process->pid);
    if (process_has_remote_exec(process) && !can_run_its_python(process))
        return "users other than root can change its interpreter: run this as its user";
    if (process_has_remote_exec(process))
        return "its main thread runs no Python code, and on this architecture only that can load "
               "the shim: start it with stap-python run";
    return format("on this architecture attach works from CPython 3.14 on, and this is 3.%d: start "
                  "it with stap-python run",
                  process->python.file.minor);
}

#endif
