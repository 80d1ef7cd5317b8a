/*
 * Fuzzes the open calls that the tapset keeps in the kernel (python_calls.stp): any entries and
 * returns, with any names and frames, of threads that begin, end, fork and execute other programs;
 * and the stacks that they note (python_stacks.stp).  The tables are small here
 * (test/long/fuzz/run), so that they fill up soon.
 *
 * SPDX-License-Identifier: MIT
 */
#include "calls_tapset.h"

static int user_byte(unsigned long address)
{
    (void)address;
    return -1;
}

enum { TASKS = 12 };
static struct task_struct tasks[TASKS];

struct task_struct *task_of(pid_t pid)
{
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].pid == pid)
            return &tasks[i];
    return NULL;
}

static unsigned long long cpu_clock(struct task_struct *task)
{
    return task->se.sum_exec_runtime;
}

void *kallsyms_lookup_name(const char *name)
{
    return strcmp(name, "task_sched_runtime") == 0 ? (void *)cpu_clock : NULL;
}

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

#include "calls_tables.h"

/* What was added to stacks. */
static u64 added;

static void hold_notes(u32 call, u32 *held)
{
    for (; call; call = python_calls[call].caller)
        held[python_calls[call].note]++;
}

/* Each stack is found by its names, its outer one exists, it is held as often as it is noted, and
 * all that was added is there. */
static void check_stacks(void)
{
    static u32 held[PYTHON_STACKS], inner[PYTHON_STACKS];
    u32 number, bucket, stacks = 1;
    u64 sum = python_no_stack;
    memset(held, 0, sizeof held);
    memset(inner, 0, sizeof inner);
    for (bucket = 0; bucket < PYTHON_THREADS; bucket++)
        for (number = python_buckets[bucket]; number; number = python_threads[number].next) {
            held[python_threads[number].ended.note]++;
            held[python_threads[number].asleep_stack]++;
            hold_notes(python_threads[number].open.call, held);
            hold_notes(python_threads[number].forked.call, held);
            hold_notes(python_threads[number].aside, held);
        }
    for (number = python_free_stack; number; number = python_stacks[number].next, stacks++)
        check(!python_stacks[number].name, "a free stack with a name");
    for (number = 1; number < python_used_stacks; number++) {
        const struct python_stack *stack = &python_stacks[number];
        sum += stack->count;
        check(stack->held == held[number], "held by a wrong number");
        if (!stack->name)
            continue;
        stacks++;
        inner[stack->outer]++;
        check(!stack->outer || python_stacks[stack->outer].name, "its outer stack is missing");
        check(python_find_stack(stack->outer, stack->name) == number, "not found");
    }
    for (number = 1; number < python_used_stacks; number++)
        check(python_stacks[number].inner == inner[number], "a wrong number of inner stacks");
    check(stacks == python_used_stacks, "stacks are lost");
    check(sum == added, "what was added is lost");
}

static void start_anew(void)
{
    memset(python_stacks, 0, sizeof python_stacks);
    memset(python_stack_buckets, 0, sizeof python_stack_buckets);
    memset(python_name_buckets, 0, sizeof python_name_buckets);
    python_used_stacks = 1;
    python_free_stack = python_clock_hand = python_other_name = 0;
    python_used_names = PYTHON_ALIGNED;
    added = python_no_stack = 0;
    memset(python_calls, 0, sizeof python_calls);
    memset(python_threads, 0, sizeof python_threads);
    memset(python_buckets, 0, sizeof python_buckets);
    memset(tasks, 0, sizeof tasks);
    python_free_call = python_free_thread = 0;
    python_used_calls = python_used_threads = 1;
    python_free_calls = PYTHON_CALLS - 1;
    python_is_short = python_has_spares = python_is_sweeping = false;
    python_last_sweep = 0;
    now_ns = jiffies = 1000;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = (struct task_struct){
            .mm = &current_mm, .pid = 100 + i * 3, .start_time = 1, .real_parent = tasks};
    current = tasks;
}

static void check_ended(u64 function)
{
    s64 time = __python_call_time_0(), own = __python_call_own_time_0();
    s64 cpu = __python_call_cpu_time_0(), own_cpu = __python_call_own_cpu_time_0();
    check(function != 0, "a function without a number");
    check(own >= 0 && own <= time && (u64)time <= now_ns, "its time");
    check(own_cpu >= 0 && own_cpu <= cpu && cpu <= time, "its time on a CPU");
    __python_call_outermost_0();
    __python_call_ended_note_0();
}

/* ---- what an input is made of: two bytes for each step */

/* Another thread runs. */
static void switch_to(u8 value)
{
    current = &tasks[value % TASKS];
}

/* Time passes, some of it on the CPU. */
static void pass_time(u8 value)
{
    u64 passed = value * 1000;
    now_ns += passed;
    jiffies += value;
    current->sched_info.run_delay += value % 3 ? 0 : passed / 2;
    current->sched_info.last_queued = value % 5 ? 0 : now_ns - passed;
    current->se.sum_exec_runtime += passed / 2;
}

/* The thread ends, and another one gets its ID, or none does. */
static void replace_thread(u8 value)
{
    current->start_time = now_ns;
    current->pid = value & 1 ? current->pid : 200 + (int)(current - tasks) * 256 + value;
    current->se.sum_exec_runtime = 0;
}

/* The stack of these names, the inner one of which may be "", held as one that was read from a
 * process. */
