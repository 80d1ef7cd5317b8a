/*
 * Fuzzes the tapset's functions that read the memory of the traced process in the kernel:
 * python_argstr(), python_backtrace(), print_python_backtrace(), python_version(), and the stacks
 * of names.  The input is all memory of a process, which controls its contents, those of the layout
 * page too.
 *
 * Each function must stay within its string, terminate it, print no control characters of a
 * terminal, and end soon.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tapset.h"

static const uint8_t *memory;
static size_t memory_size;

/* The start of an input. */
struct head {
    struct offsets_page layout;
    u64 object;
    u8 depth, has_layout;
};

enum { LOW = 0x1000 };
static struct head head;

/* The layout page; from LOW on the input, once; and from 1 TB to 128 TB the input repeatedly: the
 * memory of a process may be of any size. */
static int user_byte(unsigned long address)
{
    unsigned long at = address - (head.has_layout & 16 ? OFFSETS_LOW_ADDRESS : OFFSETS_ADDRESS);
    if (at < PAGE_SIZE)
        return head.has_layout & 1 ? at < sizeof head.layout ? ((u8 *)&head.layout)[at] : 0 : -1;
    if (address - LOW < memory_size)
        return memory[address - LOW];
    return memory_size && address >= 1UL << 40 && address < 1UL << 47
               ? memory[address % memory_size]
               : -1;
}

/* All of it is one file's, in parts of 4 MB, where the object is in the second. */
struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long address)
{
    static struct super_block device;
    static struct inode inode = {.i_sb = &device};
    static struct dentry name = {.d_name = {.name = (const unsigned char *)"\033]0;lib.so"}};
    static struct file file = {.f_path = {.dentry = &name}, .f_inode = &inode};
    static struct vm_area_struct part = {.vm_file = &file};
    (void)mm;
    part.vm_start = address & ~0x3fffffUL;
    part.vm_end = part.vm_start + 0x400000;
    part.vm_pgoff = address >= head.object ? 1 : 0;
    inode.i_ino++;
    return head.has_layout & 8 ? NULL : &part;
}

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "objects: %s\n", what);
    abort();
}

/* Control characters are escaped, and characters are whole. */
static void check_text(const char *text, const char *function)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int more = *c < 0x80 ? 0 : *c < 0xe0 ? 1 : *c < 0xf0 ? 2 : 3;
        u32 value = more ? *c & (0x3f >> more) : *c;
        check(*c < 0x80 || (*c >= 0xc2 && *c < 0xf5), function);
        for (c++; more; more--, c++) {
            check((*c & 0xc0) == 0x80, function);
            value = value << 6 | (*c & 0x3f);
        }
        check(value == '\n' || (value >= 0x20 && (value < 0x7f || value >= 0xa0)), function);
        check(value < 0xd800 || (value >= 0xe000 && value <= 0x10ffff), function);
    }
}

/* A string of SystemTap's size, whose end ASan checks. */
static char *room(void)
{
    char *string = malloc(MAXSTRINGLEN);
    check(string, "no memory");
    memset(string, 'x', MAXSTRINGLEN);
    return string;
}

/* FUZZ_SHOW=1: the result of an input. */
static void show(const char *text)
{
    static int wanted = -1;
    if (wanted < 0)
        wanted = getenv("FUZZ_SHOW") != NULL;
    if (wanted)
        fprintf(stderr, "%s\n", text);
}

static void check_string(char *string, const char *function)
{
    check(memchr(string, '\0', MAXSTRINGLEN), function);
    check_text(string, function);
    show(string);
    free(string);
}

/* So many reads take some milliseconds, during which others may wait. */
static void check_effort(unsigned long most, const char *function)
{
    check(user_reads <= most, function);
    user_reads = user_bytes = 0;
}

/* What the thread was in, by the symbols in its memory. */
static void check_interrupted(void)
{
    struct pt_regs regs = {.ip = head.object};
    s64 stack = __python_stack_open_3(0, "program", "f");
    interrupted.user_mode_p = 1;
    interrupted.uregs = &regs;
    __python_stack_add_interrupted_4(stack, 1, 1, 0);
    __python_stack_close_1(stack);
    check_effort(5000, "__python_stack_add_interrupted");
}

struct task_struct *task_of(pid_t pid)
{
    return pid == first_task.pid ? &first_task : NULL;
}

/* The thread that has the GIL of this memory, or none; and waits for it meanwhile, once as another
 * thread. */
