/*
 * Fuzzes the open calls that the tapset keeps in the kernel (python_calls.stp): any entries and
 * returns, with any names and frames, of threads that begin, end and run other programs; and the
 * stacks that they note (python_stacks.stp).  The tables are small here (test/fuzz/run), so that
 * they are full soon.
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

/* Each call is open in one thread, or free, or was never used. */
static void check_tables(void)
{
    static u8 seen[PYTHON_CALLS], seen_thread[PYTHON_THREADS];
    u32 number, bucket, call, depth, calls = 1, threads = 1;
    memset(seen, 0, sizeof seen);
    memset(seen_thread, 0, sizeof seen_thread);
    for (bucket = 0; bucket < PYTHON_THREADS; bucket++)
        for (number = python_buckets[bucket]; number; number = python_threads[number].next) {
            check(number < python_used_threads && !seen_thread[number]++, "a thread twice");
            threads++;
            depth = 0;
            for (call = python_threads[number].call; call; call = python_calls[call].caller) {
                check(call < python_used_calls && !seen[call]++, "a call twice");
                calls++;
                depth++;
            }
            check(depth == python_threads[number].depth, "another depth");
        }
    for (number = python_free_thread; number; number = python_threads[number].next) {
        check(number < python_used_threads && !seen_thread[number]++, "a free thread twice");
        threads++;
    }
    for (call = python_free_call; call; call = python_calls[call].caller) {
        check(call < python_used_calls && !seen[call]++, "a free call twice");
        calls++;
    }
    check(calls == python_used_calls && threads == python_used_threads, "some are lost");
    check(python_used_calls <= PYTHON_CALLS && python_used_threads <= PYTHON_THREADS, "too many");
}

/* What was added to stacks. */
static u64 added;

/* Each stack is found by its names, in one that is there, and held by whom it is noted; and what
 * was added is there. */
static void check_stacks(void)
{
    static u32 held[PYTHON_STACKS], inner[PYTHON_STACKS];
    u32 number, bucket, call, stacks = 1;
    u64 sum = python_no_stack;
    memset(held, 0, sizeof held);
    memset(inner, 0, sizeof inner);
    for (bucket = 0; bucket < PYTHON_THREADS; bucket++)
        for (number = python_buckets[bucket]; number; number = python_threads[number].next) {
            held[python_threads[number].ended.note]++;
            held[python_threads[number].asleep_stack]++;
            for (call = python_threads[number].call; call; call = python_calls[call].caller)
                held[python_calls[call].note]++;
        }
    for (number = python_free_stack; number; number = python_stacks[number].next, stacks++)
        check(!python_stacks[number].name, "a free stack with a name");
    for (number = 1; number < python_used_stacks; number++) {
        const struct python_stack *stack = &python_stacks[number];
        sum += stack->count;
        check(stack->held == held[number], "held by another number");
        if (!stack->name)
            continue;
        stacks++;
        inner[stack->outer]++;
        check(!stack->outer || python_stacks[stack->outer].name, "in one that is not there");
        check(python_find_stack(stack->outer, stack->name) == number, "not found");
    }
    for (number = 1; number < python_used_stacks; number++)
        check(python_stacks[number].inner == inner[number], "other stacks in it");
    check(stacks == python_used_stacks, "stacks are lost");
    check(sum == added, "what was added is lost");
}

static void start_anew(void)
{
    memset(python_stacks, 0, sizeof python_stacks);
    memset(python_stack_buckets, 0, sizeof python_stack_buckets);
    memset(python_name_buckets, 0, sizeof python_name_buckets);
    python_used_stacks = 1;
    python_free_stack = python_hand = python_seldom_name = 0;
    python_used_names = PYTHON_ALIGNED;
    added = python_no_stack = 0;
    memset(python_calls, 0, sizeof python_calls);
    memset(python_threads, 0, sizeof python_threads);
    memset(python_buckets, 0, sizeof python_buckets);
    memset(tasks, 0, sizeof tasks);
    python_free_call = python_free_thread = 0;
    python_used_calls = python_used_threads = 1;
    python_swept = 0;
    now_ns = jiffies = 1000;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = (struct task_struct){.mm = &current_mm, .pid = 100 + i * 3, .start_time = 1};
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static s64 lost;
    start_anew();
    __python_calls_with_cpu_time_0();
    for (; size >= 2; data += 2, size -= 2) {
        char name[4] = {(char)('a' + data[1] % 5), '\0'};
        s64 frame = data[1] >> 5, number;
        u64 passed = data[1] * 1000;
        switch (data[0] % 16) {
        case 0: /* another one runs */
            current = &tasks[data[1] % TASKS];
            break;
        case 1: /* time passes, some of it on the CPU */
            now_ns += passed;
            jiffies += data[1];
            current->se.sum_exec_runtime += passed / 2;
            break;
        case 2: /* it ends, and another one has its number, or nobody */
            current->start_time = now_ns;
            current->pid =
                data[1] & 1 ? current->pid : 200 + (int)(current - tasks) * 256 + data[1];
            current->se.sum_exec_runtime = 0;
            break;
        case 3:
            current->self_exec_id++;
            break;
        case 4:
            current->on_rq = data[1] & 1;
            current->__state = data[1] >> 1;
            if (__python_will_sleep_0())
                __python_sleep_1(
                    __python_stack_open_lines_1(data[1] & 4 ? "inner\nouter\n" : name));
            break;
        case 5:
            number = __python_slept_1(data[1] & 1);
            check(number >= 0, "less than no sleep");
            check(number == 0 || __python_slept_stack_0() >= 0, "its stack");
            break;
        case 6:
            for (number = 0; (number = __python_next_asleep_1(number));) {
                check(number < PYTHON_THREADS, "a thread that is none");
                __python_asleep_time_1(number);
                __python_asleep_stack_1(number);
            }
            __python_asleep_time_1(-1);
            break;
        case 7:
            number = __python_call_note_0();
            snprintf(name, sizeof name, "%d", data[1]);
            __python_call_set_note_1(__python_stack_open_3(number, "program", name));
            __python_call_frame_0();
            break;
        case 8:
            snprintf(name, sizeof name, "%d", data[1]);
            if (data[1] & 1)
                __python_row_add_9(2 + (data[1] >> 7), "file", name, name, 1, 0, 0, 0, 0);
            else
                __python_stack_add_6(__python_call_ended_note_0(), 1, 0, 0, 0, 0);
            added++;
            break;
        case 9:
        case 10:
        case 11:
        case 12:
            number = __python_call_depth_0();
            if (__python_call_begin_3(name, "f", frame))
                check(__python_call_depth_0() > 0 && __python_call_depth_0() <= number + 1,
                      "depth");
            break;
        default:
            number = __python_call_end_3(name, "f", frame);
            if (number)
                check_ended((u64)number);
            break;
        }
        check_tables();
        check_stacks();
        s64 told =
            __python_calls_no_room_0() + __python_calls_no_return_0() + __python_calls_no_entry_0();
        check(told >= lost, "fewer lost than before");
        lost = told;
    }
    return 0;
}
