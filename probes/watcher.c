/*
 * The watcher thread.  Set up by the loader, once per Py_Initialize().
 *
 * The thread asks the interpreters to arm, and arms none itself (arm_ask()): it is joined before
 * os.fork() (3.7 and later), which may hold locks that the program's code wants; so none of that
 * runs here.  From 3.12 on it never has the GIL; before that, while it asks.  When the interpreter
 * ends it sleeps, or is joined.  So it never meets an interpreter that is going away.
 *
 * A program may leave its threads few system calls (seccomp).  While nobody probes the thread makes
 * one alone, futex(), which all threads of the C library need; but the C library ends the program
 * where that is refused, so the thread makes it itself, and ends then.  Nor does the program's end
 * need one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "watcher.h"

#include "arm.h"
#include "daemons.h"
#include "debug.h"
#include "frame.h"
#include "thread_states.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK /* glibc before 2.26; Linux 4.14 */
#define MADV_WIPEONFORK 18
#endif

enum { PERIOD_MS = 50, PERIODS_UNTIL_LOOK = 20, STACK_SIZE = 512 * 1024 };
/* A tracer raises its semaphores one after another, each for both of the marker's sites, within a
 * millisecond. */
enum { REST_MS = 2, RESTS = 10 };
enum { FORK_WAIT_MS = 100 };

/* One watcher thread.  A fork may come while another thread is ending one, so each has its own. */
struct watcher {
    pthread_t thread;
    pid_t id;             /* the kernel's, which the thread sets first */
    void (*attach)(void); /* what it has called first, on a thread of the program's; or NULL */
    atomic_uint state;    /* the bits below */
};
enum {
    STOPPING = 1,
    AWAKE = 2,     /* it may be looking at CPython's memory */
    TAKES_GIL = 4, /* it has the GIL or waits for it */
    IDLE = 8,      /* the interpreter has ended */
};

/* Changed with the GIL held. */
static atomic_bool set_up; /* atexit has our function: the interpreter lives */
static struct watcher *_Atomic running;

/* The thread of watcher_attach(), until start() takes it for the running one. */
static struct watcher *_Atomic attaching;

/* The process was forked by a thread other than the main one.  When that thread's function returns
 * the process ends, unless another thread lives: ours must not be it. */
static bool forked_by_thread;

/* What all interpreters were last asked to bring their hooks to; by whatever watcher. */
static unsigned settled;

/* Where Linux has another futex() alone, for 64 bits of time on 32-bit machines, that one isn't
 * asked. */
#ifndef SYS_futex
#define SYS_futex (-1)
#endif

/* For so long, or until the state is another one.  False: the system call is refused. */
static bool wait_ms(struct watcher *self, unsigned state, long ms)
{
    struct {
        long seconds, nanoseconds; /* the kernel's struct timespec */
    } time = {0, ms * 1000000L};
    return syscall(SYS_futex, &self->state, FUTEX_WAIT_PRIVATE, state, &time, NULL, 0) == 0 ||
           errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR;
}

/* False: it is to stop, or can't sleep. */
static bool sleep_ms(struct watcher *self, long ms)
{
    atomic_fetch_and(&self->state, ~(unsigned)(AWAKE | TAKES_GIL));
    if (!wait_ms(self, 0, ms))
        return false;
    unsigned asleep = 0;
    return atomic_compare_exchange_strong(&self->state, &asleep, AWAKE);
}

/* What is wanted, by tracers that have come, or gone, altogether.  False: it is to end. */
static bool wanted_at_rest(struct watcher *self, unsigned *wanted)
{
    *wanted = arm_wanted();
    bool rests = *wanted == settled;
    for (int i = 0; i < RESTS && !rests; i++) {
        unsigned before = *wanted, raised = arm_raised();
        if (!sleep_ms(self, REST_MS))
            return false;
        *wanted = arm_wanted();
        rests = *wanted == before && arm_raised() == raised;
    }
    return true;
}

/* ---------------------------------------------------------------- the main thread's end */

/* The main thread, where that is known. */
static pthread_t main_thread;
static bool main_known;

