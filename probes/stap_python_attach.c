/*
 * `stap-python attach`: loads the shim into a Python that runs.  From 3.14 on by sys.remote_exec();
 * before, and where its main thread waits for something, by a call of dlopen() in one of its
 * threads, with ptrace().
 *
 * The thread is stopped for the milliseconds of that call only, the others go on.  It must be at a
 * point where dlopen() can't meet a lock that it holds itself (malloc's, the dynamic linker's): in
 * CPython's own code and in no signal handler, or asleep in a system call for a while.  The call
 * returns to address 0, the fault comes to us, and the thread goes on as if nothing had been.  The
 * shim's own thread does the rest.  PTRACE_SEIZE: if we are killed while no call is made, the
 * kernel lets go of the thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stap_python.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: stap-python attach PID\n"
    "\n"
    "Loads the shim into a running CPython 3.6 or later, which has the markers from then on. The\n"
    "program goes on, also where that can't be done. You must be root or the program's user, and\n"
    "allowed to trace it.\n"
    "\n"
    "It says \"active\" where tracers see the markers from now on, and \"loaded\" where they do as "
    "soon\n"
    "as Python code runs there.\n";

enum {
    PATIENCE_MS = 5000, /* for a thread to come to a safe point */
    REMOTE_MS = 2000,   /* for the main thread to run Python code */
    ACTIVE_MS = 1000,   /* for any thread to do so */
    REST_MS = 25,       /* a thread that stays in a system call for so long rests there */
};

/* For dlopen() to return, until we say so; a test has less. */
#ifndef CALL_MS
#define CALL_MS 60000
#endif

/* ---------------------------------------------------------------- what forbids it */

static char *proc_text(pid_t pid, const char *name)
{
    char *text = contents(rooted(format("/proc/%d/%s", pid, name)), 65536);
    return text ? text : "";
}

static bool is_tracer_by_right(void)
{
    enum { CAP_SYS_PTRACE = 19 };
    char *capabilities = field_of(proc_text(getpid(), "status"), "CapEff");
    return capabilities && strtoull(capabilities, NULL, 16) >> CAP_SYS_PTRACE & 1;
}

static const char *refused_by_user(const char *status)
{
    unsigned real, effective, saved;
    char *ids = field_of(status, "Uid");
    if (!ids || sscanf(ids, "%u %u %u", &real, &effective, &saved) != 3)
        return "its user is not known";
    if (real != geteuid() || effective != geteuid() || saved != geteuid())
        return format("it is of the user with the id %u: be that one, or root", effective);
    return NULL;
}

static const char *refused_by_yama(void)
{
    char *text = contents(rooted("/proc/sys/kernel/yama/ptrace_scope"), 16);
    int scope = text ? atoi(text) : 0;
    if (scope >= 3)
        return "Yama forbids all tracing until the next boot (kernel.yama.ptrace_scope is 3)";
    if (scope >= 1 && !is_tracer_by_right())
        return format("Yama forbids it to all but root (kernel.yama.ptrace_scope is %d): use sudo",
                      scope);
    return NULL;
}

