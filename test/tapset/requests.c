/*
 * Tries, without a kernel, what the tapset keeps of requests (python_requests.stp.in):
 * test/fast/tapset-c.bats makes requests_tapset.h from the tapset.  Threads have no Python frames
 * here, so their sleeps get a stack from this program.
 *
 * SPDX-License-Identifier: MIT
 */
#include "kernel_files.h"

/* What another CPU does before a lock is taken, where none is held; once. */
static void (*before_lock)(void);
static void lock(raw_spinlock_t *taken)
{
    void (*meanwhile)(void) = locked ? NULL : before_lock;
    if (meanwhile) {
        before_lock = NULL;
        meanwhile();
    }
    if (*taken)
        abort();
    *taken = 1;
    locked++;
}
#undef raw_spin_lock_irqsave
#define raw_spin_lock_irqsave(taken, flags) (lock(taken), (void)((flags) = 0))

#include "requests_tapset.h"

static int user_byte(unsigned long address)
{
    unsigned char byte;
    return copy_from_kernel_nofault(&byte, (const void *)address, 1) ? -1 : byte;
}

static int failed;

static void expect(u64 expected, u64 got, const char *what)
{
    if (expected == got)
        return;
    printf("%s: expected %llu, got %llu\n", what, expected, got);
    failed = 1;
}

static struct signal_struct threads;
static struct task_struct sleeper = {.mm = &current_mm,
                                     .signal = &threads,
                                     .group_leader = &sleeper},
                          waker = {
                              .mm = &current_mm, .comm = "w", .pid = 99, .group_leader = &waker};

static void begin_program(pid_t pid)
{
    current = &sleeper;
    sleeper.pid = sleeper.tgid = waker.tgid = pid;
    sleeper.start_time = sleeper.self_exec_id = 0;
    sleeper.__state = 1;
}

/* The sleep that the current thread's last switch began has this stack. */
static u32 give_stack(const char *name)
{
    struct python_runner *runner = &python_runners[python_runner_buckets[sleeper.pid]];
    runner->stack = python_make_stack(0, name, strlen(name));
    python_note_stack(runner->stack);
    return runner->stack;
}

static void wake(unsigned flags)
{
    current = &waker;
    waker.flags = flags;
    python_request_woken(&sleeper, 0);
    current = &sleeper;
}

static u32 held(void)
{
    u32 sum = 0;
    for (u32 number = 1; number < python_used_stacks; number++)
        sum += python_stacks[number].held & ~PYTHON_KEPT;
    return sum;
}

/* Prints the last request that has ended; those before keep what they hold. */
static const char *ended(bool json)
{
    const struct python_request *request = &python_ended_requests[python_ended_count - 1];
    printed_length = 0;
    printed[0] = '\0';
    if (json)
        python_print_request(request);
    else
        python_print_request_text(request);
    return printed;
}

static void expect_printed(bool json, const char *text)
{
    if (!strstr(ended(json), text)) {
        printf("expected \"%s\" in:\n%s\n", text, printed);
        failed = 1;
    }
}

/* ---------------------------------------------------------------- who ended a wait */

static void of_wakers(void)
{
    begin_program(7);
    u32 before = held();
    python_note_stack(python_make_stack(0, "long", 4)); /* another request's, too */
    __python_request_begin_5("", "x.py", "f", 1, 1);
    /* a short wait, and a longer one, each woken twice: the first one is the waker */
    for (u64 i = 1; i < 3; i++) {
        now_ns += 10;
        __python_request_switch_3(1, 0, 0);
        give_stack(i == 1 ? "short" : "long");
        now_ns += 1000 * i;
        wake(i == 1 ? PF_KTHREAD : 0);
        wake(i == 1 ? 0 : PF_KTHREAD);
    }
    now_ns += 100;
    __python_request_end_5("x.py", "f", 1, 0, 0);
    expect(before + 3, held(), "held by a request that has ended");
    expect(0, __python_requests_open_0(), "open");
    expect_printed(true, "\"stack\":[\"long\"]}");
    python_sees_wakers = true;
    expect_printed(true, "\"stack\":[\"long\"],\"woken_by\":[\"[no Python]\"]}");
    expect_printed(false, "    long\n    [woken by]\n    [no Python]\n");
    /* a wait whose waker was not seen; a preemption, which none ends; a thread that runs */
    for (int i = 0; i < 3; i++) {
        sleeper.on_rq = i == 1;
        __python_request_begin_5("", "x.py", "f", 1, 1);
        __python_request_switch_3(1, 0, 0);
        give_stack("unseen");
        now_ns += 100;
        if (i == 1)
            wake(0);
        if (i == 2)
            __python_request_collects_1(1);
        if (i == 2)
            wake(0);
        __python_request_end_5("x.py", "f", 1, 0, 0);
        expect_printed(true, "\"stack\":[\"unseen\"],\"woken_by\":[]}");
        expect_printed(false, "    unseen\n");
        if (strstr(printed, "woken"))
            expect(0, 1, "a waker");
    }
    sleeper.on_rq = 0;
    /* a thread that is another one, or executes another program, is not woken by this ID */
    for (int i = 0; i < 2; i++) {
        before = held();
        __python_request_begin_5("", "x.py", "f", 1, 1);
        __python_request_switch_3(1, 0, 0);
        give_stack("before");
        sleeper.start_time += i;
        sleeper.self_exec_id += !i;
        wake(0);
        expect(i, python_runners[python_runner_buckets[7]].is_asleep, "asleep as another thread");
        expect(0, python_find_runner() != NULL, "a record of an earlier thread");
        expect(before, held(), "held by a thread that has ended");
    }
    expect(2, __python_requests_thread_ended_0(), "ended with their threads");
    /* the waker of the inner request's wait is the outer one's, too */
    __python_request_begin_5("", "x.py", "outer", 1, 1);
    __python_request_begin_5("", "x.py", "f", 2, 1);
    __python_request_switch_3(1, 0, 0);
    give_stack("nested");
    now_ns += 100;
    wake(PF_KTHREAD);
    __python_request_end_5("x.py", "f", 2, 0, 0);
    expect_printed(true, "\"stack\":[\"nested\"],\"woken_by\":[\"[kernel]\"]}");
    __python_request_end_5("x.py", "outer", 1, 0, 0);
    expect_printed(true, "\"stack\":[\"nested\"],\"woken_by\":[\"[kernel]\"]}");
}