static void know_main_thread(void)
{
    if (gettid() == getpid()) {
        main_thread = pthread_self();
        main_known = true;
    }
}

/* The main thread may end alone, by pthread_exit(); then the process ends with the last of the
 * others, which must not be ours. */
static bool is_last(void)
{
    clockid_t clock;
    struct stat threads;
    if (!main_known || pthread_getcpuclockid(main_thread, &clock) != ESRCH) /* no system call */
        return false;
    /* "." and "..", the main thread and this one */
    return stat("/proc/self/task", &threads) == 0 && threads.st_nlink <= 4;
}

/* ---------------------------------------------------------------- filters (seccomp) */

/* A number that is greater where a thread has more of them; -1 where /proc doesn't tell. */
static long filters_in(const char *status_path)
{
    char text[4096];
    int fd = open(status_path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[size < 0 ? 0 : size] = '\0';
    const char *mode = strstr(text, "\nSeccomp:"), *count = strstr(text, "\nSeccomp_filters:");
    if (!mode)
        return -1;
    return 1000 * (atol(mode + sizeof "\nSeccomp:") != 0) +
           (count ? atol(count + sizeof "\nSeccomp_filters:") : 0); /* Linux 5.9 */
}

/* Whether a thread of the program has a filter that this one hasn't.  Who wants the GIL makes the
 * one that has it wait for it next, by futex(), and hooks need memory; so such a program is left as
 * it is. */
static bool is_filtered(void)
{
    long own = filters_in("/proc/thread-self/status");
    DIR *threads = own < 0 ? NULL : opendir("/proc/self/task");
    bool found = false;
    for (struct dirent *thread; threads && !found && (thread = readdir(threads));) {
        char path[64 + sizeof thread->d_name];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", thread->d_name);
        found = filters_in(path) > own;
    }
    if (threads)
        closedir(threads);
    return found;
}

/* ---------------------------------------------------------------- the thread */

/* The watcher waits for the GIL, or has it; or a thread forks. */
static pthread_mutex_t gil_asked = PTHREAD_MUTEX_INITIALIZER;

/* False: it is to stop. */
static bool take_gil(struct watcher *self, int *gil)
{
    unsigned awake = AWAKE;
    if (!atomic_compare_exchange_strong(&self->state, &awake, AWAKE | TAKES_GIL))
        return false;
    pthread_mutex_lock(&gil_asked);
    *gil = py.PyGILState_Ensure();
    return true;
}

/* The same where asking wants the GIL, which it doesn't from 3.12 on. */
static bool begin_to_ask(struct watcher *self, int *gil)
{
    return py.minor >= 12 || take_gil(self, gil);
}

static void end_asking(int gil)
{
    if (py.minor >= 12)
        return;
    py.PyGILState_Release(gil);
    pthread_mutex_unlock(&gil_asked);
}

static const char name_before[] = WATCHER_NAME "-new"; /* not yet active */

/* In a Python that runs already: until start() has been called on a thread of the program's. False:
 * it is to end.  No lock, no GIL. */
static bool attach_first(struct watcher *self)
{
    pthread_setname_np(pthread_self(), name_before);
    bool asked = false;
    for (unsigned periods = 0; running != self; periods++) {
        int gil = 0;
        if (!asked && periods % PERIODS_UNTIL_LOOK == 0) {
            /* Nobody waits for the attaching thread at the end of Python. */
            if (!py.Py_IsInitialized() || !begin_to_ask(self, &gil)) {
                attaching = NULL;
                return false;
            }
            /* Up to 3.11 another interpreter may have come. */
            asked = arm_attach(self->attach) && py.minor >= 12;
            end_asking(gil);
            if (periods == 0)
                debug_log("loaded: it becomes active when this Python next runs");
        }
        if (is_last() || !sleep_ms(self, PERIOD_MS))
            return false;
    }
    pthread_setname_np(pthread_self(), WATCHER_NAME);
    return true;
}

/* Asks for what is wanted, and again after a while where that is not done.  False: it is to stop.
 */
static bool ask(struct watcher *self, unsigned wanted, bool look)
{
    int gil = 0;
    if (!begin_to_ask(self, &gil))
        return false;
    if (set_up)
        arm_ask(wanted, look);
    end_asking(gil);
    return set_up;
}

static void *watch(void *data)
{
    struct watcher *self = data;
    unsigned periods = 0, wait = 1, wanted, asked = ~0u;
    bool filtered = false;
    self->id = gettid();
    pthread_setname_np(pthread_self(), WATCHER_NAME);
    if (self->attach && !attach_first(self))
        return NULL;
    do {
        if (!wanted_at_rest(self, &wanted) || is_last())
            break;
        bool change = wanted != settled || (wanted && !arm_done(wanted));
        if (!change && !wanted)
            continue;
        if (wanted != asked) {
            asked = wanted;
            periods = 0, wait = 1;
        }
        bool look = ++periods % PERIODS_UNTIL_LOOK == 0;
        if (look || (change && !filtered && periods % wait == 0)) {
            bool was_filtered = filtered;
            filtered = is_filtered();
            if (filtered && !was_filtered)
                debug_log("a thread has set a seccomp filter: no hook is set or taken out");
            if (filtered)
                continue;
            if (!ask(self, wanted, look))
                break;
            wait = wait < PERIODS_UNTIL_LOOK ? 2 * wait : wait;
        }
        if (arm_done(wanted))
            settled = wanted;
    } while (sleep_ms(self, PERIOD_MS));
    /* The end of a thread takes more system calls: it is for the process to end first. */
    for (int i = 0; i < PERIODS_UNTIL_LOOK && self->state == IDLE && !is_last(); i++)
        if (!wait_ms(self, IDLE, PERIOD_MS))
            break;
    return NULL;
}

static bool make_thread(struct watcher *watcher)
{
    /* The program's signals are for the program's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    bool made = pthread_create(&watcher->thread, &attributes, watch, watcher) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made;
}

static struct watcher *make_watcher(void (*attach)(void))
{
    struct watcher *watcher = calloc(1, sizeof *watcher);
    if (!watcher)
        return NULL;
    watcher->attach = attach;
    watcher->state = AWAKE;
    return watcher;
}

/* A thread that has been joined is counted among the process's until the kernel has taken it out, a
 * moment later.  3.12 and later read that count, to warn of threads at a fork
 * (Modules/posixmodule.c, warn_about_fork_with_threads). */
static void wait_until_gone(pid_t id)
{
    char path[64];
    struct timespec pause = {0, 100000};
    snprintf(path, sizeof path, "/proc/self/task/%d", id);
    for (int i = 0; i < 10 * FORK_WAIT_MS; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC); /* as CPython is about to open its own */
        if (fd < 0)
            return;
        close(fd);
        nanosleep(&pause, NULL);
    }
}

/* 0 in the child of a fork that the C library doesn't know of (_Fork(), clone()): our thread isn't
 * there, and the child's own first fork would wait for it for ever. */
static int never_wiped = 1, *here = &never_wiped;

static void forget_threads(bool told);

/* Waits for the end of the running one. */
static void stop(void)
{
    if (!*here)
        forget_threads(false);
    struct watcher *watcher = running;
    if (!watcher)
        return;
    running = NULL;
    bool release = atomic_fetch_or(&watcher->state, STOPPING) & TAKES_GIL; /* it won't begin to */
    bool woken =
        syscall(SYS_futex, &watcher->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0) >= 0;
    /* Not released without need: the program's other threads would run in the middle of a fork. */
    PyThreadState *state = release ? py.PyEval_SaveThread() : NULL;
    if (woken)
        pthread_join(watcher->thread, NULL);
    else /* the C library can't wait either */
        while (pthread_tryjoin_np(watcher->thread, NULL) == EBUSY)
            sched_yield();
    if (release)
        py.PyEval_RestoreThread(state);
    if (woken && py.minor >= 12)
        wait_until_gone(watcher->id);
    free(watcher);
}

/* One that sleeps may go on with it: it does not look at the interpreter again. */
static void stop_at_exit(void)
{
    if (!*here)
        forget_threads(false);
    if (running && (atomic_fetch_or(&running->state, IDLE) & AWAKE))
        stop();
}

static void start(void)
{
    if (!*here)
        forget_threads(false);
    if (running && (running->state & IDLE)) /* left by the interpreter before */
        stop();
    if (running || !set_up || forked_by_thread)
        return;
    struct watcher *watcher = atomic_exchange(&attaching, NULL);
    if (watcher) {
        running = watcher;
        return;
    }
    watcher = make_watcher(NULL);
    if (watcher && make_thread(watcher)) {
        running = watcher;
        return;
    }
    free(watcher);
    debug_log("no thread could be made: a tracer that comes later is not noticed");
}

/* ---------------------------------------------------------------- exit and fork */

static PyObject *at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    arm_close();
    stop_at_exit();
    set_up = false;
    daemons_at_exit();
    return cpython_none();
}

