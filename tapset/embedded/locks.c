/*
 * Finds for which lock a thread sleeps, the path by which its innermost frames know the lock, and the thread that has it.
 * Up to CPython 3.13.0 a lock has the address of the semaphore on whose futex its waiters sleep.  In 3.13.5 the futex
 * is the waiter's own (Python/parking_lot.c), so that nothing is said; of an RLock from 3.14 on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* The futex on which a thread of this process sleeps; 0: it runs, or is in another system call. */
static unsigned long python_futex_of(struct task_struct *thread)
{
    unsigned long arguments[6];
    struct pt_regs registers; /* a copy: the kernel's stack of a thread that has ended may be freed */
    return !python_is_running(thread) && !copy_from_kernel_nofault(&registers, task_pt_regs(thread), sizeof registers) &&
                   python_system_call_at(thread, &registers, arguments) == __NR_futex ?
               arguments[0] :
               0;
}

/* Whether this is the object that is looked for. */
static int python_is_wanted(struct python_lock *lock, unsigned shift, unsigned long object)
{
    struct python_type type;
    struct lockobject_36 found;
    char name[sizeof "_thread.RLock"] = "";
    if (lock->object)
        return object == lock->object;
    /* glibc's sem_wait() sleeps on the low half of the first word (nptl/sem_waitcommon.c) */
    if (!python_read(&found, object + shift, sizeof found) || lock->futex - found.lock_lock >= sizeof(u64) ||
        !python_read_type(&type, object, shift) || !python_read(name, type.name, sizeof "_thread.lock"))
        return 0;
    if (!memcmp(name, "_thread.lock", sizeof "_thread.lock"))
        return 1;
    lock->is_rlock = python_read(name, type.name, sizeof name) && !memcmp(name, "_thread.RLock", sizeof name);
    lock->owner = lock->is_rlock ? found.rlock_owner : 0;
    return lock->is_rlock;
}

/* Looks for it among an object's attributes, and those of these. */
static int python_search_attributes(struct python_lock *lock, struct python_text *text, unsigned long object, int step)
{
    unsigned long address = python_type_address(object, text->shift), name, value;
    struct python_dict_iter walk, again;
    struct python_type type;
    if (!python_use_budget(text) || !python_read_type_at(&type, address, text->shift) || !(type.flags & Py_TPFLAGS_HEAPTYPE) ||
        type.flags & Py_TPFLAGS_TYPE_SUBCLASS || !python_find_attributes(&walk, text->layout, object, address, &type))
        return 0;
    for (again = walk; python_dict_iter_next(&walk, text, &name, &value) > 0;) {
        lock->path[step] = name;
        lock->steps = step + 1;
        if (python_is_wanted(lock, text->shift, value))
            return 1;
    }
    while (step + 1 < PYTHON_LOCK_STEPS && python_dict_iter_next(&again, text, &name, &value) > 0) {
        lock->path[step] = name;
        if (python_search_attributes(lock, text, value, step + 1))
            return 1;
    }
    return 0;
}

/* Looks for it among a frame's variables, their attributes, and its globals. */
static int python_search_frame(struct python_lock *lock, struct python_text *text, const struct python_frames *frames)
{
    struct python_variables variables;
    struct python_dict_iter walk;
    unsigned long value, globals = frames->layout.frame_f_globals;
    u64 i, count;
    int attributes;
    if (!python_find_variables(&variables, frames))
        return 0;
    count = python_variables_count(&variables);
    for (attributes = 0; attributes < 2; attributes++)
        for (i = 0; i < count; i++) {
            if (!python_use_budget(text))
                return 0;
            if (python_variable(&variables, &frames->layout, i, &value) != PYTHON_LOOKUP_OK)
                continue;
            lock->path[0] = python_variable_name(&variables, i);
            lock->steps = 1;
            if (attributes ? python_search_attributes(lock, text, value, 1) : python_is_wanted(lock, text->shift, value))
                return 1;
        }
    lock->steps = 1;
    if (globals && python_dict_iter_init(&walk, &frames->layout, python_word(frames->frame + globals)))
        while (python_dict_iter_next(&walk, text, &lock->path[0], &value) > 0)
            if (python_is_wanted(lock, text->shift, value))
                return 1;
    return 0;
}

