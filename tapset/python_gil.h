/*
 * The GIL: whether a thread waits for it, and who has it meanwhile.  A part of python_objects.stp.in, which includes
 * it behind python_backtrace.h.
 *
 * A thread that waits sleeps by futex, on a condition or a mutex that is a part of the GIL (Python/ceval_gil.h,
 * take_gil() and drop_gil()); no other futex is there.
 *
 * SPDX-License-Identifier: MIT
 */

/* The GIL of the interpreter that the running thread is in. */
struct python_gil {
    unsigned long address; /* 0: not known */
    unsigned long holder;  /* the PyThreadState that has it; 0: none, or not known */
    u64 switches;          /* how often it got to another one; 0: not known */
};

/* Where it is, by the thread's PyThreadState; 0: not known. */
static unsigned long python_gil_address(const struct layout_page *layout, unsigned long state)
{
    unsigned long interpreter = python_word(state + layout->thread_interpreter), modules, type;
    if (!layout->gil_size || !interpreter)
        return 0;
    if (layout->interpreter_gil)
        return python_word(interpreter + layout->interpreter_gil);
    modules = python_word(interpreter + layout->interpreter_modules);
    type = modules ? python_word(modules + offsetof(struct python_object, type)) : 0;
    return type ? type + layout->gil_distance : 0;
}

/* The GIL with its state; 0: it can't be read. */
static int python_read_gil(struct python_gil *gil, const struct layout_page *layout, unsigned long state)
{
    u32 locked = 1;
    memset(gil, 0, sizeof *gil);
    gil->address = python_gil_address(layout, state);
    if (!gil->address || !python_read(&gil->holder, gil->address + layout->gil_holder, sizeof gil->holder) ||
        (layout->gil_locked && !python_read(&locked, gil->address + layout->gil_locked, sizeof locked)) ||
        (layout->gil_switches && !python_read(&gil->switches, gil->address + layout->gil_switches, sizeof gil->switches)))
        return 0;
    if (locked != 1)
        gil->holder = 0;
    return 1;
}

/* In a context switch, or while the thread sleeps: the futex on which its system call waits; 0: that is another one. */
static unsigned long python_futex(void)
{
    struct pt_regs *registers = task_pt_regs(current);
    unsigned long arguments[6];
    if (!current->mm || syscall_get_nr(current, registers) != __NR_futex)
        return 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 1, 0)
    syscall_get_arguments(current, registers, arguments);
#else
    syscall_get_arguments(current, registers, 0, 6, arguments);
#endif
    return arguments[0];
}

/* In a context switch: the GIL for which the running thread goes to sleep on this futex, and what is in it; 0: it does
 * not. */
static unsigned long python_waits_for_gil(unsigned long futex, unsigned long *holder, u64 *switches)
{
    struct layout_page layout;
    struct python_gil gil;
    unsigned long state;
    if (!futex || !python_read_layout(&layout) || !python_read_state(&layout, current, &state) || !state ||
        !python_read_gil(&gil, &layout, state) || futex - gil.address >= layout.gil_size)
        return 0;
    *holder = gil.holder;
    *switches = gil.switches;
    return gil.address;
}

/* The GIL that the running thread has; 0: it has none. */
static unsigned long python_has_gil(void)
{
    struct layout_page layout;
    struct python_gil gil;
    unsigned long state;
    if (!current->mm || !python_read_layout(&layout) || !python_read_state(&layout, current, &state) || !state ||
        !python_read_gil(&gil, &layout, state) || gil.holder != state)
        return 0;
    return gil.address;
}