static void sleep_again(void)
{
    current = &sleeper;
    __python_request_switch_3(1, 0, 0);
    give_stack("second");
    current = &waker;
}

static void wait_for_the_second_lock(void)
{
    before_lock = sleep_again;
}

/* While a waker reads its own stack, the thread wakes and sleeps again: it is not that sleep's
 * waker. */
static void of_the_next_sleep(void)
{
    begin_program(6);
    u32 before = held();
    __python_request_begin_5("", "x.py", "f", 1, 1);
    __python_request_switch_3(1, 0, 0);
    give_stack("first");
    now_ns += 100;
    before_lock = wait_for_the_second_lock;
    wake(PF_KTHREAD);
    now_ns += 1000;
    __python_request_end_5("x.py", "f", 1, 0, 0);
    expect_printed(true, "\"stack\":[\"second\"],\"woken_by\":[]}");
    expect(before + 2, held(), "held by a request that has ended");
}

/* ---------------------------------------------------------------- tasks of asyncio */

static u64 sum_of(const struct python_request *request)
{
    u64 most = 0;
    for (int part = 0; part < PYTHON_PARTS; part++)
        most = max(most, request->parts[part]);
    return most;
}

static struct python_request *begin_task(u64 task)
{
    __python_request_task_ready_1((s64)task);
    __python_request_step_begins_1((s64)task);
    python_open_task(task, now_ns, "", "x.py", "t", task);
    return &python_requests[python_lives[python_find_life(task)].request];
}

/* The end of a step is not seen: the task's next step must not be a request within itself. */
static void of_steps_without_end(void)
{
    begin_program(8);
    u64 begun = now_ns;
    struct python_request *request = begin_task(4096);
    for (int i = 0; i < 3; i++) {
        now_ns += 100;
        __python_request_task_ready_1(4096);
        __python_request_step_begins_1(4096);
        expect(0, request->outer, "a request within itself");
    }
    now_ns += 100;
    __python_request_step_ends_1(0); /* the task can't be read, so it is over */
    expect(0, __python_requests_open_0(), "open");
    expect(now_ns - begun, python_wall_of(&python_ended_requests[python_ended_count - 1]),
           "the wall time");
    expect(0, python_find_runner() != NULL, "the thread's record");
}

/* As python_step_ends(), for which the task would have to be one. */
static void end_step(void)
{
    struct python_runner *runner = python_find_runner();
    struct python_life *life = &python_lives[python_requests[runner->request].life];
    now_ns += 100;
    python_divide_time(runner, 0);
    python_leave_innermost(runner, false);
    life->runs = false;
    life->since = now_ns;
}

/* A task is ready, by another thread, in the moment in which its step ends: no time is negative. */
static void of_ready_at_the_end_of_a_step(void)
{
    begin_program(9);
    struct python_request *request = begin_task(4096);
    before_lock = end_step;
    __python_request_task_ready_1(4096);
    now_ns += 100;
    __python_request_step_begins_1(4096);
    expect(100, sum_of(request), "the longest part");
    __python_request_step_ends_1(0);
    expect(0, __python_requests_open_0(), "open");
}

/* The program begins a task's coroutine again within the task's first step: that is no second
 * request. */
