/*
 * The watcher thread.  setup.c starts it, once per Py_Initialize(); fork.c stops it for a fork.
 *
 * The thread asks the interpreters to set hooks, and sets none itself (rearm_all()): CPython
 * joins it before os.fork() (3.7 and later), and may hold locks then that the program's code wants;
 * so no code of the program runs here.  From 3.12 on it does not hold the GIL, but in a child whose
 * pending calls are stuck (rearm_needs_gil()); before that, while it asks and no other thread
 * answers.  When the interpreter ends it sleeps, or is joined.  So it never meets an interpreter
 * that is going away.
 *
 * A program may leave its threads few system calls (seccomp).  While no tracer is attached the
 * thread makes only futex(), and ends if that is refused.  Nor does the program's end need another.
 *
 * The thread opens files in a table of descriptors of its own, and does not call malloc(): a
 * thread's first call takes 64 MB of address space, which the program may be short of.  Up to 3.11
 * PyThreadState_New() makes one.
 *
 * SPDX-License-Identifier: MIT
 */

#include "core/core.h"
#include "cpython/threads.h"
#include "hooks/hook.h"
#include "hooks/rearm.h"
#include "markers/detach.h"
#include "markers/enabled.h"
#include "markers/filter.h"
#include "os/process.h"
#include "os/thread.h"
#include "shared/offsets_page.h"
#include "sums/sums.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* ---------------------------------------------------------------- watcher name */

/* The watcher's.  Of two only the newer one still gets here: the other is STOPPING. */
static const char *_Atomic name;
static atomic_long filters;  /* of watcher_name_safe(); 0: not called */
static atomic_bool lacks_id; /* as the name says, or would */

static void set(const char *other)
{
    name = other;
    pthread_setname_np(pthread_self(), other);
}

void watcher_name_first(bool is_new)
{
    filters = 0;
    lacks_id = false;
    set(is_new ? SHIM_THREAD_NAME_NEW : SHIM_THREAD_NAME);
}

void watcher_name_safe(void)
{
    if (!filters)
        filters = seccomp_own();
    lacks_id = interp_lacks_id();
}

void watcher_name_change(enum watcher_state state)
{
    static const char *const names[] = {[WATCHER_IS_NEW] = SHIM_THREAD_NAME_NEW,
                                        [WATCHER_IS_ACTIVE] = SHIM_THREAD_NAME,
                                        [WATCHER_IS_FILTERED] = SHIM_THREAD_NAME_FILTERED,
                                        [WATCHER_DETACHES] = SHIM_THREAD_NAME_END};
    detach_publish_ids(interp_lacks_id());
    if (name == names[WATCHER_IS_NEW])
        lacks_id = interp_lacks_id();
    const char *other =
        state == WATCHER_IS_ACTIVE && lacks_id ? SHIM_THREAD_NAME_NO_IDS : names[state];
    if (other != name && (!filters || filters == seccomp_own()))
        set(other);
}

/* ---------------------------------------------------------------- watcher */

enum { PERIOD_MS = 50, PERIODS_UNTIL_LOOK = 20 };
/* A tracer raises its semaphores one after another, each for both of the marker's sites, within a
 * millisecond. */
enum { REST_MS = 2, RESTS = 10 };
/* How long an answer may take: while all wait in C; while a thread has the GIL, maybe no CPU. */
enum { FREE_WAIT_MS = 20, HELD_WAIT_MS = 250 };

/* One watcher thread.  A thread may fork while another is ending one, so each has its own. */
struct watcher {
    pthread_t thread;
    pid_t id;                /* the kernel's, which the thread sets first */
    bool attaches;           /* it has attach_interpreter() called first */
    bool detaches;           /* as its name says */
    unsigned looks;          /* for filters, before its end */
    bool descriptors_closed; /* by descriptors_leave() */
    atomic_uint state;       /* the bits below */
};
enum {
    STOPPING = 1,
    ST_AWAKE = 2,             /* it may be looking at CPython's memory */
    ST_TAKES_GIL = 4,         /* it asks, and has the GIL or waits for it */
    ST_INTERPRETER_ENDED = 8, /* the interpreter has ended */
    ST_DETACHED = 16,         /* it is not joined */
    ENDED = 32,
    GONE = 64, /* it has detached, and is not joined, but for one that was STOPPING before */
};

atomic_bool watcher_allowed;
bool watcher_forbidden;

/* Under it what follows is written: two threads that fork at once would stop one watcher twice, or
 * start two.  Its holder may wait for a watcher, and that, if asking needs the GIL, for those who
 * wait for the lock. */
static struct nogil_lock changing;

static struct watcher *_Atomic running;

/* The thread of watcher_start_attaching(), until watcher_start() takes it for the running one. */
static struct watcher *_Atomic attaching;

