/*
 * The watcher: the shim's thread.  loader.c starts it, once per Py_Initialize(); fork.c stops it
 * for a fork.  The functions run on this thread, without the GIL; those under "start and end" run
 * on threads of the program.
 *
 * The thread runs no code of the program: from 3.7 on it is joined before os.fork(), by a thread
 * that may hold locks for which such code would wait.  So threads of the program set the hooks
 * (rearm_all()); up to 3.11 the watcher itself sets only hooks that run no such code.
 *
 * From 3.12 on the thread takes the GIL only in a child whose pending calls are stuck
 * (rearm_needs_gil()).  Up to 3.11 it takes the GIL once a second to check hooks, and to rearm if
 * no thread of the program has done so.  When the interpreter ends, the thread is joined, or is not
 * ST_AWAKE and does not read the interpreter again.
 *
 * A program may forbid its threads most system calls (seccomp).  While no tracer is attached the
 * thread makes only futex(), and ends if futex() is refused.  For the program's end the thread
 * needs no other system call, either.
 *
 * The thread opens files in a table of descriptors of its own.  It does not call malloc(), but up
 * to 3.11 PyThreadState_New() does: a thread's first call takes 64 MB of address space, which may
 * be scarce.
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

/* ---------------------------------------------------------------- the thread's name */

/* Of two watchers only the newer one writes these: the other is STOPPING. */
static const char *_Atomic name;
static atomic_long filters;  /* seccomp_own() at the first watcher_name_safe(); 0: not called yet */
static atomic_bool lacks_id; /* whether the name of an active watcher reports that */

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

/* ---------------------------------------------------------------- the watcher */

enum { PERIOD_MS = 50, PERIODS_UNTIL_CHECK = 20 };
/* A tracer raises its semaphores one after another, each for both of the marker's sites, within a
 * millisecond. */
enum { REST_MS = 2, RESTS = 10 };
/* How long wait_for() waits: FREE_WAIT_MS in which the GIL is free; HELD_WAIT_MS in all, as the
 * GIL's holder may lack a CPU. */
enum { FREE_WAIT_MS = 20, HELD_WAIT_MS = 250 };

/* The state of one watcher.  Each watcher has its own struct: a thread may fork while another
 * thread is ending a watcher. */
struct watcher {
    pthread_t thread;
    pid_t id;                /* the kernel's; the thread sets it first */
    bool attaches;           /* has attach_interpreter() called first */
    bool detaches;           /* its name is that of WATCHER_DETACHES */
    unsigned looks;          /* periods since no hook was left: seccomp is checked once a second */
    bool descriptors_closed; /* for descriptors_leave() */
    atomic_uint state;       /* the bits below */
};
enum {
    STOPPING = 1,
    ST_AWAKE = 2,     /* may be reading CPython's memory */
    ST_TAKES_GIL = 4, /* has the GIL or waits for it */
    ST_INTERPRETER_ENDED = 8,
    ST_DETACHED = 16, /* is not joined, and frees its struct */
    ENDED = 32,
    GONE = 64, /* the shim is detached; is not joined, unless it was STOPPING before */
};

atomic_bool watcher_allowed;
bool watcher_forbidden;

/* Held to stop or start a watcher: two threads that fork at once would stop one watcher twice, or
 * start two.  Its holder may wait for a watcher.  If a rearm needs the GIL, the watcher may wait
 * for threads that wait for this lock.  So a thread that waits for the lock is detached
 * (nogil_lock_detached()). */
static struct nogil_lock changing;

static struct watcher *_Atomic running;

/* The watcher of watcher_start_attaching(), until watcher_start() makes it the running one. */
static struct watcher *_Atomic attaching;

/* The markers for which all interpreters are armed.  ~0u until a rearm is done, also across
 * watchers.  A fork may stop the watcher that requested the rearm; a thread may then complete it
 * later. */
static unsigned settled;

/* ---------------------------------------------------------------- sleep */

/* False: the thread must end, or can't sleep.  The thread isn't ST_AWAKE afterwards. */
static bool doze_ms(struct watcher *self, long ms)
{
    atomic_fetch_and(&self->state, ~(unsigned)(ST_AWAKE | ST_TAKES_GIL));
    return futex_wait_us(&self->state, 0, ms * 1000) && self->state == 0;
}