static void of_a_coroutine_begun_twice(void)
{
    begin_program(10);
    begin_task(4096);
    python_open_task(4096, now_ns, "", "x.py", "f", 4096);
    expect(1, __python_requests_open_0(), "open");
    sleeper.__state = TASK_DEAD;
    __python_request_switch_3(1, 0, 0);
    expect(0, __python_requests_open_0(), "open");
}

static struct task_struct third = {.mm = &current_mm, .signal = &threads, .group_leader = &third};

/* Begins a request in another thread as soon as there is a record that is free. */
static void begin_in_third(void)
{
    struct task_struct *before = current;
    if (!python_free_runner) {
        before_lock = begin_in_third;
        return;
    }
    current = &third;
    __python_request_begin_5("", "x.py", "g", 77, 1);
    current = before;
}

/* A thread ends in its request, and another thread takes the record meanwhile: that one's request
 * stays open. */
static void of_a_record_taken_at_once(void)
{
    begin_program(20);
    third.pid = third.tgid = 21;
    u64 dropped = __python_requests_thread_ended_0();
    python_used_runners = PYTHON_RUNNERS; /* no other record */
    u32 all = python_free_runner;
    python_free_runner = all ? python_runners[all].next : 0;
    python_runners[all].next = 0;
    u32 others = python_free_runner;
    python_free_runner = all;
    __python_request_begin_5("", "x.py", "f", 1, 1);
    sleeper.__state = TASK_DEAD;
    before_lock = begin_in_third;
    __python_request_switch_3(1, 0, 0);
    before_lock = NULL;
    expect(dropped + 1, __python_requests_thread_ended_0(), "ended with a thread");
    expect(1, __python_requests_open_0(), "open");
    current = &third;
    expect(1, python_find_runner() != NULL, "the other thread's record");
    __python_request_end_5("x.py", "g", 77, 0, 0);
    expect(0, __python_requests_open_0(), "open");
    python_runners[all].next = others;
}

/* A process ends, or executes another program, whose tasks have the same addresses. */
static void of_ends_of_processes(void)
{
    begin_program(11);
    u64 dropped = __python_requests_thread_ended_0();
    u32 before = held();
    begin_task(4096);
    end_step();
    begin_task(8192);
    end_step();
    __python_request_task_ready_1(12288);
    sleeper.self_exec_id++;
    begin_task(4096);
    expect(3, __python_requests_open_0(), "open");
    /* another thread ends, first with the process alive, then while this one ends in a step */
    sleeper.__state = TASK_DEAD;
    sleeper.pid = 12;
    for (threads.live.counter = 1; threads.live.counter >= 0; threads.live.counter--) {
        __python_request_switch_3(1, 0, 0);
        expect(threads.live.counter ? 3 : 1, __python_requests_open_0(), "open");
    }
    threads.live.counter = 0;
    sleeper.pid = 11;
    __python_request_switch_3(1, 0, 0);
    expect(dropped + 3, __python_requests_thread_ended_0(), "ended with their process");
    expect(0, __python_requests_open_0(), "open");
    expect(before, held(), "held by a process that has ended");
    for (u32 number = 1; number < python_used_lives; number++)
        expect(0, (u64)python_lives[number].process, "a task's process");
}

/* There is no room for one more thread with a request, nor for one more task. */
static void of_full_tables(void)
{
    u32 before = held();
    u64 lost = __python_requests_no_room_0(), kept = python_ended_count;
    begin_program(10);
    begin_task(4096);
    end_step();
    u32 used = python_used_runners, spare = python_free_runner;
    python_used_runners = PYTHON_RUNNERS;
    python_free_runner = 0;
    __python_request_step_begins_1(4096);
    expect(lost + 1, __python_requests_no_room_0(), "lost for want of threads");
    expect(0, __python_requests_open_0(), "open");
    python_used_runners = used;
    python_free_runner = spare;
    /* tasks that are ready */
    for (u64 task = 1; task < PYTHON_LIVES; task++)
        __python_request_task_ready_1((s64)(task << 8));
    expect(lost + 1, __python_requests_no_room_0(), "lost before the table was full");
    python_open_task(8, now_ns, "", "x.py", "t", 8);
    expect(lost + 2, __python_requests_no_room_0(), "lost for want of tasks");
    expect(0, __python_requests_open_0(), "open");
    expect(0, python_find_runner() != NULL, "the thread's record");
    expect(before, held(), "held by lost requests");
    expect(kept, python_ended_count, "requests that have ended");
}

int main(void)
{
    now_ns = 1000000;
    of_wakers();
    of_the_next_sleep();
    of_steps_without_end();
    of_ready_at_the_end_of_a_step();
    of_a_coroutine_begun_twice();
    of_a_record_taken_at_once();
    of_ends_of_processes();
    of_full_tables();
    puts(failed ? "not as expected" : "all as expected");
    return failed;
}