/* What all interpreters were last asked to bring their hooks to, and did.  ~0u meanwhile: a thread
 * may answer after the watcher that asked was stopped for a fork. */
static unsigned settled;

/* ---------------------------------------------------------------- sleep */

/* False: it is to stop, or can't sleep. */
static bool sleep_ms(struct watcher *self, long ms)
{
    atomic_fetch_and(&self->state, ~(unsigned)(ST_AWAKE | ST_TAKES_GIL));
    if (!futex_wait_us(&self->state, 0, ms * 1000))
        return false;
    unsigned asleep = 0;
    return atomic_compare_exchange_strong(&self->state, &asleep, ST_AWAKE);
}

/* ---------------------------------------------------------------- asking */

enum begin {
    BEGUN,
    BEGIN_LATER,
    BEGIN_NEVER, /* it is to stop */
};

static enum begin wait_for(struct watcher *self, bool (*done)(void))
{
    int freed = 0;
    for (int i = 0; i < HELD_WAIT_MS && freed < FREE_WAIT_MS && !done(); i++) {
        freed += gil_is_free();
        if (!sleep_ms(self, 1))
            return BEGIN_NEVER;
    }
    return done() ? BEGUN : BEGIN_LATER;
}

/* A child that is forked by C, by the thread that has the GIL, would have a waiter for it that is
 * not there, if this thread waited for it.  BEGUN: it was answered. */
static enum begin rearm_nogil(struct watcher *self)
{
    if (!py.Py_IsInitialized() || !rearm_main_nogil())
        return BEGIN_LATER;
    return wait_for(self, rearm_main_nogil_done);
}

static bool needs_no_gil(void)
{
    return !rearm_needs_gil() || gil_is_free();
}

/* Takes the GIL if asking needs it. */
static enum begin prepare_to_rearm(struct watcher *self)
{
    unsigned awake = ST_AWAKE;
    if (!py.Py_IsInitialized()) /* a program may have taken our function out of atexit */
        return BEGIN_LATER;
    if (wait_for(self, needs_no_gil) == BEGIN_NEVER)
        return BEGIN_NEVER;
    if ((rearm_needs_gil() && any_thread_has_seccomp()) ||
        !rearm_trylock()) /* it may have waited long */
        return BEGIN_LATER;
    if (!py.Py_IsInitialized()) { /* nor is it any more: the end does not wait for attach_first() */
        rearm_unlock();
        return BEGIN_LATER;
    }
    if (!rearm_needs_gil())
        return BEGUN;
    if (!atomic_compare_exchange_strong(&self->state, &awake, ST_AWAKE | ST_TAKES_GIL)) {
        rearm_unlock();
        return BEGIN_NEVER;
    }
    if (!rearm_take_gil()) {
        rearm_unlock();
        return self->state & STOPPING ? BEGIN_NEVER : BEGIN_LATER;
    }
    if (!(self->state & STOPPING))
        return BEGUN;
    rearm_release();
    return BEGIN_NEVER;
}

/* ---------------------------------------------------------------- the thread */

/* Whether the shim is to detach; the thread's name says so, while it waits for the hooks to go. */
static bool is_to_detach(struct watcher *self)
{
    bool asked = detach_is_asked();
    if (asked != self->detaches) {
        watcher_name_change(asked                               ? WATCHER_DETACHES
                            : self->attaches && running != self ? WATCHER_IS_NEW
                                                                : WATCHER_IS_ACTIVE);
        debug_log(asked ? "detaching" : "attached again before it was detached");
    }
    self->detaches = asked;
    return asked;
}

/* Whether this thread is to end now: no hook is left, and no thread of the program has a filter, by
 * which a system call of a thread's end might be forbidden. */
static bool begins_to_leave(struct watcher *self)
{
    if (!is_to_detach(self) || settled != 0 || !ask_is_clear() ||
        self->looks++ % PERIODS_UNTIL_LOOK != 0)
        return false;
    descriptors_leave(&self->descriptors_closed);
    bool leaves = !any_thread_has_seccomp() && detach_begin(semaphores_sum());
    if (leaves)
        monitoring_leave();
    return leaves;
}

/* True: this thread is to end now; self belongs to another one. */
static bool has_detached(struct watcher *self)
{
    if (!begins_to_leave(self))
        return false;
    if (!(atomic_fetch_or(&self->state, GONE) & STOPPING))
        pthread_detach(pthread_self());
    detach_done();
    debug_log("detached: no hook is left");
    return true;
}

/* The same before watcher_start() has taken this thread for the running one. */
static bool has_detached_first(struct watcher *self)
{
    struct watcher *expected = self;
    if (!begins_to_leave(self) || !atomic_compare_exchange_strong(&attaching, &expected, NULL))
        return false;
    atomic_fetch_or(&self->state, ST_DETACHED);
    pthread_detach(pthread_self());
    detach_done();
    return true;
}