static s64 note_stack(const char *outer, const char *inner)
{
    u32 number = python_make_stack(0, outer, strlen(outer));
    if (number && *inner)
        number = python_make_stack(number, inner, strlen(inner));
    python_note_stack(number);
    return number;
}

static void leave_cpu(u8 value)
{
    const char name[2] = {(char)('a' + value % 5), '\0'};
    current->on_rq = value & 1;
    current->__state = value >> 1;
    int leaves = python_leaves_cpu();
    if (leaves)
        python_begin_sleep((u32)(value & 4 ? note_stack("outer", "inner") : note_stack(name, "")),
                           leaves == 2, 0);
}

static void check_sleep(struct python_sleep_time sleep)
{
    check(sleep.stack < PYTHON_STACKS, "the stack of a sleep");
    check(sleep.slept <= now_ns && sleep.slept + sleep.queued <= now_ns,
          "a sleep that is too long");
}

static void come_back(void)
{
    check_sleep(python_end_sleep());
    check(!python_end_sleep().slept, "it sleeps twice");
}

static void list_sleepers(void)
{
    u32 number = 0;
    do {
        check_sleep(python_next_asleep(&number));
        check(number < PYTHON_THREADS, "a thread out of range");
    } while (number);
}

static void set_note(u8 value)
{
    char name[4];
    snprintf(name, sizeof name, "%d", value);
    __python_call_set_note_1(__python_stack_open_3(__python_call_note_0(), "program", name));
}

static void add_to_stack(u8 value)
{
    char name[4];
    snprintf(name, sizeof name, "%d", value);
    if (value & 1)
        __python_row_add_8(value & 0x80 ? "process" : "", "file", name, 1, 0, 0, 0, 0);
    else
        __python_stack_add_6(__python_call_ended_note_0(), 1, 0, 0, 0, 0);
    added++;
}

/* A child begins in its parent's calls, as far as there is room. */
static void fork_child(u8 value)
{
    struct task_struct *parent = current, *child = &tasks[value % TASKS];
    s64 frame = (s64)python_innermost_call()->frame, note = __python_call_note_0(),
        depth = __python_call_depth_0(), no_room = __python_calls_no_room_0();
    if (depth)
        __python_call_fork_0();
    if (value & 0x80 || child == parent)
        return;
    current = child;
    now_ns++;
    replace_thread(0);
    child->real_parent = parent;
    child->self_exec_id = parent->self_exec_id;
    if (value & 0x40)
        child->self_exec_id++;
    __python_call_forked_0();
    if (value & 0x40)
        check(!__python_call_depth_0(), "the calls of another program");
    else if (__python_calls_no_room_0() == no_room)
        check(__python_call_depth_0() == depth && (s64)python_innermost_call()->frame == frame &&
                  __python_call_note_0() == note,
              "the calls of a child");
    else
        check(__python_call_depth_0() < depth, "the depth of a child");
}

/* There is no room only if no call is free, or kept by a thread, or no record is free. */
static void check_full(void)
{
    if (!python_free_thread && python_used_threads == PYTHON_THREADS &&
        python_this_thread() == python_threads)
        return;
    check(!python_free_calls && !count_spares(), "there is room");
}

/* The frame of a call that begins is that of no other one set aside. */
static void begin_call(u8 value)
{
    const char name[2] = {(char)('a' + value % 5), '\0'};
    s64 depth = __python_call_depth_0();
    if (!__python_call_begin_3(name, "f", value >> 5))
        return check_full();
    check(__python_call_depth_0() > 0 && __python_call_depth_0() <= depth + 1, "depth");
    struct python_thread thread = *python_this_thread();
    check(!(value >> 5) || !*python_find_call(&thread.aside, 0, value >> 5),
          "a frame of two calls");
}

/* With a frame only that call is ended, as far as there is room for those set aside. */
static void end_call(u8 value)
{
    const char name[2] = {(char)('a' + value % 5), '\0'};
    struct python_thread before = *python_this_thread(), after;
    s64 function = __python_call_end_3(name, "f", value >> 5);
    if (!function)
        return;
    check_ended((u64)function);
    after = *python_this_thread();
    check(!(value >> 5) || after.asides == PYTHON_ASIDE ||
              after.open.depth + after.asides + 1 == before.open.depth + before.asides,
          "a return ends other calls");
}

static void step(u8 what, u8 value)
{
    switch (what % 16) {
    case 0:
        return switch_to(value);
    case 1:
        return pass_time(value);
    case 2:
        return replace_thread(value);
    case 3:
        current->self_exec_id++;
        return;
    case 4:
        return leave_cpu(value);
    case 5:
        return come_back();
    case 6:
        return list_sleepers();
    case 7:
        return set_note(value);
    case 8:
        return add_to_stack(value);
    case 9:
        return fork_child(value);
    case 10:
    case 11:
    case 12:
        return begin_call(value);
    default:
        return end_call(value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static s64 lost;
    start_anew();
    __python_calls_with_cpu_time_0();
    for (; size >= 2; data += 2, size -= 2) {
        step(data[0], data[1]);
        check_tables();
        check_stacks();
        s64 now_lost =
            __python_calls_no_room_0() + (s64)python_no_return + __python_calls_no_entry_0();
        check(now_lost >= lost, "fewer lost than before");
        lost = now_lost;
    }
    return 0;
}