/* Where the fork was called: the frame, which is only compared, and the instruction in it. */
static PyFrameObject *forking_frame;
static int forking_instruction;

/* Another thread may be in the middle of a pending call of ours, and have let the GIL go in an
 * audit hook of the program: from 3.12 on the child would take it for there, and make no pending
 * calls itself.  But that hook may wait for a lock that is held for the fork: so this ends in any
 * case. */
static void wait_for_arming(void)
{
    struct timespec pause = {0, 1000000};
    for (int i = 0; i < FORK_WAIT_MS && py.minor >= 12 && !arm_busy() && arm_goes_on(); i++) {
        PyThreadState *state = py.PyEval_SaveThread();
        nanosleep(&pause, NULL);
        py.PyEval_RestoreThread(state);
    }
}

/* CPython forks, and will call after_fork_in_parent() and after_fork_in_child(). */
static bool forks_itself;

static PyObject *before_fork(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    forks_itself = true;
    stop();
    wait_for_arming();
    forking_frame = py.PyEval_GetFrame();
    forking_instruction =
        forking_frame && py.PyFrame_GetLasti ? py.PyFrame_GetLasti(forking_frame) : -1;
    return cpython_none();
}

/* Whether the main thread is in a Python function that the call of os.fork() called: another
 * after-fork handler.  Main thread, GIL held. */