/* In a Python that runs already: until watcher_start() has been called on a thread of the
 * program's.  False: it is to end.  No lock, no GIL. */
static bool run_until_attached(struct watcher *self)
{
    bool asked = false;
    for (unsigned periods = 0; running != self; periods++) {
        if (has_detached_first(self))
            return false;
        if (!asked && !self->detaches && periods % PERIODS_UNTIL_LOOK == 0) {
            /* At the end of Python no thread waits for the attaching one. */
            enum begin begin = prepare_to_rearm(self);
            if (!py.Py_IsInitialized() || begin == BEGIN_NEVER) {
                if (begin == BEGUN)
                    rearm_release();
                attaching = NULL;
                return false;
            }
            if (begin == BEGUN) {
                /* Up to 3.11 another interpreter may have started. */
                asked = rearm_attach(attach_interpreter) && py.minor >= 12;
                rearm_release();
            }
            if (periods == 0)
                debug_log("loaded: it becomes active when this Python next runs");
        }
        if (is_last_thread() || !sleep_ms(self, PERIOD_MS))
            return false;
    }
    watcher_name_change(WATCHER_IS_ACTIVE);
    self->detaches = false;
    return true;
}

/* The wanted markers, once a tracer has raised, or lowered, all of its semaphores.  False: it is to
 * end. */
static bool stable_markers(struct watcher *self, unsigned *wanted)
{
    if (semaphores_sum())
        descriptors_leave(&self->descriptors_closed);
    *wanted = markers_enabled();
    bool rests = *wanted == settled;
    for (int i = 0; i < RESTS && !rests; i++) {
        unsigned before = *wanted, raised = semaphores_sum();
        if (!sleep_ms(self, REST_MS))
            return false;
        *wanted = markers_enabled();
        rests = *wanted == before && semaphores_sum() == raised;
    }
    return true;
}

/* Asks the interpreters for the wanted markers. */
static enum begin rearm(struct watcher *self, unsigned wanted, bool change, bool look)
{
    enum begin begin = change ? rearm_nogil(self) : BEGIN_LATER;
    if (begin != BEGIN_LATER)
        return begin;
    begin = prepare_to_rearm(self);
    if (begin != BEGUN)
        return begin;
    if (watcher_allowed)
        rearm_all(wanted, look);
    rearm_release();
    return watcher_allowed ? BEGUN : BEGIN_NEVER;
}

static void *end(struct watcher *self)
{
    if (atomic_fetch_or(&self->state, ENDED) & ST_DETACHED)
        free(self);
    return NULL;
}

/* Asks when other markers are wanted, again after longer and longer times until that is done, and
 * looks at what was done once a second while any is wanted. */
static void *watch(void *data)
{
    struct watcher *self = data;
    unsigned periods = 0, wait = 1, wanted;
    uint64_t asked = ~0ul; /* filter_arm_key() */
    bool filtered = false;
    self->id = gettid();
    watcher_name_first(self->attaches);
    thread_begun();
    if (self->attaches && !run_until_attached(self))
        return end(self);
    do {
        watcher_name_change(self->detaches ? WATCHER_DETACHES
                            : filtered     ? WATCHER_IS_FILTERED
                                           : WATCHER_IS_ACTIVE);
        if (!stable_markers(self, &wanted) || is_last_thread())
            break;
        sums_flush_tick(wanted);
        filter_refresh_tick(wanted);
        if (has_detached(self))
            return NULL;
        bool change = wanted != settled || (wanted && !rearm_all_done(wanted));
        if (!change && !wanted)
            continue;
        if (filter_arm_key(wanted) != asked) {
            asked = filter_arm_key(wanted);
            periods = 0, wait = 1;
        }
        bool look = ++periods % PERIODS_UNTIL_LOOK == 0;
        if (look || (change && !filtered && periods % wait == 0)) {
            bool was_filtered = filtered;
            descriptors_leave(&self->descriptors_closed);
            watcher_name_safe();
            filtered = any_thread_has_seccomp();
            if (filtered && !was_filtered)
                debug_log("a thread has set a seccomp filter: hooks stay as they are");
            if (filtered)
                continue;
            if (change)
                settled = ~0u;
            enum begin begin = rearm(self, wanted, change, look);
            if (begin == BEGIN_NEVER)
                break;
            if (begin == BEGUN)
                wait = wait < PERIODS_UNTIL_LOOK ? 2 * wait : wait;
        }
        if (rearm_all_done(wanted))
            settled = wanted;
    } while (sleep_ms(self, PERIOD_MS));
    /* The end of a thread takes more system calls: the process is to end first. */
    for (int i = 0;
         i < PERIODS_UNTIL_LOOK && self->state == ST_INTERPRETER_ENDED && !is_last_thread(); i++)
        if (!futex_wait_us(&self->state, ST_INTERPRETER_ENDED, PERIOD_MS * 1000L))
            break;
    return end(self);
}

