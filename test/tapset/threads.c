/*
 * Eight threads, each as a CPU that runs several threads of Pythons in turn, begin and end calls at
 * the same time (python_calls.stp), in tables that are often full: test/fast/tapset-c.bats makes
 * calls_tapset.h from the tapset.  Locks are real here, and what they must protect is checked by
 * ThreadSanitizer.  Each CPU knows what its threads must find, and what is counted as lost.
 *
 * The kernel's time stands still for a CPU in a handler, but for a quarter of a second.
 *
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#include <pthread.h>
#include <sched.h>

enum { CPUS = 8, THREADS = 5, DEEPEST = 64, NOTES = 50 };

static void check_at(bool holds, const char *what, int line)
{
    if (holds)
        return;
    fprintf(stderr, "threads.c:%d: %s\n", line, what);
    abort();
}
#define check(holds, what) check_at(holds, what, __LINE__)

/* ---------------------------------------------------------------- the kernel, with CPUs */

#undef raw_spin_lock_irqsave
#undef raw_spin_unlock_irqrestore
#undef READ_ONCE
#undef WRITE_ONCE
#undef smp_store_release
#undef smp_load_acquire
#undef ktime_get_ns
#define READ_ONCE(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define WRITE_ONCE(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELAXED)
#define smp_store_release(to, value) __atomic_store_n(to, value, __ATOMIC_RELEASE)
#define smp_load_acquire(from) __atomic_load_n(from, __ATOMIC_ACQUIRE)
#define ktime_get_ns() (clock_of_cpu)
#define current task_of_cpu
#define jiffies READ_ONCE(ticks)
#define raw_spin_lock_irqsave(lock, flags) ((flags) = 0, take(lock))
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(flags), give(lock))

static __thread struct task_struct *task_of_cpu;
static __thread u64 clock_of_cpu;
static __thread unsigned cpu, held, taken[2]; /* locks, by rank: held, and taken how often */
static unsigned long ticks = 1000;
static int steps; /* of each CPU */

/* In this order locks are taken. */
static unsigned rank_of(const int *lock);