static void check_gil(void)
{
    static pid_t threads;
    unsigned long gil = python_has_gil();
    system_call =
        (struct pt_regs){.number = SYS_futex, .arguments = {gil ? gil + 40 : head.object}};
    for (int i = 0; i < 2; i++) {
        first_task.pid = first_task.tgid = 1 + threads++ % 16;
        first_task.start_time = threads / 5;
        __python_gil_switch_here_4(i || head.depth & 1, head.depth % 3, head.depth >> 7, i);
        check_effort(500000, "__python_gil_switch");
        now_ns += 3000000 + head.depth;
        first_task.pid = 1 + threads++ % 16;
        __python_gil_tick_2(head.depth % 3, head.depth >> 7);
        check_effort(500000, "__python_gil_tick");
    }
    if (threads % 64 == 0)
        __python_gil_second_0();
    for (s64 number = 0; (number = __python_gil_next_1(number));)
        check(__python_gil_all_1(number) < now_ns * 16, "the time of waits");
    system_call = (struct pt_regs){.number = -1};
    first_task.pid = first_task.tgid = 1;
}

/* The tasks of asyncio. */
static void check_tasks(void)
{
    char *string = room();
    python_task_0(string);
    check_string(string, "python_task");
    check_effort(200000, "python_task");
    printed_length = 0;
    printed[0] = '\0';
    print_python_tasks_1((signed char)head.depth);
    check_text(printed, "print_python_tasks");
    show(printed);
    check_effort(1000000, "print_python_tasks");
}

/* What is read of the running thread, whose own address the process may set. */
static void check_running(void)
{
    static struct dentry name = {.d_name = {.name = (const unsigned char *)"python3"}};
    static struct file program = {.f_path = {.dentry = &name}};
    void (*const strings[])(char *) = {python_funcname_0, python_filename_0, python_modulename_0,
                                       python_thread_name_0};
    current_mm.exe_file = &program;
    strcpy(current->comm, "\033]0;x");
    jiffies += HZ;
    current->thread.fsbase = current->thread.tpidr_el0 = head.object;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        char *string = room();
        strings[i](string);
        check_string(string, "python_funcname");
        check_effort(100000, "python_funcname");
    }
    void (*const values[])(char *, s64) = {__python_args_1, __python_locals_1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char *string = room();
        values[i](string, 0);
        check_string(string, "python_args");
        check_effort(200000, "python_args");
    }
    const char *const paths[] = {"self.x", "rows[1].x", "rows[-1]", "cell['__name__']",
                                 "self.__name__[0].x"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *string = room();
        __python_local_2(string, i ? 0 : __python_caller_2(0, head.depth), paths[i]);
        check_string(string, "python_local");
        check_effort(200000, "python_local");
        __python_int_1(__python_local_object_2(0, paths[i]));
        check_effort(200000, "python_local_int");
    }
    python_lineno_0();
    check_effort(500000, "python_lineno");
    check_text(warned, "python_warn_no_shim");
    char *string = room();
    python_backtrace_2(string, 0, 1LL << 40);
    check_string(string, "python_backtrace");
    check_effort(500000, "python_backtrace");
    printed_length = 0;
    printed[0] = '\0';
    print_python_threads_1((signed char)head.depth);
    check_text(printed, "print_python_threads");
    check_effort(500000, "print_python_threads");
    check_tasks();
    s64 stack = __python_stack_take_and_hold_3("program", head.depth % 3, head.depth >> 7);
    check(stack >= -2 && stack < PYTHON_STACKS, "__python_stack_take_and_hold");
    check_effort(500000, "__python_stack_take_and_hold");
    __python_stack_close_1(stack);
    check_interrupted();
    check_gil();
}

/* A string of JSON; what is behind it. */
static const char *check_json(const char *text)
{
    check(*text++ == '"', "a string of JSON");
    for (; *text != '"'; text++) {
        check((u8)*text >= 0x20, "a control character in JSON");
        if (*text != '\\')
            continue;
        text++;
        check(*text && strchr("\"\\u", *text), "an escape of JSON");
        if (*text == 'u')
            check(strspn(text + 1, "0123456789abcdef") >= 4, "a character of JSON");
    }
    return text + 1;
}

/* Names of any bytes as JSON. */
static void check_json_of(const char *name)
{
    char *string = room();
    __python_json_1(string, name);
    check(*check_json(string) == '\0', "the end of a string of JSON");
    check_string(string, "json");
    printed_length = 0;
    __python_json_print_1(name);
    check(*check_json(printed) == '\0', "the end of a printed string of JSON");
    check_text(printed, "json_print");
}

