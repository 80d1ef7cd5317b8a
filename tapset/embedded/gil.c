/*
 * Finds the GIL, the thread that holds it, and whether the running thread waits for it.  A thread that waits for the
 * GIL sleeps on a futex, of a condition or a mutex within struct _gil_runtime_state (Python/ceval_gil.h, from 3.12 on
 * ceval_gil.c: take_gil(), drop_gil()).  The struct has no other futexes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* A GIL as it was read. */
struct python_gil {
    unsigned long address;
    unsigned long last;   /* the PyThreadState that took it last */
    unsigned long holder; /* the PyThreadState that holds it; 0: none, or unknown */
    u64 switches;         /* how often another thread took it; 0: unknown */
};

/* The address of the GIL of a PyThreadState's interpreter; 0: unknown. */
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

/* False: unreadable. */
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

/* The number of the system call in which a thread is, by its registers, and its six arguments; negative: none.  Not for
 * kernel threads, nor for threads on another CPU. */
static long python_system_call_at(struct task_struct *thread, struct pt_regs *registers, unsigned long *arguments)
{
#if defined(STAPCONF_SYSCALL_GET_ARGS_3ARGS) || LINUX_VERSION_CODE >= KERNEL_VERSION(5, 1, 0)
    syscall_get_arguments(thread, registers, arguments);
#else
    syscall_get_arguments(thread, registers, 0, 6, arguments);
#endif
    return syscall_get_nr(thread, registers);
}

static long python_system_call(unsigned long *arguments)
{
    return python_system_call_at(current, task_pt_regs(current), arguments);
}

/* The futex on which the running thread, which is leaving its CPU or sleeps, waits; 0: it is in another system call. */
static unsigned long python_futex(void)
{
    unsigned long arguments[6];
    return current->mm && python_system_call(arguments) == __NR_futex ? arguments[0] : 0;
}

/* Reads the GIL at this address or, if it is 0, that of the running thread's interpreter; false: unreadable. */
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

/* The address of that GIL, its holder and its switches, if the futex is a part of it; 0: it isn't. */
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

/* Whether the running thread, which waited for the GIL when its switches were so many, cannot have had the GIL since:
 * no thread has taken it, or only one, which is another thread. */
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

/* The address of the GIL that the running thread holds; 0: none. */
static unsigned long python_has_gil(void)
{
    struct offsets_page layout;
    struct python_gil gil;
    unsigned long state;
    return python_this_gil(&gil, &layout, 0) && python_read_state(&layout, current, &state) && gil.holder == state ?
               gil.address : 0;
}

/* Whether the thread with this PyThreadState holds the GIL; -1: unknown, or there is no GIL. */
static int python_state_has_gil(const struct offsets_page *layout, unsigned long state)
{
    struct python_gil gil = {.address = python_gil_address(layout, state)};
    u32 enabled = 1;
    if (!gil.address || !python_read_gil(&gil, layout) ||
        (layout->gil_enabled && (!python_read(&enabled, gil.address, sizeof enabled) || !enabled)))
        return -1;
    return gil.holder == state;
}

/* Whether the process is one of a free-threaded build, and runs without a GIL now. */
static int python_gil_is_off(void)
{
    struct offsets_page layout;
    struct python_gil gil;
    u32 enabled;
    return python_this_gil(&gil, &layout, 0) && layout.gil_enabled && python_read(&enabled, gil.address, sizeof enabled) && !enabled;
}

/* Warns of a Python without the shim, of a shim that has not found the GIL, or of a process that runs without one. */
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