static bool still_forking(void)
{
    PyFrameObject *frame = py.PyEval_GetFrame();
    if (!frame || !py.PyFrame_GetBack || !py.PyFrame_GetLasti)
        return false;
    py.Py_IncRef((PyObject *)frame);
    bool found = false;
    while (frame && !found) {
        PyFrameObject *back = py.PyFrame_GetBack(frame);
        py.Py_DecRef((PyObject *)frame);
        frame = back;
        found =
            frame && frame == forking_frame && py.PyFrame_GetLasti(frame) == forking_instruction;
    }
    if (frame)
        py.Py_DecRef((PyObject *)frame);
    return found;
}

/* A pending call: the main thread, between two instructions, GIL held. */
static int start_when_forked(void *unused)
{
    (void)unused;
    if (!still_forking() || py.Py_AddPendingCall(start_when_forked, NULL) < 0)
        start();
    return 0;
}

/* CPython counts the threads, to warn of them, after this but before os.fork() returns (3.12+,
 * Modules/posixmodule.c, warn_about_fork_with_threads): so there the thread starts when it has,
 * unless the main thread is another one, which CPython counts anyway and which may not run for
 * long. */
static PyObject *after_fork_in_parent(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    forks_itself = false;
    if (py.minor < 12 || gettid() != getpid() || py.Py_AddPendingCall(start_when_forked, NULL) < 0)
        start();
    return cpython_none();
}

static PyObject *after_fork_in_child(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    forks_itself = false;
    thread_states_forked(true);
    arm_meet_child(NULL); /* a C program may have forked, and have CPython told after it */
    start();
    return cpython_none();
}

#define CALLBACK(function) \
    { \
        "systemtap_" #function, function, METH_NOARGS, NULL \
    }