static void take(int *lock)
{
    unsigned rank = rank_of(lock);
    int is_free = 0;
    check(!(held >> rank), "a lock in the wrong order");
    while (
        !__atomic_compare_exchange_n(lock, &is_free, 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        is_free = 0;
        sched_yield();
    }
    held |= 1U << rank;
    taken[rank]++;
}

static void give(int *lock)
{
    check(held >> rank_of(lock) == 1, "a lock that is not held");
    held &= ~(1U << rank_of(lock));
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#include "calls_tapset.h"

static unsigned rank_of(const int *lock)
{
    return lock == &python_calls_lock;
}

#include "calls_tables.h"

static int user_byte(unsigned long address)
{
    (void)address;
    return -1;
}

void *kallsyms_lookup_name(const char *name)
{
    (void)name;
    return NULL;
}

/* How many calls and sleeps hold each note. */
static int holds[NOTES];

static void ref_note(s64 note, int by)
{
    check(__atomic_add_fetch(&holds[note], by, __ATOMIC_RELAXED) >= 0, "a note dropped twice");
}

/* ---------------------------------------------------------------- what there must be */

struct call {
    u64 frame, began, inside;
    s64 note;
};

/* A thread of a Python; its task, which never changes, is another one after the thread's end. */
struct thread {
    struct task_struct *task;
    bool without_frames;
    u32 depth, asides, stack;       /* stack: of its sleep */
    struct call open[DEEPEST];      /* the outermost first */
    struct call aside[DEEPEST * 2]; /* the oldest first */
    int awaited;                    /* a child that has not begun: there is a call for it */
};

/* A child that is to begin on another CPU. */
struct child {
    struct task_struct *parent;
    int *awaited; /* NULL: there is none */
    u64 forked_at;
    u32 depth, no_room; /* the copied calls, and those without room for that */
    struct call open[DEEPEST];
};

static struct cpu {
    pthread_t pthread;
    u32 random, serial;
    u64 no_room, no_return, no_entry;
    struct thread threads[THREADS];
    pthread_mutex_t mutex;
    struct child child;
} cpus[CPUS];

static struct task_struct *tasks[CPUS * THREADS];

struct task_struct *task_of(pid_t pid)
{
    struct task_struct *task = smp_load_acquire(&tasks[pid % (CPUS * THREADS)]);
    return task && task->pid == pid ? task : NULL;
}

static u32 random_below(u32 limit)
{
    u32 *state = &cpus[cpu].random;
    *state = *state * 1664525 + 1013904223;
    return (u32)((u64)(*state >> 8) * limit >> 24);
}

/* A hold of a note, for who gets it. */
static s64 some_note(void)
{
    s64 note = 1 + random_below(NOTES - 1);
    ref_note(note, 1);
    return note;
}

/* Another thread begins in this place, which may have the ID of the one before. */
static void start_thread(struct thread *thread, struct task_struct *parent, u64 start_time,
                         u64 execs)
{
    u32 place = cpu * THREADS + (u32)(thread - cpus[cpu].threads);
    struct task_struct *task = calloc(1, sizeof *task);
    if (!task)
        abort();
    cpus[cpu].no_return += thread->asides;
    thread->depth = thread->asides = thread->stack = 0;
    task->pid = (pid_t)(place + (2 + random_below(2)) * CPUS * THREADS);
    task->start_time = start_time;
    task->self_exec_id = execs;
    task->real_parent = parent;
    task->se.sum_exec_runtime = 1;
    smp_store_release(&tasks[place], task);
    current = thread->task = task;
}

static void check_top(const struct thread *thread)
{
    check(__python_call_depth_0() == thread->depth, "the depth");
    if (thread->depth)
        check(__python_call_note_0() == thread->open[thread->depth - 1].note, "the note");
}

/* ---------------------------------------------------------------- handlers */

static s64 begin(u64 frame)
{
    return __python_call_begin_3("x.py", "f", (s64)frame);
}

static s64 end(u64 frame)
{
    return __python_call_end_3("x.py", "f", (s64)frame);
}

static void remove_aside(struct thread *thread, u32 at)
{
    thread->asides--;
    memmove(&thread->aside[at], &thread->aside[at + 1],
            (thread->asides - at) * sizeof *thread->aside);
}

/* The oldest are lost. */
static void drop_asides(struct thread *thread, u32 count)
{
    cpus[cpu].no_return += count;
    for (; count; count--)
        remove_aside(thread, 0);
}

static void begin_call(struct thread *thread)
{
    u32 at = random_below(8);
    u64 frame = thread->without_frames ? 0 : (u64)cpu << 32 | ++cpus[cpu].serial;
    bool reuses = at < thread->asides;
    if (thread->depth == DEEPEST)
        return;
    if (reuses)
        frame = thread->aside[at].frame;
    if (!begin(frame)) {
        cpus[cpu].no_room++;
        check(!end(frame), "a call without room");
        drop_asides(thread, thread->asides);
        return;
    }
    if (thread->asides - reuses != python_this_thread()->asides) /* for room */
        drop_asides(thread, thread->asides);
    else if (reuses) {
        remove_aside(thread, at);
        cpus[cpu].no_return++;
    }
    thread->open[thread->depth++] =
        (struct call){.frame = frame, .began = clock_of_cpu, .note = some_note()};
    __python_call_set_note_1(thread->open[thread->depth - 1].note);
}

static void check_ended(const struct call *call)
{
    u64 time = clock_of_cpu - call->began;
    check((u64)__python_call_time_0() == time, "the time of a call");
    check((u64)__python_call_own_time_0() == time - call->inside, "the own time of a call");
    check(__python_call_ended_note_0() == call->note, "the note of a call that has ended");
}

/* Ends the call at this depth: those inside it are set aside, or lost. */
static void end_call(struct thread *thread, u32 at)
{
    struct call call = thread->open[at];
    if (thread->without_frames) {
        /* the innermost is found */
        at = thread->depth - 1;
        call = thread->open[at];
    }
    check(end(call.frame) != 0, "a call is not found");
    check_ended(&call);
    check(__python_call_outermost_0() == !at, "the outermost call");
    if (at)
        thread->open[at - 1].inside += clock_of_cpu - call.began;
    for (u32 i = at + 1; i < thread->depth; i++)
        thread->aside[thread->asides++] = thread->open[i];
    thread->depth = at;
    if (thread->asides > PYTHON_ASIDE)
        drop_asides(thread, thread->asides - PYTHON_ASIDE);
}

static void end_aside(struct thread *thread)
{
    u32 at = random_below(thread->asides);
    struct call call = thread->aside[at];
    check(end(call.frame) != 0, "a call set aside is not found");
    check_ended(&call);
    remove_aside(thread, at);
}

static void end_unknown_call(const struct thread *thread)
{
    check(!__python_call_end_3("x.py", "unknown", 1), "a call that never began");
    cpus[cpu].no_entry += thread->depth > 0;
}

static void sleep_or_wake(struct thread *thread)
{
    s64 stack = some_note();
    struct python_sleep_time sleep = python_end_sleep();
    check(sleep.stack == thread->stack, "the stack of a sleep");
    thread->stack = python_begin_sleep((u32)stack, false, 0) ? (u32)stack : 0;
    if (thread->stack && random_below(2)) {
        check(python_end_sleep().stack == thread->stack, "the stack of a sleep");
        thread->stack = 0;
    }
}

static void exec_program(struct thread *thread)
{
    current->self_exec_id++;
    cpus[cpu].no_return += thread->asides;
    thread->depth = thread->asides = thread->stack = 0;
    check(!__python_call_depth_0(), "a call of the program before");
}

/* For another CPU, unless a child is still to begin there. */
static void fork_child(struct thread *thread)
{
    struct cpu *to = &cpus[random_below(CPUS)];
    u32 depth;
    __python_call_fork_0();
    depth = python_this_thread()->forked.depth;
    check(depth <= thread->depth, "the depth of a fork");
    cpus[cpu].no_room += thread->depth - depth;
    pthread_mutex_lock(&to->mutex);
    if (depth && !to->child.awaited) {
        to->child = (struct child){current, &thread->awaited,      clock_of_cpu,
                                   depth,   thread->depth - depth, {{0}}};
        memcpy(to->child.open, &thread->open[thread->depth - depth], depth * sizeof *thread->open);
        smp_store_release(&thread->awaited, true);
    }
    pthread_mutex_unlock(&to->mutex);
}

static void begin_child(struct thread *thread)
{
    struct child child;
    pthread_mutex_lock(&cpus[cpu].mutex);
    child = cpus[cpu].child;
    cpus[cpu].child.awaited = NULL;
    pthread_mutex_unlock(&cpus[cpu].mutex);
    if (!child.awaited)
        return;
    start_thread(thread, child.parent, child.forked_at, child.parent->self_exec_id);
    __python_call_forked_0();
    thread->depth = (u32)__python_call_depth_0();
    check(thread->depth <= child.depth, "the depth of a child");
    for (u32 i = 0; i < thread->depth; i++) {
        thread->open[i] = child.open[child.depth - thread->depth + i];
        thread->open[i].began = clock_of_cpu;
        thread->open[i].inside = 0;
    }
    thread->without_frames = thread->depth && !thread->open[0].frame;
    cpus[cpu].no_room += child.depth - thread->depth;
    for (u32 i = thread->depth; i < child.depth + child.no_room; i++)
        check(!__python_call_end_3("x.py", "unknown", 1), "a call without room");
    smp_store_release(child.awaited, false);
}

/* What a thread does next.  A parent whose child has not begun keeps a call, so that its record is
 * not swept. */
static void run_handler(struct thread *thread, bool grows)
{
    bool is_awaited = smp_load_acquire(&thread->awaited);
    u32 what = random_below(100);
    clock_of_cpu += 1 + random_below(1000);
    if (what < 2 && !is_awaited) {
        thread->without_frames = !random_below(3);
        start_thread(thread, NULL, clock_of_cpu, 0);
    } else if (what < 4 && !is_awaited)
        exec_program(thread);
    else if (what < 8 && !is_awaited && thread->depth)
        fork_child(thread);
    else if (what < 12 && !is_awaited)
        begin_child(thread);
    else if (what < 16)
        sleep_or_wake(thread);
    else if (what < 18)
        end_unknown_call(thread);
    else if (what < 22 && thread->asides)
        end_aside(thread);
    else if (what < (grows ? 75 : 45))
        begin_call(thread);
    else if (thread->depth > (u32)is_awaited)
        end_call(thread, random_below(10) ? thread->depth - 1
                                          : is_awaited + random_below(thread->depth - is_awaited));
    check_top(thread);
}

/* ---------------------------------------------------------------- time, and the CPUs */

static pthread_rwlock_t handlers;
static unsigned long small_ticks;

static void pass_time(void)
{
    if (!random_below(400)) {
        pthread_rwlock_wrlock(&handlers);
        ticks += random_below(2 * HZ);
        small_ticks = 0;
        pthread_rwlock_unlock(&handlers);
    } else if (!random_below(20)) {
        pthread_rwlock_rdlock(&handlers);
        if (__atomic_add_fetch(&small_ticks, 1, __ATOMIC_RELAXED) < HZ / 4)
            __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
        pthread_rwlock_unlock(&handlers);
    }
}

static void use_cpu(unsigned number)
{
    cpu = number;
    clock_of_cpu = number * 1000000000000ULL + 1;
    cpus[cpu].random = number + 1;
}

static void *run_cpu(void *number)
{
    struct thread *thread;
    use_cpu((unsigned)(uintptr_t)number);
    for (int i = 0; i < THREADS; i++)
        start_thread(&cpus[cpu].threads[i], NULL, ++clock_of_cpu, 0);
    thread = cpus[cpu].threads;
    for (int step = 0; step < steps; step++) {
        pass_time();
        if (!random_below(6))
            thread = &cpus[cpu].threads[random_below(THREADS)];
        current = thread->task;
        pthread_rwlock_rdlock(&handlers);
        run_handler(thread, step / 200 % 2 == 0);
        check(!held, "a lock that is never given back");
        pthread_rwlock_unlock(&handlers);
    }
    return NULL;
}

/* ---------------------------------------------------------------- afterwards */

static void check_lost(void)
{
    u64 no_room = 0, no_return = 0, no_entry = 0;
    for (cpu = 0; cpu < CPUS; cpu++) {
        no_room += cpus[cpu].no_room;
        no_return += cpus[cpu].no_return;
        no_entry += cpus[cpu].no_entry;
        for (int i = 0; i < THREADS; i++)
            no_return += cpus[cpu].threads[i].asides;
    }
    check(no_room && no_return && no_entry, "not all was tried");
    check((u64)__python_calls_no_room_0() == no_room, "the number of calls without room");
    check((u64)__python_calls_no_return_0() == no_return, "the number of calls without return");
    check((u64)__python_calls_no_entry_0() == no_entry, "the number of returns without call");
}

/* In a thread that has calls, no lock that all threads share is taken, and none to read. */
static void check_locks(void)
{
    struct thread *thread = cpus[0].threads;
    use_cpu(0);
    start_thread(thread, NULL, clock_of_cpu, 0);
    check(begin(1), "room");
    taken[0] = taken[1] = 0;
    check(begin(2) && taken[0] == 1, "the locks that begin takes");
    __python_call_set_note_1(0);
    check(end(2) && taken[0] == 2, "the locks that end takes");
    thread->open[0] = (struct call){.began = clock_of_cpu};
    check_ended(thread->open);
    __python_call_outermost_0();
    __python_call_depth_0();
    check(taken[0] == 2, "a lock that reading takes");
    check(!taken[1], "the lock that all threads share");
}

static u32 begin_all(void)
{
    u32 count = 0;
    while (begin(++clock_of_cpu))
        count++;
    return count;
}

/* All threads end their calls.  One thread can have all that are free, with what others keep. */
static void check_room_of_the_living(void)
{
    struct task_struct *one = NULL;
    struct thread *thread;
    u32 room;
    for (cpu = 0; cpu < CPUS; cpu++)
        for (int i = 0; i < THREADS; i++) {
            thread = &cpus[cpu].threads[i];
            current = thread->task;
            while (thread->depth)
                end_call(thread, thread->depth - 1);
            while (thread->asides)
                end_aside(thread);
            if (python_this_thread() != python_threads)
                one = current;
        }
    current = one;
    check_tables();
    check(count_spares() > PYTHON_SPARES, "threads keep no calls");
    room = python_free_calls + count_spares();
    check(begin_all() >= room, "room that is not found"); /* more: of records that are swept */
    check(!python_free_calls && !count_spares(), "room that is left");
    check(end(clock_of_cpu - 1), "a call is not found");
    check(python_free_calls == 1 && !count_spares(), "a call that is kept when calls are short");
    check_tables();
}

/* All threads end but this one, which can have all calls. */
static void check_room_of_the_dead(void)
{
    for (cpu = 0; cpu < CPUS; cpu++)
        for (int i = 0; i < THREADS; i++)
            tasks[cpu * THREADS + (u32)i] = NULL;
    ticks += 2 * HZ;
    use_cpu(0);
    start_thread(cpus[0].threads, NULL, clock_of_cpu, 0);
    check(begin_all() == PYTHON_CALLS - 1, "calls of threads that have ended");
    check_tables();
    start_thread(cpus[0].threads, NULL, ++clock_of_cpu, 0);
    check(!__python_call_depth_0(), "a call of a thread that has ended");
    for (int note = 0; note < NOTES; note++)
        check(!holds[note], "a note is held for ever");
}

/* A thread forks again and again; its children begin meanwhile, in its calls. */
static void *fork_again(void *parent)
{
    use_cpu(1);
    current = parent;
    for (int i = 0; i < steps / 10; i++)
        __python_call_fork_0();
    return NULL;
}

static void check_forks(void)
{
    struct thread *parent = cpus[1].threads, *child = cpus[0].threads;
    pthread_t forks;
    use_cpu(1);
    start_thread(parent, NULL, ++clock_of_cpu, 0);
    for (u64 frame = 1; frame <= 3; frame++)
        check(begin(frame), "room");
    __python_call_fork_0();
    if (pthread_create(&forks, NULL, fork_again, parent->task))
        abort();
    use_cpu(0);
    for (int i = 0; i < steps / 10; i++) {
        start_thread(child, parent->task, parent->task->start_time + (u64)i, 0);
        __python_call_forked_0();
        check(__python_call_depth_0() == 3, "the depth of a child");
        for (u64 frame = 3; frame; frame--)
            check(end(frame), "a call of the parent's");
    }
    pthread_join(forks, NULL);
    check_tables();
}

int main(int count, char **arguments)
{
    pthread_rwlockattr_t writers_first;
    pthread_rwlockattr_init(&writers_first);
    pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&handlers, &writers_first);
    check(sizeof(struct python_call) == 64, "the size of a call in the tapset's head");
    check(sizeof(struct python_thread) + sizeof *python_buckets == 196,
          "the size of a thread in the tapset's head");
    steps = count > 1 ? atoi(arguments[1]) : 1000;
    python_ref_note = ref_note;
    check_locks();
    for (uintptr_t i = 0; i < CPUS; i++)
        pthread_mutex_init(&cpus[i].mutex, NULL);
    for (uintptr_t i = 0; i < CPUS; i++)
        if (pthread_create(&cpus[i].pthread, NULL, run_cpu, (void *)i))
            abort();
    for (int i = 0; i < CPUS; i++)
        pthread_join(cpus[i].pthread, NULL);
    check_tables();
    check_lost();
    check_room_of_the_living();
    check_room_of_the_dead();
    check_forks();
    puts("all as expected");
    return 0;
}
