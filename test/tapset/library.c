/*
 * The tapset's C functions as a library, with which a Python reads itself as a probe's handler
 * would, without a kernel.  test/host/library.bats makes tapset.h from the tapset
 * (test/fuzz/tapset.awk); each function can be called by its name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tapset.h"

#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

/* Checks once for each copy whether a page exists. */
static int user_byte(unsigned long address)
{
    static unsigned long reads, page;
    if (reads != user_reads || page != address / PAGE_SIZE) {
        unsigned char byte;
        struct iovec ours = {&byte, 1}, its = {(void *)address, 1};
        if (process_vm_readv(getpid(), &ours, 1, &its, 1, 0) != 1)
            return -1;
        reads = user_reads;
        page = address / PAGE_SIZE;
    }
    return *(volatile unsigned char *)address;
}

/* ---------------------------------------------------------------- the threads */

enum { TASKS = 4 };
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

static void *thread_pointer(void)
{
#ifdef __x86_64__
    return (void *)pthread_self();
#else
    return __builtin_thread_pointer();
#endif
}

/* From now on this thread runs, of a process that was started by another thread, with that program.
 */
void run_thread(int number, int parent, int pid, int start_time, int execs, const char *program)
{
    static struct file file;
    static __typeof__(*file.f_path.dentry) name;
    name.d_name.name = (const unsigned char *)program;
    file.f_path.dentry = &name;
    current_mm.exe_file = &file;
    current = &tasks[number];
    current->mm = &current_mm;
    current->pid = current->tgid = pid;
    current->start_time = (u64)start_time;
    current->self_exec_id = (u64)execs;
    current->real_parent = &tasks[parent];
}

/* Time passes, and some of it the thread that runs is on the CPU. */
void pass(int ns, int on_cpu)
{
    now_ns += (u64)ns;
    current->se.sum_exec_runtime += (u64)on_cpu;
}

/* The scheduler's state of the thread that runs. */
void leave_cpu(int is_queued, int state)
{
    current->on_rq = is_queued;
    current->__state = (unsigned)state;
}

/* The calling thread is the one that runs, as the kernel knows it. */
void run_here(void)
{
    current->thread.fsbase = current->thread.tpidr_el0 = (unsigned long)thread_pointer();
}

void set_target(int pid)
{
    _stp_target = pid;
}

/* What was printed since the last time. */
const char *take_printed(void)
{
    printed[printed_length] = '\0';
    printed_length = 0;
    return printed;
}

/* How many bytes of the process were read since the last time. */
unsigned long take_bytes(void)
{
    unsigned long bytes = user_bytes;
    user_bytes = 0;
    return bytes;
}
