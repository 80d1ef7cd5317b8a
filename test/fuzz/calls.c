/*
 * Fuzzes the open calls that the tapset keeps in the kernel (python_calls.stp): any entries and
 * returns, with any names and frames, of threads that begin, end and run other programs.  The
 * tables are small here (test/fuzz/run), so that they are full soon.
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

static void start_anew(void)
{
    memset(python_calls, 0, sizeof python_calls);
    memset(python_threads, 0, sizeof python_threads);
    memset(python_buckets, 0, sizeof python_buckets);
    memset(python_functions, 0, sizeof python_functions);
    memset(tasks, 0, sizeof tasks);
    python_free_call = python_free_thread = python_used_functions = 0;
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
        char name[] = {(char)('a' + data[1] % 5), '\0'};
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
                __python_sleep_1(data[1]);
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
            __python_call_set_note_1(data[1]);
            __python_call_note_0();
            __python_call_frame_0();
            break;
        case 8:
            number = __python_function_number_2(name, "f");
            __python_function_place_2(data[1] & 1 ? number : data[1] * 77777, 12000);
            check(python_used_functions < PYTHON_FUNCTIONS, "no end to look for");
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
        s64 told =
            __python_calls_no_room_0() + __python_calls_no_return_0() + __python_calls_no_entry_0();
        check(told >= lost, "fewer lost than before");
        lost = told;
    }
    return 0;
}