/* Whether a path leads it to the same file as us. */
static bool has_our_view(const struct process *process)
{
    struct stat here, there;
    char ours[64] = "", its[64] = "";
    return stat("/", &here) == 0 && stat(format("/proc/%d/root", process->pid), &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino &&
           readlink("/proc/self/ns/mnt", ours, sizeof ours - 1) > 0 &&
           readlink(format("/proc/%d/ns/mnt", process->pid), its, sizeof its - 1) > 0 &&
           strcmp(ours, its) == 0;
}

/* Who may say what is loaded into it, besides root: its user, where it has no more rights than that
 * one, and the root of its user namespace.  Their number. */
static size_t users_of(const struct process *process, uid_t *users)
{
    const char *status = proc_text(process->pid, "status"), *ids = field_of(status, "Uid"),
               *rights = field_of(status, "CapPrm");
    char ours[64] = "", its[64] = "";
    unsigned real, effective, saved, root;
    size_t count = 0;
    users[count++] = 0;
    if (ids && rights && sscanf(ids, "%u %u %u", &real, &effective, &saved) == 3 &&
        real == effective && real == saved && strtoull(rights, NULL, 16) == 0)
        users[count++] = real;
    if (readlink("/proc/self/ns/user", ours, sizeof ours - 1) > 0 &&
        readlink(format("/proc/%d/ns/user", process->pid), its, sizeof its - 1) > 0 &&
        strcmp(ours, its) != 0 && sscanf(proc_text(process->pid, "uid_map"), " 0 %u", &root) == 1)
        users[count++] = root;
    return count;
}

/* It has other eyes than ours: in its root, our path must lead to a shim too, and to none that
 * others have put there. */
static const char *refused_by_root(const struct process *process)
{
    struct elf_file elf;
    uid_t users[3];
    const char *why;
    char *root = format("/proc/%d/root", process->pid), *file;
    if (has_our_view(process)) {
        if (elf_read(shim_file(), &elf, &why) && elf.entries)
            return NULL;
        return format("the shim is not there: %s: %s", shim_file(),
                      source_tree ? "run make" : "install systemtap-cpython anew");
    }
    const char *hold = hold_in_root(root, shim_file(), users, users_of(process, users), &file);
    struct stat status;
    if (hold && lstat(file, &status) == 0)
        return format("it is in a container or another root, whose shim others may change: %s",
                      hold);
    if (!hold && elf_read(file, &elf, &why) && elf.entries)
        return NULL;
    return format(
        "it is in a container or another root, without the shim: copy %s there, to the same path",
        shim_file());
}

static bool has_word(const char *text, size_t size, const char *word)
{
    for (const char *at = text; at < text + size; at += strlen(at) + 1)
        if (strncmp(at, word, strlen(word)) == 0)
            return true;
    return false;
}

/* Words that end in NUL, as in /proc/PID/environ. */
static bool has_word_in(pid_t pid, const char *name, const char *word)
{
    enum { LIMIT = 1 << 20 };
    char *text = calloc(1, LIMIT + 2);
    int fd = open(rooted(format("/proc/%d/%s", pid, name)), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t length = 0;
    ssize_t got;
    while (text && fd >= 0 && length < LIMIT && (got = read(fd, text + length, LIMIT - length)) > 0)
        length += (size_t)got;
    if (fd >= 0)
        close(fd);
    return text && has_word(text, length, word);
}

/* It is gone, or about to: it has no memory any more. */
static bool has_ended(const struct process *process)
{
    char program[2];
    return process_start(process->pid) != process->start ||
           readlink(rooted(format("/proc/%d/exe", process->pid)), program, sizeof program) < 0;
}

/* Whether the process's own program is a Python that has it. */
static bool has_remote_exec(const struct process *process)
{
    struct stat ours, its;
    const char *name = strrchr(process->python.path, '/');
    return process->python.file.minor >= 14 && name && strncmp(name, "/python3", 8) == 0 &&
           stat(process->python.path, &ours) == 0 &&
           stat(format("/proc/%d/exe", process->pid), &its) == 0 && ours.st_dev == its.st_dev &&
           ours.st_ino == its.st_ino;
}

static const char off[] = "it was started with PYTHON_STAP=off";

static bool is_off(const struct process *process)
{
    return has_word_in(process->pid, "environ", "PYTHON_STAP=off");
}

/* NULL: nothing forbids it, as far as can be told without trying. */
static const char *refusal(const struct process *process)
{
    const char *status = proc_text(process->pid, "status"), *why;
    char *state = field_of(status, "State"), *tracer = field_of(status, "TracerPid"),
         *seccomp = field_of(status, "Seccomp"), *threads = field_of(status, "x86_Thread_features");
    if ((why = unfit(&process->python.file)))
        return format("the shim does nothing in it: %s", why);
    if ((why = refused_by_yama()))
        return why;
    if (tracer && atoi(tracer) > 0)
        return format("the process %s traces it already (a debugger, strace?)", tracer);
    if (state && strchr("Tt", *state))
        return format("it is stopped: kill -CONT %d lets it go on", process->pid);
    if (state && strchr("ZX", *state))
        return "it has ended";
    if (seccomp && atoi(seccomp) > 0)
        return "seccomp filters its system calls, and might kill it: start it with stap-python run";
    if (threads && strstr(threads, "shstk"))
        return "it has a shadow stack, which forbids such calls: start it with stap-python run";
    if (is_off(process))
        return off;
    if (has_remote_exec(process) &&
        (has_word_in(process->pid, "environ", "PYTHON_DISABLE_REMOTE_DEBUG=") ||
         has_word_in(process->pid, "cmdline", "disable-remote-debug") ||
         has_word_in(process->pid, "cmdline", "-Xdisable-remote-debug")))
        return "it was started with remote debugging off (PYTHON_DISABLE_REMOTE_DEBUG, -X "
               "disable-remote-debug)";
    if (!process->libc)
        return "it has no dlopen(): it is static, or has another C library than glibc";
    return refused_by_root(process);
}

/* ---------------------------------------------------------------- sys.remote_exec */

static bool is_loaded(const struct process *process)
{
    struct process now;
    const char *why;
    return process_open(process->pid, &now, &why) && now.start == process->start && now.shim;
}

static const char remote_exec[] = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])";
/* Nothing that the program doesn't have already is imported but the shim.  Once is enough, but
 * twice does no harm. */