static int python_lock_effort; /* how many more objects, entries and frames may be read in this dump */

/* The same for this frame and those around it. */
static int python_search_frames(struct python_lock *lock, struct python_text *text, struct python_frames *frames,
                                enum python_frame_status found)
{
    int depth, before, is_found;
    for (depth = 0; found == PYTHON_FRAME_OK && depth < PYTHON_LOCK_FRAMES && python_lock_effort > 0; depth++) {
        python_begin_values(text, &frames->layout);
        before = text->effort = min_t(int, text->effort, python_lock_effort);
        is_found = python_search_frame(lock, text, frames);
        python_lock_effort -= 1 + before - text->effort;
        if (is_found) {
            lock->function = python_word(frames->code + frames->layout.co_name);
            return 1;
        }
        found = python_next_frame(frames);
    }
    return 0;
}

/* A waiter's lock of a Condition, or that of a Thread which ends: the frames around those of the module know these by the
 * object. */
static void python_search_outside(struct python_lock *lock, struct python_text *text, struct python_frames *frames)
{
    const int joins = python_is_named(text, lock->function, "_wait_for_tstate_lock", 21);
    const unsigned long module = python_word(frames->code + frames->layout.co_filename);
    struct python_lock outside = {.futex = lock->futex};
    enum python_frame_status found;
    unsigned long ident;
    int depth = 0;
    s64 owner;
    if ((!joins && !(python_is_named(text, lock->function, "wait", 4) && python_is_named(text, lock->path[0], "waiter", 6))) ||
        python_variable_named(text, frames, "self", 4, &outside.object) != PYTHON_LOOKUP_OK)
        return;
    if (joins && python_attribute(text, outside.object, "_ident", 6, &ident) == PYTHON_LOOKUP_OK &&
        python_int_of(ident, &owner, text->shift)) {
        outside.owner = owner;
        outside.is_join = 1;
    }
    do
        found = python_next_frame(frames);
    while (found == PYTHON_FRAME_OK && ++depth < PYTHON_STACK && --python_lock_effort > 0 &&
           python_word(frames->code + frames->layout.co_filename) == module);
    if (python_search_frames(&outside, text, frames, found))
        *lock = outside;
    else
        lock->owner = outside.owner;
    lock->is_join = outside.is_join;
}

/* The thread of this process whose pthread_self() it is; NULL: none. */
static struct task_struct *python_thread_of_ident(unsigned long ident)
{
    struct task_struct *thread;
    int count = 0;
    if (!ident)
        return NULL;
    for_each_thread(current, thread)
        if (python_is_ident(ident, python_thread_pointer(thread)))
            return thread;
        else if (++count == PYTHON_STACK)
            return NULL;
    return NULL;
}

/* Finds the lock for which a thread of this process sleeps; false: it doesn't, or its frames don't know it.  frames: room
 * for these, with the layout. */
static int python_find_lock(struct python_lock *lock, struct python_frames *frames, struct task_struct *thread)
{
    struct python_text text;
    memset(&text, 0, sizeof text);
    memset(lock, 0, sizeof *lock);
    lock->futex = python_futex_of(thread);
    frames->passed_over = frames->in_jit = 0;
    if (!lock->futex || python_minor(&frames->layout) > CPYTHON_RLOCK_IS_SEMAPHORE ||
        !python_search_frames(lock, &text, frames, python_thread_frame(frames, thread)))
        return 0;
    python_search_outside(lock, &text, frames);
    lock->holder = python_thread_of_ident(lock->owner);
    return 1;
}

/* The threads of the cycle in which a thread waits for the holder of its lock, which waits, up to itself; 0: there is none. */
static int python_find_cycle(struct task_struct **cycle, struct python_frames *frames, struct task_struct *thread)
{
    struct task_struct *at = thread;
    struct python_lock lock;
    int count = 0;
    while (count < PYTHON_CYCLE) {
        cycle[count++] = at;
        if (!python_find_lock(&lock, frames, at) || !lock.holder)
            return 0;
        if (lock.holder == thread)
            return count;
        at = lock.holder;
    }
    return 0;
}