static PyMethodDef at_exit_def = CALLBACK(at_exit);
static PyMethodDef before_fork_def = CALLBACK(before_fork);
static PyMethodDef after_fork_in_parent_def = CALLBACK(after_fork_in_parent);
static PyMethodDef after_fork_in_child_def = CALLBACK(after_fork_in_child);

static PyObject *import(const char *name)
{
    return py.PyImport_ImportModuleLevel(name, NULL, NULL, NULL, 0);
}

static bool register_at_exit(void)
{
    PyObject *atexit = import("atexit");
    PyObject *callback = atexit ? py.PyCFunction_NewEx(&at_exit_def, NULL, NULL) : NULL;
    bool done = callback && cpython_done(py.PyObject_CallMethod(atexit, "register", "O", callback));
    if (callback)
        py.Py_DecRef(callback);
    if (atexit)
        py.Py_DecRef(atexit);
    return done;
}

static bool add_callback(PyObject *keywords, const char *name, PyMethodDef *def)
{
    PyObject *callback = py.PyCFunction_NewEx(def, NULL, NULL);
    bool done = callback && py.PyDict_SetItemString(keywords, name, callback) == 0;
    if (callback)
        py.Py_DecRef(callback);
    return done;
}

/* os.register_at_fork(before=..., after_in_parent=..., after_in_child=...), CPython 3.7 and later
 */
static bool register_at_fork(void)
{
    PyObject *posix = import("posix");
    PyObject *function = posix ? py.PyObject_GetAttrString(posix, "register_at_fork") : NULL;
    PyObject *arguments = function ? py.PyTuple_New(0) : NULL;
    PyObject *keywords = function ? py.PyDict_New() : NULL;
    bool done = arguments && keywords && add_callback(keywords, "before", &before_fork_def) &&
                add_callback(keywords, "after_in_parent", &after_fork_in_parent_def) &&
                add_callback(keywords, "after_in_child", &after_fork_in_child_def) &&
                cpython_done(py.PyObject_Call(function, arguments, keywords));
    if (keywords)
        py.Py_DecRef(keywords);
    if (arguments)
        py.Py_DecRef(arguments);
    if (function)
        py.Py_DecRef(function);
    if (posix)
        py.Py_DecRef(posix);
    return done;
}

static bool is_named(PyObject *code, const char *expected)
{
    PyObject *name = py.PyObject_GetAttrString(code, "co_name");
    const char *utf8 = name ? py.PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    bool same = utf8 && strcmp(utf8, expected) == 0;
    py.PyErr_Clear();
    if (name)
        py.Py_DecRef(name);
    return same;
}

/* Whether threading._after_fork() is on the stack.  PyOS_AfterFork() calls it, and then destroys
 * all thread states but its own (3.6, Python/ceval.c, PyEval_ReInitThreads).  Main thread, GIL
 * held. */
static bool in_after_fork(void)
{
    PyFrameObject **frames;
    size_t depth = frame_stack(frame_current(), &frames), i = 0;
    while (i < depth && !is_named(frame_code(frames[i]), "_after_fork"))
        i++;
    frame_release(frames, depth);
    return i < depth;
}

/* A pending call, as start_when_forked(). */
static int start_pending(void *unused)
{
    (void)unused;
    if (!in_after_fork())
        start();
    else
        py.Py_AddPendingCall(start_pending, NULL);
    return 0;
}

static bool forking_by_thread;

/* This thread has gil_asked while it forks. */
static __thread bool keeps_from_asking;

/* Up to 3.11, where all interpreters have one GIL.  A thread of a subinterpreter's may have it, and
 * is not seen to. */
static bool has_gil(void)
{
    PyThreadState *state = py._PyThreadState_UncheckedGet ? py._PyThreadState_UncheckedGet() : NULL;
    return state && state == py.PyGILState_GetThisThreadState();
}

/* The child of a fork by C would have the GIL for ever taken by a watcher that isn't there, or
 * waited for by one: then CPython 3.6 to 3.11 waits until it has taken it. */