static const char loading[] =
    "def load():\n"
    "    import _frozen_importlib, _imp, posix\n"
    "    try:\n"
    "        posix.unlink(%s)\n"
    "    except OSError:\n"
    "        pass\n"
    "    _imp.create_dynamic(_frozen_importlib.ModuleSpec('python_stap', None, origin=%s))\n"
    "load()\n"
    "del load\n";

/* Whether we can start that Python too; root never does one that others can change. It must see our
 * script: not with systemd's PrivateTmp. */
static bool may_start_its_python(const struct process *process)
{
    if (!has_our_view(process))
        return false;
    return (geteuid() != 0 && !refused_by_user(proc_text(process->pid, "status"))) ||
           !hold_of_python(process->python.path);
}

static char *python_string(const char *text)
{
    char *result = malloc(2 * strlen(text) + 3), *end = result;
    if (!result)
        abort();
    *end++ = '\'';
    for (; *text; text++) {
        if (strchr("\\'", *text))
            *end++ = '\\';
        *end++ = *text;
    }
    strcpy(end, "'");
    return result;
}

/* The script that the program runs and removes; NULL: it can't be made. */
static char *make_script(const struct process *process)
{
    char *path = strdup("/tmp/stap-python-XXXXXX.py");
    const char *status = proc_text(process->pid, "status"), *uids = field_of(status, "Uid"),
               *gids = field_of(status, "Gid");
    unsigned uid, gid;
    int fd = mkstemps(path, strlen(".py"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    char *text = format(loading, python_string(path), python_string(shim_file()));
#pragma GCC diagnostic pop
    ssize_t length = (ssize_t)strlen(text);
    if (fd < 0)
        return NULL;
    /* What cleans /tmp leaves a file with that bit alone: the name must not become another's. */
    bool done = uids && gids && sscanf(uids, "%*u %u", &uid) == 1 &&
                sscanf(gids, "%*u %u", &gid) == 1 &&
                (geteuid() != 0 || fchown(fd, uid, gid) == 0) && fchmod(fd, S_ISVTX | 0600) == 0 &&
                write(fd, text, (size_t)length) == length;
    close(fd);
    if (!done)
        unlink(path);
    return done ? path : NULL;
}

/* Has the main thread told to load it, when it next runs Python code, by that script; NULL or why
 * that can't be. */
static const char *ask_by_remote_exec(const struct process *process, char **path)
{
    int status;
    char *script = make_script(process), *pid = format("%d", process->pid);
    if (!script)
        return format("no file can be made in /tmp: %s", strerror(errno));
    const char *const command[] = {
        process->python.path, "-IS", "-c", remote_exec, pid, script, NULL};
    if (process_start(process->pid) != process->start) {
        unlink(script);
        return "it has ended";
    }
    char *answer = output_of(command, 20, &status);
    *path = script;
    if (status == 0)
        return NULL;
    unlink(script);
    /* The last line of a traceback says what it is. */
    size_t end = strlen(answer);
    while (end && answer[end - 1] == '\n')
        answer[--end] = '\0';
    char *last = strrchr(answer, '\n');
    return format("sys.remote_exec() fails: %s", last ? last + 1 : answer);
}

static bool comes_up(const struct process *process, long ms)
{
    for (long end = now_ms() + ms; !is_loaded(process); sleep_ms(10))
        if (now_ms() > end || process_start(process->pid) != process->start)
            return false;
    return true;
}

/* ---------------------------------------------------------------- a call in a thread */

#ifdef __x86_64__

enum { RED_ZONE = 128, XSTATE_MAX = 65536, CS_64 = 0x33 };

/* The addresses of the process that matter. */
struct places {
    unsigned long dlopen, dlerror;
    long offset; /* of dlopen in its mapping: with the C library's name, what an exec changes */
};

struct thread {
    pid_t tid;
    struct user_regs_struct registers; /* with which it goes on */
    char xstate[XSTATE_MAX];
    size_t xstate_size;
    uint64_t blocked; /* signals, as the kernel has them */
};

enum waited { STOPPED, LATE, GONE };

/* Waits for the thread's next stop. */
static enum waited wait_for_stop(pid_t tid, long ms, int *status)
{
    long end = now_ms() + ms;
    for (;;) {
        pid_t got = waitpid(tid, status, __WALL | WNOHANG);
        if (got)
            return got == tid && WIFSTOPPED(*status) ? STOPPED : GONE;
        if (now_ms() > end)
            return LATE;
        sleep_ms(1);
    }
}

/* What a sleeping thread waits in, or "running": /proc/PID/task/TID/syscall. */
static char *waiting_in(pid_t pid, pid_t tid)
{
    char *text = contents(format("/proc/%d/task/%d/syscall", pid, tid), 256);
    return text ? text : strdup("");
}

static bool is_running(pid_t pid, pid_t tid)
{
    char *waiting = waiting_in(pid, tid);
    bool is = strncmp(waiting, "running", 7) == 0;
    free(waiting);
    return is;
}

/* R, S and so on; 0: it is gone. */
static char state_of(pid_t pid, pid_t tid)
{
    char *text = contents(format("/proc/%d/task/%d/stat", pid, tid), 4096);
    char *end = text ? strrchr(text, ')') : NULL;
    char state = end && end[1] == ' ' && !strchr("ZXx", end[2]) ? end[2] : '\0';
    free(text);
    return state;
}

/* The bits of a line of /proc/PID/task/TID/status. */
static unsigned long long bits_of(const char *status, const char *name)
{
    char *text = field_of(status, name);
    return text ? strtoull(text, NULL, 16) : ~0ULL;
}

/* A fault in a thread that blocks or ignores SIGSEGV would take the program's handler away. */
static bool takes_fault(pid_t pid, pid_t tid)
{
    char *status = contents(format("/proc/%d/task/%d/status", pid, tid), 65536);
    return status &&
           !((bits_of(status, "SigBlk") | bits_of(status, "SigIgn")) >> (SIGSEGV - 1) & 1);
}

/* A signal that has a handler and is blocked: it may be that handler which runs, in the middle of
 * anything. */
static bool handles_signal(pid_t pid, pid_t tid)
{
    char *status = contents(format("/proc/%d/task/%d/status", pid, tid), 65536);
    return !status || (bits_of(status, "SigBlk") & bits_of(status, "SigCgt"));
}

/* How far it is from the address to the start of its mapping, and the file of that, valid until the
 * next call; -1: nowhere. */
static long offset_in_mapping(pid_t pid, unsigned long address, const char **name)
{
    static char *text;
    free(text);
    text = contents(format("/proc/%d/maps", pid), 16 << 20);
    unsigned long start, end;
    char *rest = text;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (sscanf(line, "%lx-%lx", &start, &end) == 2 && address >= start && address < end) {
            *name = line + strcspn(line, "/[");
            return (long)(address - start);
        }
    return -1;
}

/* An exec leaves a process its PID and start time, and nothing at its place. */
static bool has_places(const struct process *process, const struct places *places)
{
    const char *name;
    return offset_in_mapping(process->pid, places->dlopen, &name) == places->offset &&
           strcmp(name, process->libc_name) == 0;
}

/* Whether a stopped thread is at a safe point: where it has waited for a while, by what
 * waiting_in() said; or in CPython's own code, which neither malloc() nor the dynamic linker calls.
 */
static bool is_safe(const struct process *process, const struct thread *thread, const char *waiting)
{
    const struct user_regs_struct *now = &thread->registers;
    unsigned long number, stack, next;
    const char *name;
    if (now->cs != CS_64)
        return false;
    if (!waiting)
        return (long)now->orig_rax < 0 && offset_in_mapping(process->pid, now->rip, &name) >= 0 &&
               strcmp(name, process->code_name) == 0 && !handles_signal(process->pid, thread->tid);
    return sscanf(waiting, "%lu %*s %*s %*s %*s %*s %*s %lx %lx", &number, &stack, &next) == 3 &&
           now->orig_rax == number && now->rsp == stack && now->rip == next;
}

/* dlopen() needs some room on the stack. */
static bool has_room(pid_t pid, unsigned long stack)
{
    const char *name;
    long room = offset_in_mapping(pid, stack, &name);
    return room >= 128 * 1024 || (room >= 0 && strcmp(name, "[stack]") == 0);
}

static bool save(struct thread *thread)
{
    struct iovec xstate = {thread->xstate, sizeof thread->xstate};
    bool done = ptrace(PTRACE_GETREGS, thread->tid, NULL, &thread->registers) == 0 &&
                ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_X86_XSTATE, &xstate) == 0;
    thread->xstate_size = xstate.iov_len;
    return done && ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof thread->blocked,
                          &thread->blocked) == 0;
}

