/*
 * The tapset's C functions as a library, with which a Python reads itself as a probe's handler
 * would, without a kernel.  test/tapset/functions makes tapset.h from the tapset; each
 * function can be called by its name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tapset.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* Another thread may give memory back meanwhile, so that it must not be touched: what is left of a
 * page is copied with each read. */
static int user_byte(unsigned long address)
{
    static unsigned char page[PAGE_SIZE];
    static unsigned long reads, first, end;
    static int memory = -1;
    if (memory < 0)
        memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (reads != user_reads || address < first || address >= end) {
        struct iovec ours = {page, PAGE_SIZE - address % PAGE_SIZE},
                     its = {(void *)address, ours.iov_len};
        ssize_t size = process_vm_readv(getpid(), &ours, 1, &its, 1, 0);
        if (size < 0 && errno == ENOSYS) /* in QEMU's user emulation */
            size = pread(memory, page, ours.iov_len, (off_t)address);
        if (size <= 0)
            return -1;
        reads = user_reads;
        first = address;
        end = address + (unsigned long)size;
    }
    return page[address - first];
}

/* ---------------------------------------------------------------- what is mapped */

struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long address)
{
    static struct vm_area_struct part;
    static struct inode inode;
    static struct super_block device;
    static struct file file;
    static struct dentry dentry;
    static char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    (void)mm;
    inode.i_sb = &device;
    file.f_inode = &inode;
    file.f_path.dentry = &dentry;
    while (!found && maps && fgets(line, sizeof line, maps)) {
        unsigned major, minor;
        char *name = strrchr(line, '/');
        if (sscanf(line, "%lx-%lx %*s %lx %x:%x %lu", &part.vm_start, &part.vm_end, &part.vm_pgoff,
                   &major, &minor, &inode.i_ino) != 6)
            abort();
        part.vm_pgoff >>= PAGE_SHIFT;
        device.s_dev = major << 20 | minor;
        part.vm_file = inode.i_ino ? &file : NULL;
        line[strcspn(line, "\n")] = '\0';
        dentry.d_name.name = (const unsigned char *)(name ? name + 1 : "");
        found = part.vm_end > address;
    }
    if (maps)
        fclose(maps);
    return found ? &part : NULL;
}

/* The innermost of the stacks that extend this one. */
static s64 innermost(s64 stack)
{
    for (u32 number = 1; number < python_used_stacks; number++)
        if (python_stacks[number].name && python_stacks[number].outer == stack)
            return innermost(number);
    return stack;
}

/* Where a thread is interrupted at this address with this stack, and the kernel in so many
 * functions, below which the interrupt has so many of its own: the stack that is counted. */
s64 interrupt_at(s64 stack, unsigned long address)
{
    struct pt_regs regs = {.ip = address};
    interrupted.user_mode_p = 1;
    interrupted.uregs = &regs;
    interrupted.kregs = NULL;
    __python_stack_add_interrupted_4(stack, 1, 1, 0);
    return innermost(stack);
}

s64 interrupt_kernel(s64 stack, unsigned long own, unsigned long count)
{
    struct pt_regs regs = {.ip = 1000};
    interrupted.user_mode_p = 0;
    interrupted.uregs = NULL;
    interrupted.kregs = &regs;
    for (unsigned long i = 0; i < own + count; i++)
        kernel_addresses[i] = 1000 + (i - own) * 10;
    kernel_addresses_count = own + count;
    __python_stack_add_interrupted_4(stack, 1, 1, 0);
    return innermost(stack);
}

/* Whether a word that is never NULL, a thread state's interpreter, is read as that of the JIT. */
void pretend_jit(int on)
{
    struct offsets_page *page = (struct offsets_page *)OFFSETS_ADDRESS;
    if (mprotect(page, PAGE_SIZE, PROT_READ | PROT_WRITE) != 0)
        abort();
    page->tstate_current_executor = on ? 16 : 0;
}

/* ---------------------------------------------------------------- the threads */

enum { TASKS = 32 };
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
#elif defined(__powerpc__) /* gcc 12 doesn't know it there, nor does the tapset */
    return NULL;
#else
    return __builtin_thread_pointer();
#endif
}

/* From now on this thread runs, of a process that was started by another thread, with that program.
 */