static void keep_from_asking(void)
{
    struct timespec until;
    keeps_from_asking = pthread_mutex_trylock(&gil_asked) == 0;
    if (keeps_from_asking)
        return;
    if (has_gil()) {
        PyThreadState *state = py.PyEval_SaveThread();
        keeps_from_asking = pthread_mutex_lock(&gil_asked) == 0;
        py.PyEval_RestoreThread(state);
    } else if (clock_gettime(CLOCK_REALTIME, &until) == 0) {
        until.tv_nsec += FORK_WAIT_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        keeps_from_asking = pthread_mutex_timedlock(&gil_asked, &until) == 0;
    }
}

static void prepare_fork(void)
{
    forking_by_thread = gettid() != getpid();
    if (py.minor < 12)
        keep_from_asking();
}

static void parent_of_fork(void)
{
    if (keeps_from_asking)
        pthread_mutex_unlock(&gil_asked);
    keeps_from_asking = false;
}

static void watch_for_forks(void)
{
    enum { PAGE = 4096 };
    int *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
        munmap(page, PAGE);
        return;
    }
    *page = 1;
    here = page;
}

/* In the child of a fork. */
static void forget_threads(bool told)
{
    running = attaching = NULL;
    keeps_from_asking = false;
    pthread_mutex_init(&gil_asked, NULL);
    *here = 1;
    thread_states_forked(told);
    arm_forked();
}

/* In the child of any fork(), of CPython's or of a C library's that asks nobody: the thread is not
 * there.  CPython 3.6 has no at-fork callbacks, so there the child starts its own from here, as
 * soon as PyOS_AfterFork() has made the GIL anew.  A child that C has forked, as uwsgi does its
 * workers, starts its own if it runs Python. */
static void child_of_fork(void)
{
    forget_threads(forks_itself || py.minor == 6);
    forked_by_thread |= forking_by_thread;
    if (py.minor == 6 && set_up)
        py.Py_AddPendingCall(start_pending, NULL);
    else if (set_up && !forks_itself && !forked_by_thread)
        arm_meet_child(start);
}

/* What pthread_atfork() calls, which is part of each program rather than of libc.  In another C
 * library there is no such function, and no reason to keep its programs from starting. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *)
    __attribute__((weak));

bool watcher_fits(void)
{
    return __register_atfork;
}

static bool prepare_process(void)
{
    static bool done; /* for the process, not for the interpreter */
    if (!done) {
        watch_for_forks();
        done = __register_atfork(prepare_fork, parent_of_fork, child_of_fork, NULL) == 0;
    }
    return done;
}

void watcher_setup(void)
{
    if (set_up)
        return;
    PyObject *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    if (py.minor == 6) /* it has no GIL until somebody asks for one */
        py.PyEval_InitThreads();
    know_main_thread();
    set_up = prepare_process() && register_at_exit() && (py.minor == 6 || register_at_fork());
    py.PyErr_Clear();
    py.PyErr_Restore(type, value, traceback);
    if (set_up) {
        arm_open();
        start();
    } else
        debug_log("no atexit or no register_at_fork: a tracer that comes later is not noticed");
}

/* ---------------------------------------------------------------- a CPython that runs already */

static void (*pending_attach)(void);

static int attach_pending(void *unused)
{
    (void)unused;
    pending_attach();
    return 0;
}

/* dlopen() may have been called with the GIL or without; and whoever holds the GIL may wait for a
 * lock of the dynamic linker, which we hold.  So another thread asks for it. */
void watcher_attach(void (*attach)(void))
{
    /* In a 3.6 that has had one thread only, there is no GIL to wait for. */
    if (py.PyEval_ThreadsInitialized && !py.PyEval_ThreadsInitialized()) {
        pending_attach = attach;
        py.Py_AddPendingCall(attach_pending, NULL);
        return;
    }
    struct watcher *watcher = prepare_process() ? make_watcher(attach) : NULL;
    if (!watcher)
        return;
    know_main_thread();
    attaching = watcher;
    if (!make_thread(watcher)) {
        attaching = NULL;
        free(watcher);
        debug_log("no thread could be made: this running Python is left alone");
    }
}