static bool restore(struct thread *thread)
{
    struct iovec xstate = {thread->xstate, thread->xstate_size};
    return ptrace(PTRACE_SETREGSET, thread->tid, (void *)NT_X86_XSTATE, &xstate) == 0 &&
           ptrace(PTRACE_SETREGS, thread->tid, NULL, &thread->registers) == 0 &&
           ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof thread->blocked,
                  &thread->blocked) == 0;
}

/* No handler of the program's is to run within dlopen(), nor to leave it. */
static bool block_signals(const struct thread *thread)
{
    uint64_t all = ~(1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1) | 1ULL << (SIGILL - 1) |
                     1ULL << (SIGFPE - 1));
    return ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof all, &all) == 0;
}

static bool write_to(pid_t pid, unsigned long address, const void *bytes, size_t size)
{
    struct iovec ours = {(void *)(uintptr_t)bytes, size}, its = {(void *)address, size};
    return process_vm_writev(pid, &ours, 1, &its, 1, 0) == (ssize_t)size;
}

/* Calls a function in the stopped thread, the first argument a string, the second RTLD_NOW.  The
 * thread is stopped afterwards, its registers any; NULL or what went wrong. */
static const char *call(pid_t pid, struct thread *thread, unsigned long function, const char *text,
                        unsigned long *result)
{
    struct user_regs_struct now = thread->registers;
    static const unsigned long nowhere;
    int status;
    now.rsp = (now.rsp - RED_ZONE - strlen(text) - 1) & ~63UL;
    now.rdi = now.rsp;
    now.rsi = 2;
    now.rax = 0;
    now.rsp -= sizeof nowhere; /* as behind a call instruction */
    now.rip = function;
    now.eflags &= ~0x400UL; /* the direction of string instructions */
    now.orig_rax = -1UL;    /* no system call to go on with */
    if (!block_signals(thread) || !write_to(pid, now.rdi, text, strlen(text) + 1) ||
        !write_to(pid, now.rsp, &nowhere, sizeof nowhere) ||
        ptrace(PTRACE_SETREGS, thread->tid, NULL, &now) != 0)
        return format("its thread can't be changed: %s", strerror(errno));
    long signal = 0;
    while (ptrace(PTRACE_CONT, thread->tid, NULL, (void *)signal) == 0) {
        /* Without us its return would be its end. */
        enum waited waited = wait_for_stop(thread->tid, CALL_MS, &status);
        if (waited == LATE)
            fprintf(stderr,
                    "stap-python: attach: %d: dlopen() takes long in it: waiting for that, since "
                    "the program would die without us\n",
                    pid);
        while (waited == LATE)
            waited = wait_for_stop(thread->tid, CALL_MS, &status);
        if (waited == GONE)
            break;
        signal = status >> 16 ? 0 : WSTOPSIG(status);
        if (signal != SIGSEGV && signal != SIGBUS)
            continue;
        if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &now) == 0 && now.rip == 0) {
            *result = now.rax;
            return NULL;
        }
        return "dlopen() failed in it with a fault";
    }
    return "it ended meanwhile";
}

