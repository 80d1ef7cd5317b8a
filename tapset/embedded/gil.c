/*
 * The GIL: whether a thread waits for it, and who has it meanwhile.
 *
 * A thread that waits sleeps by futex, on a condition or a mutex that is a part of the GIL (Python/ceval_gil.h,
 * take_gil() and drop_gil()); no other futex is there.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* What is in a GIL. */
struct python_gil {
    unsigned long address;
    unsigned long last;   /* the PyThreadState that took it last */
    unsigned long holder; /* the holder's; 0: there is none, or it is not known */
    u64 switches;         /* how often it got to another one; 0: not known */
};

/* Where the GIL of a thread's interpreter is, by its PyThreadState; 0: not known. */
static unsigned long python_gil_address(const struct offsets_page *layout, unsigned long state)
{
    unsigned long interpreter = python_word(state + layout->tstate_interp), modules, type;
    if (!layout->gil_size || !interpreter)
        return 0;
    if (layout->interp_gil)
        return python_word(interpreter + layout->interp_gil);
    modules = python_word(interpreter + layout->interp_modules);
    type = modules ? python_word(modules + offsetof(struct PyObject_head, ob_type)) : 0;
    return type ? type + layout->gil_from_dict_type : 0;
}

/* 0: it can't be read. */
static int python_read_gil(struct python_gil *gil, const struct offsets_page *layout)
{
    u32 locked = 1;
    gil->switches = 0;
    if (!python_read(&gil->last, gil->address + layout->gil_last_holder, sizeof gil->last) ||
        (layout->gil_locked && !python_read(&locked, gil->address + layout->gil_locked, sizeof locked)) ||
        (layout->gil_switch_number && !python_read(&gil->switches, gil->address + layout->gil_switch_number, sizeof gil->switches)))
        return 0;
    gil->holder = locked == 1 ? gil->last : 0;
    return 1;
}

/* The system call that the running thread, one of a process, is in, with its six arguments; less than 0: none. */
static long python_system_call(unsigned long *arguments)
{
    struct pt_regs *registers = task_pt_regs(current);
#if defined(STAPCONF_SYSCALL_GET_ARGS_3ARGS) || LINUX_VERSION_CODE >= KERNEL_VERSION(5, 1, 0)
    syscall_get_arguments(current, registers, arguments);
#else
    syscall_get_arguments(current, registers, 0, 6, arguments);
#endif
    return syscall_get_nr(current, registers);
}

/* In a context switch, or while the thread sleeps: the futex on which its system call waits; 0: that is another one. */
static unsigned long python_futex(void)
{
    unsigned long arguments[6];
    return current->mm && python_system_call(arguments) == __NR_futex ? arguments[0] : 0;
}

/* The GIL of the running thread's interpreter, or the known one at this address; 0: it can't be read. */
static int python_this_gil(struct python_gil *gil, struct offsets_page *layout, unsigned long known)
{
    unsigned long state;
    if (!current->mm || !python_read_layout(layout))
        return 0;
    gil->address = known;
    if (!known && python_read_state(layout, current, &state) && state)
        gil->address = python_gil_address(layout, state);
    return gil->address && python_read_gil(gil, layout);
}

/* The address of that GIL, if this futex is a part of it, and what is in it; 0: it is not. */
static unsigned long python_gil_waited_for(unsigned long futex, unsigned long known, unsigned long *holder, u64 *switches)
{
    struct offsets_page layout;
    struct python_gil gil;
    if (!futex || !python_this_gil(&gil, &layout, known) || futex - gil.address >= layout.gil_size)
        return 0;
    *holder = gil.holder;
    *switches = gil.switches;
    return gil.address;
}

/* Whether the running thread, which waited for the GIL when that had got to another thread so often, cannot have had it
 * since then: at most one has got it, another one. */
static int python_cannot_have_had_gil(unsigned long known, u64 switches)
{
    struct offsets_page layout;
    struct python_gil gil;
    unsigned long state;
    if (!switches || !python_this_gil(&gil, &layout, known))
        return 0;
    return gil.switches == switches ||
           (gil.switches == switches + 1 && python_read_state(&layout, current, &state) && gil.last != state);
}

/* The GIL that the running thread has; 0: it has none. */
static unsigned long python_has_gil(void)
{
    struct offsets_page layout;
    struct python_gil gil;
    unsigned long state;
    return python_this_gil(&gil, &layout, 0) && python_read_state(&layout, current, &state) && gil.holder == state ?
               gil.address : 0;
}

/* Whether the running thread's process is one of a free-threaded build, in which there is no GIL now. */
static int python_gil_is_off(void)
{
    struct offsets_page layout;
    struct python_gil gil;
    u32 enabled;
    return python_this_gil(&gil, &layout, 0) && layout.gil_enabled && python_read(&enabled, gil.address, sizeof enabled) && !enabled;
}

/* Says of a Python that it has no shim, or one that has not found the GIL; or that the process has none. */
static void python_warn_no_gil(void)
{
    struct offsets_page layout;
    static int said, said_off;
    if (!current->mm)
        return;
    if (!python_read_layout(&layout))
        python_warn_no_shim();
    else if (layout.gil_size) {
        if (!READ_ONCE(said_off) && python_gil_is_off() && !xchg(&said_off, 1))
            _stp_warn("process %d, and perhaps others, runs without a GIL: no thread waits for it", current->tgid);
    } else if (layout.tstate_tls && !xchg(&said, 1))
        _stp_warn("the shim has not found the GIL of process %d, and perhaps of others: it is not as in any release",
                  current->tgid);
}