void run_thread(int number, int parent, int pid, int start_time, int execs, const char *program)
{
    static struct file file;
    static struct dentry name;
    name.d_name.name = (const unsigned char *)program;
    file.f_path.dentry = &name;
    current_mm.exe_file = &file;
    if (number < 0 || number >= TASKS)
        abort();
    current = &tasks[number];
    current->mm = &current_mm;
    current->pid = current->tgid = pid;
    current->start_time = (u64)start_time;
    current->self_exec_id = (u64)execs;
    current->real_parent = &tasks[parent];
    current->group_leader = current;
    snprintf(current->comm, sizeof current->comm, "%s", program);
}

/* The thread that runs is one of this process's. */
void join_process(int pid)
{
    current->tgid = pid;
}

/* The process has so many threads like the one that runs. */
void have_threads(int count)
{
    process_threads = count;
}

/* Time passes, and some of it the thread that runs is on the CPU. */
void pass(int ns, int on_cpu)
{
    now_ns += (u64)ns;
    current->se.sum_exec_runtime += (u64)on_cpu;
}

/* The thread that runs is to run, but has no CPU from now on; or it has one again. */
void queue(int waits)
{
    if (!waits)
        current->sched_info.run_delay += now_ns - current->sched_info.last_queued;
    current->sched_info.last_queued = waits ? now_ns : 0;
}

/* The scheduler's state of the thread that runs. */
void leave_cpu(int is_queued, int state)
{
    current->on_rq = is_queued;
    current->__state = (unsigned)state;
}

/* The thread that runs is in this system call, with this argument; -1: in none. */
void enter_system_call(int number, unsigned long argument)
{
    system_call = (struct pt_regs){.number = number, .arguments = {argument}};
}

/* What it will do, and what it has done: its stack, nanoseconds of its sleep and of its wait for a
 * CPU behind that. */
int leaves_cpu(void)
{
    return python_leaves_cpu();
}

int begin_sleep(unsigned stack, int queued, u64 since)
{
    return python_begin_sleep(stack, queued, since);
}

static void put_slept(u64 *to, struct python_sleep_time sleep)
{
    to[0] = sleep.stack;
    to[1] = sleep.slept;
    to[2] = sleep.queued;
    to[3] = sleep.off;
    to[4] = sleep.ran;
    to[5] = sleep.until;
}

void end_sleep(u64 *to)
{
    put_slept(to, python_end_sleep());
}

u64 count_cpu(void)
{
    return python_count_cpu(python_cpu_now());
}

unsigned next_asleep(u64 *to, unsigned number)
{
    put_slept(to, python_next_asleep(&number));
    return number;
}

/* How the kernel numbers it. */
int futex_number(void)
{
    return __NR_futex;
}

/* The calling thread is the one that runs, as the kernel knows it. */
void run_here(void)
{
    current->thread.fsbase = current->thread.tpidr_el0 = (unsigned long)thread_pointer();
}

/* A second passes. */
void pass_second(void)
{
    jiffies += HZ;
}

/* For gc.callbacks: the stack of the thread that runs, with functions of the user's as of
 * __python_stack_open_here(). */
s64 taken;
int taken_user;
void take_stack(void *phase, void *info)
{
    (void)phase;
    (void)info;
    taken = __python_stack_take_and_hold_3("", 0, taken_user);
}

void set_target(int pid)
{
    _stp_target = pid;
}

/* The frame of the innermost open call. */
s64 innermost_frame(void)
{
    return python_innermost_call()->frame;
}

/* The GIL, if the thread that runs has it. */
s64 gil_here(void)
{
    return (s64)python_has_gil();
}

/* The thread that runs leaves its CPU while no thread has the GIL, which this thread has. */
void switch_without_holder(s64 sleeps)
{
    struct offsets_page layout;
    char *gil = (char *)python_has_gil();
    if (!gil || !python_read_layout(&layout))
        abort();
    void **holder = (void **)(gil + layout.gil_last_holder), *held = *holder;
    int *locked = (int *)(gil + layout.gil_locked);
    if (layout.gil_locked)
        *locked = 0;
    else /* 3.6 */
        *holder = NULL;
    __python_gil_switch_here_4(sleeps, 0, 0, 0);
    if (layout.gil_locked)
        *locked = 1;
    else
        *holder = held;
}

/* Whether the thread that runs is one of a process without a GIL. */
int gil_is_off(void)
{
    return python_gil_is_off();
}

/* How many reads of the process there were since the last time. */
unsigned long take_reads(void)
{
    static unsigned long before;
    unsigned long reads = user_reads - before;
    before = user_reads;
    return reads;
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