static const char *load_in(pid_t pid, struct thread *thread, const struct places *places)
{
    unsigned long handle = 0, message = 0;
    char text[512] = "";
    const char *why = call(pid, thread, places->dlopen, shim_file(), &handle);
    if (!why && !handle) {
        why = "dlopen() refuses it there";
        if (places->dlerror && !call(pid, thread, places->dlerror, "", &message) && message) {
            /* What a page's end cuts off is not missed. */
            size_t size =
                4096 - message % 4096 < sizeof text ? 4096 - message % 4096 : sizeof text - 1;
            struct iovec ours = {text, size < sizeof text ? size : sizeof text - 1},
                         its = {(void *)message, ours.iov_len};
            if (process_vm_readv(pid, &ours, 1, &its, 1, 0) > 0)
                why = format("dlopen() refuses it there: %s", text);
        }
    }
    if (!restore(thread) && !why)
        why = format("its thread can't be restored: %s", strerror(errno));
    return why;
}

/* Tries one thread: *done is set where that was at a safe point.  No signal may end us in between.
 */
static const char *try_thread(const struct process *process, const struct places *places, pid_t tid,
                              const char *waiting, bool *done)
{
    static struct thread thread;
    const char *why = NULL;
    sigset_t all, old;
    int status;
    long signal = 0;
    thread.tid = tid;
    *done = false;
    if (!takes_fault(process->pid, tid))
        return NULL;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        if (errno == ESRCH)
            return NULL;
        *done = true;
        return errno == EPERM ? "the kernel forbids to trace it (a container without "
                                "CAP_SYS_PTRACE, SELinux, or "
                                "another tracer)"
                              : strerror(errno);
    }
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 ||
        wait_for_stop(tid, 2000, &status) != STOPPED) {
        if (!state_of(process->pid, tid))
            return NULL;
        die(FAILED, "attach: %d: its thread %d can't be stopped", process->pid, tid);
    }
    if (status >> 16 != PTRACE_EVENT_STOP)
        signal = WSTOPSIG(status);
    else if (WSTOPSIG(status) == SIGTRAP && process_start(process->pid) == process->start &&
             has_places(process, places) && !refused_by_root(process) && save(&thread) &&
             is_safe(process, &thread, waiting) && has_room(process->pid, thread.registers.rsp)) {
        *done = true;
        /* Nothing but SIGKILL may end us in between. */
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, &old);
        why = load_in(process->pid, &thread, places);
        sigprocmask(SIG_SETMASK, &old, NULL);
    }
    ptrace(PTRACE_DETACH, tid, NULL, (void *)signal);
    return why;
}