static void check_json_array(const char *text)
{
    char separator = '[';
    if (strcmp(text, "[]") == 0)
        return;
    while (*text == separator) {
        text = check_json(text + 1);
        separator = ',';
    }
    check(strcmp(text, "]") == 0, "an array of JSON");
}

/* Stacks of names that the process controls. */
static void check_stacks(const uint8_t *data, size_t size)
{
    static u64 sum;
    s64 stack = 0, number, count;
    char name[16];
    for (; size; data++, size--) {
        size_t length = min_t(size_t, size - 1, *data % sizeof name);
        memcpy(name, data + 1, length);
        name[length] = '\0';
        /* Any number, even of no stack. */
        check_json_of(name);
        number = __python_stack_open_3(*data & 0x80 ? stack : *data, "program", name);
        check(number >= 0 && number < PYTHON_STACKS, "open");
        __python_stack_close_1(number);
        stack = number;
        __python_stack_add_6(*data & 0x40 ? stack : *data, 1, *data, 0, 0, 0);
        __python_histogram_add_4("", "file", name, *data);
        sum += *data;
    }
    check(__python_stack_at_1(-1) == 0 && __python_stack_at_1(PYTHON_STACKS) == 0, "at");
    if (sum % 64)
        return;
    count = __python_stacks_sort_1(0);
    __python_stacks_sort_names_1(sum % 100);
    for (number = 0; number < min_t(s64, count, 8); number++) {
        printed_length = 0;
        __python_stack_print_1(__python_stack_at_1(number));
        __python_stack_print_lines_1(__python_stack_at_1(number));
        __python_histogram_print_1(__python_stack_at_1(number));
        printed_length = 0;
        __python_json_print_names_2(__python_stack_at_1(number), 0);
        check_json_array(printed);
        printed_length = 0;
        __python_speedscope_frames_1(number);
        __python_speedscope_samples_5(name, "none", number, 1, 1);
        __python_histogram_print_json_1(__python_stack_at_1(number));
        char *string = room();
        __python_stack_name_2(string, __python_stack_at_1(number), (signed char)sum);
        check(memchr(string, '\0', MAXSTRINGLEN), "name");
        free(string);
        check(__python_stack_count_1(__python_stack_at_1(number)) > 0, "count");
        check(__python_stack_longest_1(__python_stack_at_1(number)) <=
                  __python_stack_sum_2(__python_stack_at_1(number), 0),
              "longest");
    }
}

/* An object as a value. */
static void check_object(void)
{
    void (*const texts[])(char *, s64) = {__python_repr_1, __python_typename_1};
    char *string;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        string = room();
        texts[i](string, (s64)head.object);
        check_string(string, "python_repr");
        check_effort(200000, "python_repr");
    }
    string = room();
    __python_str_1(string, (s64)head.object); /* control characters as they are */
    check(memchr(string, '\0', MAXSTRINGLEN), "python_str");
    free(string);
    __python_int_1((s64)head.object);
    check_effort(1000, "python_int");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < sizeof head)
        return 0;
    memcpy(&head, data, sizeof head);
    memory_size = size - sizeof head;
    /* A copy, so that ASan sees reads beyond the end. */
    uint8_t *copy = malloc(memory_size + 1);
    check(copy, "no memory");
    memcpy(copy, data + sizeof head, memory_size);
    memory = copy;
    user_reads = user_bytes = 0;

    char *string = room();
    python_argstr_1(string, (s64)head.object);
    check_string(string, "python_argstr");
    check_effort(100000, "python_argstr");

    check_object();

    string = room();
    python_backtrace_2(string, (s64)head.object, (signed char)head.depth);
    check_string(string, "python_backtrace");
    check_effort(500000, "python_backtrace");

    string = room();
    python_backtrace_2(string, (s64)head.object, 1LL << 40);
    check_string(string, "python_backtrace");
    check_effort(500000, "python_backtrace");

    printed_length = 0;
    printed[0] = '\0';
    print_python_backtrace_2((s64)head.object, head.has_layout & 2 ? 1LL << 40 : head.depth);
    check_text(printed, "print_python_backtrace");
    show(printed);
    check_effort(500000, "print_python_backtrace");

    string = room();
    python_version_0(string);
    check(memchr(string, '\0', MAXSTRINGLEN), "python_version");
    check_text(string, "python_version");
    free(string);
    check_running();
    if (head.has_layout & 4)
        check_stacks(memory, memory_size);
    free(copy);
    return 0;
}