static struct watcher *make_watcher(bool attaches)
{
    struct watcher *watcher = calloc(1, sizeof *watcher);
    if (!watcher)
        return NULL;
    watcher->attaches = attaches;
    watcher->state = ST_AWAKE;
    return watcher;
}

/* ---------------------------------------------------------------- start and end */

/* One that watcher_stop_for_fork() left may wait for the GIL still, and the lock of ask_lock.c. */
static bool is_left;

/* 0 in the child of a fork that the C library does not know of (_Fork(), clone()): our thread is
 * not there, and the child's own first fork would wait for it forever. */
static int fallback_word = 1, *in_parent_word = &fallback_word;

void watcher_detect_children(void)
{
    int *word = zero_in_child_word();
    if (word)
        in_parent_word = word;
}

void watcher_after_fork(bool told)
{
    running = attaching = NULL;
    is_left = false;
    detach_forked();
    changing = (struct nogil_lock){0};
    rearm_lock_reset();
    *in_parent_word = 1;
    tstate_list_after_fork(told);
    rearm_after_fork();
}

/* Takes the lock `changing`, which a thread of the parent may have held. */
static void lock_changing(void)
{
    if (!__atomic_exchange_n(in_parent_word, 1, __ATOMIC_ACQ_REL))
        watcher_after_fork(false);
    nogil_lock_detached(&changing);
}

/* Waits for the end of one that is STOPPING, and was in that state before; GIL held, and not
 * released. */
static void join(struct watcher *watcher, unsigned before)
{
    bool woken = before & GONE || futex_wake(&watcher->state);
    if (!woken) /* the C library can't wait either */
        while (pthread_tryjoin_np(watcher->thread, NULL) == EBUSY)
            sched_yield();
    else if (!(before & GONE))
        pthread_join(watcher->thread, NULL);
    if (woken && py.minor >= 12)
        thread_wait_until_gone(watcher->id);
    free(watcher);
}

/* GIL held, which is released if it waits for that. */
static void stop(struct watcher *watcher)
{
    running = NULL;
    unsigned before = atomic_fetch_or(&watcher->state, STOPPING);
    bool release = before & ST_TAKES_GIL; /* it won't begin to */
    PyThreadState *state = release ? py.PyEval_SaveThread() : NULL;
    join(watcher, before);
    if (release)
        py.PyEval_RestoreThread(state);
}

/* The GIL is not released: the program's fork handlers hold its locks, and a thread that has the
 * GIL may wait for one of them.  CPython makes the GIL anew in the child. */
static void stop_for_fork(struct watcher *watcher)
{
    running = NULL;
    unsigned before = atomic_fetch_or(&watcher->state, STOPPING);
    if (!(before & ST_TAKES_GIL)) {
        join(watcher, before);
        return;
    }
    pthread_detach(watcher->thread);
    is_left = true;
    if (atomic_fetch_or(&watcher->state, ST_DETACHED) & ENDED)
        free(watcher);
}

void watcher_stop_for_fork(void)
{
    lock_changing();
    if (running)
        stop_for_fork(running);
    nogil_unlock(&changing);
}

void watcher_stop_at_exit(void)
{
    lock_changing();
    struct watcher *watcher = running;
    if (watcher && (atomic_fetch_or(&watcher->state, ST_INTERPRETER_ENDED) & ST_AWAKE))
        stop(watcher);
    if (is_left || attaching)
        rearm_wait_idle();
    is_left = false;
    nogil_unlock(&changing);
}

static void start(void)
{
    struct watcher *watcher = running;
    if (watcher &&
        (watcher->state & (ST_INTERPRETER_ENDED | GONE))) /* IDLE: of the interpreter before */
        stop(watcher);
    if (running || !watcher_allowed || watcher_forbidden || detach_has_ended())
        return;
    watcher = atomic_exchange(&attaching, NULL);
    if (watcher) {
        running = watcher;
        return;
    }
    watcher = make_watcher(false);
    if (watcher && thread_start(&watcher->thread, watch, watcher)) {
        running = watcher;
        return;
    }
    free(watcher);
    debug_log("no thread could be started: a tracer that attaches later is not noticed");
}

void watcher_start(void)
{
    lock_changing();
    start();
    nogil_unlock(&changing);
}

void watcher_start_attaching(void)
{
    struct watcher *watcher = make_watcher(true);
    if (!watcher)
        return;
    main_thread_remember();
    if (gettid() == getpid())
        watcher_forbidden = false; /* the end of that thread's function will be noticed */
    attaching = watcher;
    if (!thread_start(&watcher->thread, watch, watcher)) {
        attaching = NULL;
        free(watcher);
        debug_log("no thread could be started: the shim does nothing in this running Python");
    }
}