static size_t threads_of(pid_t pid, pid_t *tids, size_t most)
{
    size_t count = 0;
    struct dirent *entry;
    DIR *folder = opendir(format("/proc/%d/task", pid));
    while (folder && count < most && (entry = readdir(folder)))
        if (pid_of(entry->d_name))
            tids[count++] = pid_of(entry->d_name);
    if (folder)
        closedir(folder);
    return count;
}

static const char *attach_by_ptrace(const struct process *process)
{
    enum { THREADS = 64 };
    static const char another[] = "it has begun to run another program: try it again";
    pid_t tids[THREADS];
    char *before[THREADS];
    struct places places = {0};
    const char *why = NULL;
    bool done = false;
    places.dlopen = elf_symbol(process->libc, "dlopen") + process->libc_bias;
    places.dlerror = elf_symbol(process->libc, "dlerror");
    if (places.dlerror)
        places.dlerror += process->libc_bias;
    /* The process may have changed since it was opened. */
    struct process now;
    const char *name;
    places.offset = offset_in_mapping(process->pid, places.dlopen, &name);
    if (places.offset < 0 || strcmp(name, process->libc_name) != 0 ||
        !process_open(process->pid, &now, &why) || now.libc_bias != process->libc_bias)
        return another;
    why = NULL;
    for (long end = now_ms() + PATIENCE_MS; !done && now_ms() < end;) {
        size_t count = threads_of(process->pid, tids, THREADS);
        if (process_start(process->pid) != process->start || !state_of(process->pid, process->pid))
            return "it has ended";
        if (!has_places(process, &places))
            return another;
        if ((why = refused_by_root(process)))
            return why;
        for (size_t i = 0; i < count; i++)
            before[i] =
                state_of(process->pid, tids[i]) == 'S' ? waiting_in(process->pid, tids[i]) : "";
        /* Those that run Python code first: the calls of the others are interrupted, and begun
         * anew. */
        for (int i = 0; i < REST_MS && !done; i++) {
            for (size_t j = 0; j < count && !done; j++)
                if (is_running(process->pid, tids[j]))
                    why = try_thread(process, &places, tids[j], NULL, &done);
            sleep_ms(1);
        }
        for (size_t i = 0; i < count && !done; i++)
            if (*before[i] && strcmp(before[i], waiting_in(process->pid, tids[i])) == 0 &&
                state_of(process->pid, tids[i]) == 'S')
                why = try_thread(process, &places, tids[i], before[i], &done);
    }
    if (!done)
        return format("none of its threads came to a safe point within %d s: try it again",
                      PATIENCE_MS / 1000);
    return why;
}