/* False: the thread must end.  Else it is ST_AWAKE. */
static bool wake(struct watcher *self)
{
    unsigned asleep = 0;
    return atomic_compare_exchange_strong(&self->state, &asleep, ST_AWAKE) || asleep == ST_AWAKE;
}

static bool sleep_ms(struct watcher *self, long ms)
{
    return doze_ms(self, ms) && wake(self);
}

/* ---------------------------------------------------------------- rearm */

enum begin {
    BEGUN,
    BEGIN_LATER,
    BEGIN_NEVER, /* the thread must end */
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

/* Must not wait for the GIL: if its holder forks in C meanwhile, the child inherits a GIL whose
 * waiter (this thread) does not exist there, and may hang.  BEGUN: a thread has rearmed. */
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

/* Takes the rearm lock, and the GIL if a rearm needs it.  BEGUN: they are held. */
static enum begin prepare_to_rearm(struct watcher *self)
{
    unsigned awake = ST_AWAKE;
    if (!py.Py_IsInitialized()) /* a program may have removed our function from atexit */
        return BEGIN_LATER;
    if (wait_for(self, needs_no_gil) == BEGIN_NEVER)
        return BEGIN_NEVER;
    if ((rearm_needs_gil() && any_thread_has_seccomp()) ||
        !rearm_trylock()) /* seccomp again: wait_for() may have taken long */
        return BEGIN_LATER;
    if (!py.Py_IsInitialized()) { /* again: Python's end does not wait for run_until_attached() */
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

/* Whether detach was requested.  The thread's name is that of WATCHER_DETACHES meanwhile. */
static bool is_to_detach(struct watcher *self)
{
    bool requested = detach_is_requested();
    if (requested != self->detaches) {
        watcher_name_change(requested                           ? WATCHER_DETACHES
                            : self->attaches && running != self ? WATCHER_IS_NEW
                                                                : WATCHER_IS_ACTIVE);
        debug_log(requested ? "detaching" : "attached again before it was detached");
    }
    self->detaches = requested;
    return requested;
}

/* Whether the shim is detached now, so that this thread must end: no hook is left, and no thread of
 * the program has a seccomp filter, which might forbid a system call of a thread's end. */
static bool begins_to_leave(struct watcher *self)
{
    if (!is_to_detach(self) || settled != 0 || !ask_is_clear() ||
        self->looks++ % PERIODS_UNTIL_CHECK != 0)
        return false;
    descriptors_leave(&self->descriptors_closed);
    bool leaves = !any_thread_has_seccomp() && detach_begin(semaphores_sum());
    if (leaves)
        monitoring_leave();
    return leaves;
}

/* True: this thread must end now, and must not use self, which another thread may free. */
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

/* has_detached() of a watcher before watcher_start() has made it the running one. */
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

/* Before this watcher ends that attaches.  False: watcher_start() has made it the running one
 * meanwhile, or is about to, and starts no other: it must go on. */
static bool gives_up(struct watcher *self)
{
    struct watcher *expected = self; /* another one may attach after a fork that stops this one */
    return atomic_compare_exchange_strong(&attaching, &expected, NULL);
}

/* Waits until CPython has started, or has made this watcher the running one as it starts.  False:
 * the thread must end. */
static bool wait_for_start(struct watcher *self)
{
    /* A start takes some 20 ms.  If the program forks between the start and attach_interpreter(),
     * 3.12 and later warn of this thread.  A start that fails may leave CPython as it is. */
    enum { OFTEN = 10000 };
    for (unsigned i = 0; running != self && !py.Py_IsInitialized(); i++) {
        if (has_detached_first(self) || (!cpython_runs_or_starts() && gives_up(self)))
            return false;
        if (is_last_thread() || !sleep_ms(self, i < OFTEN ? 1 : PERIOD_MS))
            return false;
    }
    return true;
}

/* In a CPython that runs already, or once it has started: has attach_interpreter() called, until
 * watcher_start() has made this watcher the running one, on a thread of the program.  False: the
 * thread must end. */
static bool run_until_attached(struct watcher *self)
{
    bool requested = false;
    if (!wait_for_start(self))
        return false;
    for (unsigned periods = 0; running != self; periods++) {
        if (has_detached_first(self))
            return false;
        if (!requested && !self->detaches && periods % PERIODS_UNTIL_CHECK == 0) {
            enum begin begin = prepare_to_rearm(self);
            /* Python's end does not wait for this thread, and its next start may have begun. */
            bool has_ended = !py.Py_IsInitialized();
            if (has_ended && begin == BEGUN)
                rearm_release();
            if (begin == BEGIN_NEVER || has_ended) {
                if (gives_up(self) || begin == BEGIN_NEVER)
                    return false;
            } else if (begin == BEGUN) {
                /* Again up to 3.11, where another interpreter may have started. */
                requested = rearm_attach(attach_interpreter) && py.minor >= 12;
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

/* No tracer is attached, none has left a hook, and no detach was requested. */
static bool is_idle(const struct watcher *self)
{
    return settled == 0 && !semaphores_sum() && !markers_left_to_cpython && !self->detaches &&
           !detach_is_requested();
}

/* Waits until a tracer has raised, or lowered, all of its semaphores.  *enabled: the enabled
 * markers.  False: the thread must end.  Unless the watcher is idle it is ST_AWAKE afterwards.  An
 * idle one reads no memory of CPython's, so Python's end does not wait for it: the wait is by a
 * system call that the program may have forbidden to its thread. */
static bool stable_markers(struct watcher *self, unsigned *enabled)
{
    *enabled = 0;
    /* For a tracer that may be gone: at an interpreter's start, or by a late pending call. */
    if (arm_since_last_look() && settled == 0)
        settled = ~0u;
    if (is_idle(self)) {
        atomic_fetch_and(&self->state, ~(unsigned)ST_AWAKE);
        return true;
    }
    if (!wake(self))
        return false;
    if (semaphores_sum())
        descriptors_leave(&self->descriptors_closed);
    *enabled = markers_enabled();
    bool rests = *enabled == settled;
    for (int i = 0; i < RESTS && !rests; i++) {
        unsigned before = *enabled, raised = semaphores_sum();
        if (!sleep_ms(self, REST_MS))
            return false;
        *enabled = markers_enabled();
        rests = *enabled == before && semaphores_sum() == raised;
    }
    return true;
}

/* Has the interpreters rearm.  change: for other markers; check: to check their hooks. */
static enum begin rearm(struct watcher *self, unsigned enabled, bool change, bool check)
{
    enum begin begin = change ? rearm_nogil(self) : BEGIN_LATER;
    if (begin != BEGIN_LATER)
        return begin;
    begin = prepare_to_rearm(self);
    if (begin != BEGUN)
        return begin;
    if (watcher_allowed)
        rearm_all(enabled, check);
    rearm_release();
    return watcher_allowed ? BEGUN : BEGIN_NEVER;
}

static void *end(struct watcher *self)
{
    if (atomic_fetch_or(&self->state, ENDED) & ST_DETACHED)
        free(self);
    return NULL;
}

/* The thread.  Has interpreters rearm when other markers are enabled, again after longer and longer
 * times until all have done so, and once a second while a marker is enabled, to check the hooks. */
static void *watch(void *data)
{
    struct watcher *self = data;
    unsigned periods = 0, wait = 1, looks = 0, enabled;
    uint64_t requested = ~0ul; /* filter_arm_key() */
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
        if (!stable_markers(self, &enabled) || is_last_thread())
            break;
        sums_flush_tick(enabled);
        filter_refresh_tick(enabled);
        if (looks++ % PERIODS_UNTIL_CHECK == 0)
            markers_look_at_sites();
        if (!(self->state & ST_AWAKE)) /* idle */
            continue;
        if (has_detached(self))
            return NULL;
        bool change = enabled != settled || (enabled && !rearm_all_done(enabled));
        if (!change && !enabled)
            continue;
        if (filter_arm_key(enabled) != requested) {
            requested = filter_arm_key(enabled);
            periods = 0, wait = 1;
        }
        bool check = ++periods % PERIODS_UNTIL_CHECK == 0;
        if (check || (change && !filtered && periods % wait == 0)) {
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
            enum begin begin = rearm(self, enabled, change, check);
            if (begin == BEGIN_NEVER)
                break;
            if (begin == BEGUN)
                wait = wait < PERIODS_UNTIL_CHECK ? 2 * wait : wait;
        }
        if (rearm_all_done(enabled))
            settled = enabled;
    } while (doze_ms(self, PERIOD_MS));
    /* A thread's end makes more system calls than futex(): lets the process end first. */
    for (int i = 0;
         i < PERIODS_UNTIL_CHECK && self->state == ST_INTERPRETER_ENDED && !is_last_thread(); i++)
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
    watcher->state = attaches ? ST_AWAKE : 0;
    return watcher;
}

/* ---------------------------------------------------------------- start and end */

/* A watcher that watcher_stop_for_fork() left may still wait for the GIL and hold the rearm
 * lock. */
static bool is_left;

/* *in_parent_word is 0 in the child of a fork that the C library does not know of (_Fork(),
 * clone()).  The child has no watcher, and its own first fork would wait for one forever. */
static int fallback_word = 1, *in_parent_word = &fallback_word;

void watcher_detect_children(void)
{
    int *word = zero_in_child_word();
    if (word)
        in_parent_word = word;
}

void watcher_after_fork(bool notified)
{
    running = attaching = NULL;
    is_left = false;
    detach_forked();
    changing = (struct nogil_lock){0};
    rearm_lock_reset();
    *in_parent_word = 1;
    tstate_list_after_fork(notified);
    rearm_after_fork();
}

/* Takes `changing`.  A child resets it first, as a thread of the parent may have held it. */
static void lock_changing(void)
{
    if (!__atomic_exchange_n(in_parent_word, 1, __ATOMIC_ACQ_REL))
        watcher_after_fork(false);
    nogil_lock_detached(&changing);
}

/* Waits for the end of a watcher that is STOPPING, and frees it.  before: its state until then.
 * GIL held, and not released. */
static void join(struct watcher *watcher, unsigned before)
{
    bool woken = before & GONE || futex_wake(&watcher->state);
    if (!woken) /* futex() is refused, by which pthread_join() waits */
        while (pthread_tryjoin_np(watcher->thread, NULL) == EBUSY)
            sched_yield();
    else if (!(before & GONE))
        pthread_join(watcher->thread, NULL);
    if (woken && py.minor >= 12)
        thread_wait_until_gone(watcher->id);
    free(watcher);
}

/* GIL held, but released if the watcher waits for the GIL. */
static void stop(struct watcher *watcher)
{
    running = NULL;
    unsigned before = atomic_fetch_or(&watcher->state, STOPPING);
    bool release = before & ST_TAKES_GIL; /* else STOPPING keeps it from taking the GIL */
    PyThreadState *state = release ? py.PyEval_SaveThread() : NULL;
    join(watcher, before);
    if (release)
        py.PyEval_RestoreThread(state);
}

/* Must not release the GIL: the program's fork handlers hold locks, and a thread that gets the GIL
 * may wait for one of these.  CPython makes the GIL anew in the child. */
static void stop_for_fork(struct watcher *watcher)
{
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

bool watcher_stop_for_fork(void)
{
    lock_changing();
    struct watcher *was_running = running, *was_attaching = NULL;
    running = NULL;
    if (py.minor >= 12) /* CPython warns of threads */
        was_attaching = atomic_exchange(&attaching, NULL);
    if (was_running)
        stop_for_fork(was_running);
    if (was_attaching)
        stop_for_fork(was_attaching);
    nogil_unlock(&changing);
    return was_attaching;
}

void watcher_stop_at_exit(void)
{
    lock_changing();
    struct watcher *watcher = running;
    unsigned before = watcher ? atomic_fetch_or(&watcher->state, ST_INTERPRETER_ENDED) : 0;
    if (before & ST_AWAKE && !(before & GONE))
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
        (watcher->state & (ST_INTERPRETER_ENDED | GONE))) /* left by the interpreter before */
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

bool watcher_is_missing(void)
{
    return !running && !attaching && !watcher_forbidden;
}

void watcher_start_attaching(void)
{
    struct watcher *watcher = make_watcher(true), *none = NULL;
    if (!watcher)
        return;
    main_thread_remember();
    if (gettid() == getpid())
        watcher_forbidden = false; /* is_last_thread() will notice this thread's end */
    if (!atomic_compare_exchange_strong(&attaching, &none, watcher)) { /* another attach */
        free(watcher);
        return;
    }
    if (!thread_start(&watcher->thread, watch, watcher)) {
        attaching = NULL;
        free(watcher);
        debug_log("no thread could be started: the shim does nothing in this running Python");
    }
}