#else

static const char *attach_by_ptrace(const struct process *process)
{
    if (has_remote_exec(process) && !may_start_its_python(process))
        return has_our_view(process) ? "others than root can change its interpreter, which root "
                                       "must not start: run this as its user"
                                     : "it has other mounts or another root than this: run this "
                                       "there (nsenter -t PID -m)";
    return format("attaching to CPython 3.%d is made for x86-64 only: use a debugger, or "
                  "sys.remote_exec() from "
                  "3.14 on",
                  process->python.file.minor);
}

#endif

/* ---------------------------------------------------------------- */

static void say_what_is(const char *since, const struct process *process, const char *shim)
{
    bool active = process_is_active(process, ACTIVE_MS);
    if (!active && is_off(process))
        die(FAILED, "attach: %d: the shim is loaded and does nothing: %s", process->pid, off);
    printf("%d: %s%s: %s%s\n", process->pid, since, active ? "active" : "loaded", printable(shim),
           active ? "" : "; it becomes active when Python code next runs there");
}

int attach_main(char **arguments)
{
    struct process process;
    const char *why;
    help_if_asked(arguments, usage);
    const char *word = arguments[0];
    if (!word || arguments[1] || !pid_of(word))
        die(USAGE, "attach: one PID (see stap-python attach --help)");
    pid_t pid = pid_of(word);
    /* Its maps would say less. */
    if (process_start(pid) && !is_tracer_by_right() &&
        (why = refused_by_user(proc_text(pid, "status"))))
        die(FAILED, "attach: %d: %s", pid, why);
    if (!process_open(pid, &process, &why))
        die(FAILED, "attach: %d: %s", pid, why);
    if (process.shim && !unfit(&process.python.file)) {
        say_what_is("already ", &process, process.shim);
        return 0;
    }
    if ((why = refusal(&process)))
        die(FAILED, "attach: %d: %s", pid, has_ended(&process) ? "it has ended" : why);
    bool asked = has_remote_exec(&process) && may_start_its_python(&process);
    char *script = NULL;
    if (asked && (why = ask_by_remote_exec(&process, &script)))
        die(FAILED, "attach: %d: %s", pid, why);
    /* A main thread that waits for something may wait for long. */
    why = asked && comes_up(&process, REMOTE_MS) ? NULL : attach_by_ptrace(&process);
    if (!why && !is_loaded(&process))
        why = "the shim did not come up in it";
    bool ended = has_ended(&process);
    /* Else its main thread still wants the script, and the name must not become another's. */
    if (why && script && ended)
        unlink(script);
    if (why && ended)
        why = "it has ended";
    else if (why && script && exists(script))
        why = format("%s; its main thread will load it when it next runs Python code", why);
    if (why)
        die(FAILED, "attach: %d: %s", pid, why);
    say_what_is("", &process, shim_file());
    return 0;
}
