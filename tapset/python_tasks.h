/*
 * The tasks of asyncio: which of them runs in a thread, and for what the others wait.  A part of python_objects.stp.in,
 * which includes it behind python_coroutines.h.
 *
 * SPDX-License-Identifier: MIT
 */

/* At most so many tasks and threads are looked at, so many objects and entries for one name or for a list of all tasks,
 * and so many modules. */
enum { PYTHON_TASKS = 1000, PYTHON_TASK_EFFORT = 20000, PYTHON_TASKS_EFFORT = 60000, PYTHON_MODULES = 15000 };

/* What a thread needs that is looked at first; 0: it runs no Python, or this CPython is not known. */
static int python_begin_tasks(struct python_task_reader *tasks, int effort)
{
    memset(tasks, 0, sizeof *tasks);
    if (!current->mm || !python_read_layout(&tasks->frames.layout)) {
        python_warn_no_shim();
        return 0;
    }
    python_begin_values(&tasks->text, &tasks->frames.layout);
    tasks->text.effort = effort;
    tasks->budget = PYTHON_TABLES;
    tasks->minor = python_minor(&tasks->frames.layout);
    return tasks->minor >= 8 && tasks->minor <= 15 && tasks->frames.layout.interp_modules &&
           tasks->frames.layout.tstate_interp;
}

/* Goes to a thread of this process, which runs Python. */
static int python_enter_thread(struct python_task_reader *tasks, struct task_struct *thread)
{
    if (!python_read_state(&tasks->frames.layout, thread, &tasks->state) || !tasks->state)
        return 0;
    tasks->interpreter = python_word(tasks->state + tasks->frames.layout.tstate_interp);
    return tasks->interpreter != 0;
}

/* ---- names in dicts, by the place where they were last time */

enum python_hint {
    PYTHON_HINT_MODULE,
    PYTHON_HINT_CURRENT,
    PYTHON_HINT_TASKS,
    PYTHON_HINT_EAGER,
    PYTHON_HINTS,
};

/* By process: the place of the entry; and a hash of the dict, with the number of its entries, that had none.  Another
 * process may use the same ones: an entry is always looked at. */
static struct {
    u32 at[PYTHON_HINTS];
    u64 absent_hash[PYTHON_HINTS];
} python_hints[64];

static int python_dict_item_by_hint(struct python_task_reader *tasks, unsigned long dict, const char *name, enum python_hint which,
                              unsigned long *value)
{
    u32 *hint = &python_hints[current->tgid % 64].at[which];
    u64 *absent_hash = &python_hints[current->tgid % 64].absent_hash[which], hash;
    int length = strlen(name), more;
    struct python_dict_iter walk;
    unsigned long key;
    if (!python_dict_iter_init(&walk, &tasks->frames.layout, dict))
        return 0;
    walk.most = PYTHON_MODULES;
    walk.at = READ_ONCE(*hint);
    if (python_dict_iter_next(&walk, &tasks->text, &key, value) > 0 && python_is_named(&tasks->text, key, name, length))
        return 1;
    hash = python_hash_mix(python_hash_mix(walk.entries, walk.count), current->tgid);
    if (READ_ONCE(*absent_hash) == hash)
        return 0;
    walk.at = 0;
    while ((more = python_dict_iter_next(&walk, &tasks->text, &key, value)) > 0)
        if (python_is_named(&tasks->text, key, name, length)) {
            WRITE_ONCE(*hint, walk.at - 1);
            return 1;
        }
    if (!more)
        WRITE_ONCE(*absent_hash, hash);
    return 0;
}

/* What asyncio.tasks has under a name; 0: nothing, as it is not imported. */
static unsigned long python_asyncio_item(struct python_task_reader *tasks, const char *name, enum python_hint which)
{
    unsigned long modules = python_word(tasks->interpreter + tasks->frames.layout.interp_modules), module, value;
    if (!python_dict_item_by_hint(tasks, modules, "asyncio.tasks", PYTHON_HINT_MODULE, &module))
        return 0;
    /* Objects/moduleobject.c: the dict is behind the head */
    return python_dict_item_by_hint(tasks, python_word(module + tasks->frames.layout.ob_base_offset + sizeof(struct PyObject_head)), name, which, &value) ? value : 0;
}

/* ---- the items of lists, tuples and sets */

struct python_items {
    unsigned long at;
    u64 count;
    int size;
};

/* Whether it is one. */
static int python_find_all_items(struct python_task_reader *tasks, struct python_items *items, unsigned long object)
{
    struct python_type type;
    struct PySetObject set;
    unsigned shift = tasks->frames.layout.ob_base_offset;
    if (!object || !python_read_type(&type, object, shift))
        return 0;
    items->size = sizeof(u64);
    if (type.flags & (PYTHON_TUPLE | PYTHON_LIST)) {
        if (!python_find_items(&tasks->frames.layout, object, &items->at, &items->count))
            return 0;
        if (type.flags & PYTHON_LIST)
            items->at = python_word(object + shift + sizeof(struct PyVarObject_head));
        return 1;
    }
    if ((!python_type_is(&type, "set") && !python_type_is(&type, "frozenset")) || !python_read(&set, object + shift, sizeof set))
        return 0;
    items->at = set.table;
    items->count = set.mask + 1;
    items->size = 2 * sizeof(u64); /* with the hash */
    return 1;
}

/* The next one; 0: there is none, or it can't be read. */
static unsigned long python_next_item(struct python_task_reader *tasks, struct python_items *items)
{
    u64 entry[2];
    while (items->count && python_use_budget(&tasks->text)) {
        if (!python_read(entry, items->at, sizeof *entry) || (items->size > 8 && !python_read(entry, items->at, sizeof entry)))
            return 0;
        items->count--;
        items->at += items->size;
        if (entry[0] && (items->size == 8 || entry[1] != ~0ULL)) /* not free, nor deleted: no hash is -1 */
            return entry[0];
    }
    return 0;
}

/* ---- futures and tasks */

struct python_future {
    int is_task, pending;
    unsigned long coroutine, name, waits; /* of a task; waits: 0 where it waits for nothing */
};

/* One of class statements, as asyncio.futures._PyFuture and asyncio.tasks._PyTask are. */
static int python_read_python_future(struct python_task_reader *tasks, struct python_future *future, unsigned long object)
{
    unsigned long state;
    if (python_attribute(&tasks->text, object, "_state", 6, &state) != PYTHON_LOOKUP_OK)
        return 0;
    future->pending = python_is_named(&tasks->text, state, "PENDING", 7);
    future->is_task = python_attribute(&tasks->text, object, "_coro", 5, &future->coroutine) == PYTHON_LOOKUP_OK;
    if (future->is_task && python_attribute(&tasks->text, object, "_name", 5, &future->name) != PYTHON_LOOKUP_OK)
        future->name = 0;
    if (future->is_task && python_attribute(&tasks->text, object, "_fut_waiter", 11, &future->waits) != PYTHON_LOOKUP_OK)
        future->waits = 0;
    return 1;
}

/* Whether it is a future. */
static int python_read_future(struct python_task_reader *tasks, struct python_future *future, unsigned long object)
{
    struct python_awaitable_type kind = python_awaitable_type(tasks, object);
    unsigned long fields = object + tasks->frames.layout.ob_base_offset;
    u64 words[3];
    u32 state;
    memset(future, 0, sizeof *future);
    if (kind.kind == PYTHON_KIND_CLASS)
        return python_read_python_future(tasks, future, object);
    if ((kind.kind != PYTHON_KIND_TASK && kind.kind != PYTHON_KIND_FUTURE) ||
        !python_read(&state, fields + python_futures[kind.value].state, sizeof state))
        return 0;
    future->pending = state == 0;
    future->is_task = kind.kind == PYTHON_KIND_TASK;
    if (!future->is_task)
        return 1;
    if (!python_read(words, fields + python_futures[kind.value].waiter, sizeof words))
        return 0;
    future->waits = words[0];
    future->coroutine = words[1];
    future->name = words[2];
    return 1;
}

/* From 3.12 on the number of a task without a name is an int until it is asked for. */
static void python_put_task_name(struct python_text *text, unsigned long name)
{
    struct python_type type;
    if (python_read_type(&type, name, text->shift) && type.flags & PYTHON_LONG) {
        python_puts(text, "Task-");
        if (!python_put_int(text, name, &type, 0))
            python_puts(text, "<unknown>");
    } else
        python_put_attribute(text, name);
}

/* ---- the task that runs in a thread */

/* PyThreadState.thread_id, to 3.13: Include/cpython/pystate.h; from 3.14 on _PyThreadStateImpl.asyncio_running_task, and
 * behind it asyncio_tasks_head: Include/internal/pycore_tstate.h; how far behind the dict of modules an interpreter has its
 * own asyncio_tasks_head: Include/internal/pycore_interp_structs.h.  These, and python_futures, are the same in the headers of
 * 3.14.4 to 3.14.7, with a GIL and without. */
static const struct {
    int thread_id, running, tasks_head, interp_tasks_head, interp_tasks_head_nogil;
} python_asyncio[] = {
    [8] = {176, 0, 0, 0, 0},          [9] = {176, 0, 0, 0, 0},
    [10] = {176, 0, 0, 0, 0},         [11] = {152, 0, 0, 0, 0},
    [12] = {136, 0, 0, 0, 0},         [13] = {152, 0, 0, 0, 0},
    [14] = {0, 872, 880, 3192, 9920}, [15] = {0, 1032, 1048, 3264, 10040},
};

/* The frame of a task's coroutine; 0: it has none. */
static unsigned long python_task_frame(struct python_task_reader *tasks, unsigned long task)
{
    struct python_coroutine coroutine;
    struct python_future future;
    if (!python_read_future(tasks, &future, task) || !future.is_task || !python_read_coroutine(tasks, &coroutine, future.coroutine))
        return 0;
    return coroutine.frame;
}

/* Goes to the innermost frame of the thread. */
static enum python_frame_status python_enter_frames(struct python_task_reader *tasks)
{
    tasks->frames.passed_over = 0;
    return python_state_frame(&tasks->frames, tasks->state);
}

static int python_frame_is_on_stack(struct python_task_reader *tasks, unsigned long frame)
{
    enum python_frame_status found = python_enter_frames(tasks);
    for (; found == PYTHON_FRAME_OK && python_use_budget(&tasks->text); found = python_next_frame(&tasks->frames))
        if (tasks->frames.frame == frame)
            return 1;
    return 0;
}

/* By the loops that run, and their tasks: it is on the thread's stack, or its loop says that it is the thread's (before
 * and after its coroutine runs, and where that has no frame). */
static unsigned long python_running_by_loop(struct python_task_reader *tasks)
{
    unsigned long current_tasks = python_asyncio_item(tasks, "_current_tasks", PYTHON_HINT_CURRENT), loop, task, frame, number;
    u64 thread = python_word(tasks->state + python_asyncio[tasks->minor].thread_id);
    struct python_dict_iter walk;
    s64 of_loop;
    if (!current_tasks || !python_dict_iter_init(&walk, &tasks->frames.layout, current_tasks))
        return 0;
    while (python_dict_iter_next(&walk, &tasks->text, &loop, &task) > 0) {
        frame = python_task_frame(tasks, task);
        if (frame && python_frame_is_on_stack(tasks, frame))
            return task;
        if (thread && python_attribute(&tasks->text, loop, "_thread_id", 10, &number) == PYTHON_LOOKUP_OK &&
            python_int_of(number, &of_loop, tasks->text.shift) && (u64)of_loop == thread)
            return task;
    }
    return 0;
}

/* The task that runs in the thread, which may itself be asleep in it; 0: none. */
static unsigned long python_running_task(struct python_task_reader *tasks, struct python_future *future)
{
    unsigned long task;
    if (tasks->minor < 14)
        task = python_running_by_loop(tasks);
    else
        task = python_word(tasks->state + python_asyncio[tasks->minor].running);
    return task && python_read_future(tasks, future, task) && future->is_task ? task : 0;
}

static void python_task_text(char *to)
{
    struct python_task_reader tasks;
    struct python_future future;
    *to = '\0';
    if (!python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) || !python_enter_thread(&tasks, current) || !python_running_task(&tasks, &future))
        return;
    python_begin(&tasks.text, to, "");
    python_begin_values(&tasks.text, &tasks.frames.layout);
    python_put_task_name(&tasks.text, future.name);
    *tasks.text.at = '\0';
}

/* ---- for scripts that follow tasks, by their addresses */

static unsigned long python_task_here(void)
{
    struct python_task_reader tasks;
    struct python_future future;
    if (!python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) || !python_enter_thread(&tasks, current))
        return 0;
    return python_running_task(&tasks, &future);
}

/* How many bytes behind the start of one of the objects by which a loop calls a task's step is the task; 0: it is none of
 * them.  Modules/_asynciomodule.c; PyCFunctionObject: Include/cpython/methodobject.h, its function's name is what
 * PyMethodDef begins with; PyMethodObject: Include/cpython/classobject.h. */
static int python_callback_task_offset(struct python_task_reader *tasks, unsigned long callback)
{
    static const char *const wrappers[] = {"_asyncio.TaskStepMethWrapper", "TaskStepMethWrapper", "TaskWakeupMethWrapper"};
    unsigned shift = tasks->frames.layout.ob_base_offset;
    unsigned long head = callback + shift + sizeof(struct PyObject_head), name;
    struct python_type type, named = {0};
    int i;
    if (!python_read_type(&type, callback, shift))
        return 0;
    for (i = 0; i < (int)ARRAY_SIZE(wrappers); i++)
        if (python_type_named(&type, wrappers[i]))
            return head - callback;
    if (type.flags & PYTHON_HEAP)
        return 0;
    if (python_type_named(&type, "builtin_function_or_method")) {
        named.name = python_word(python_word(head));
        return python_type_named(&named, "task_wakeup") ? head - callback + sizeof(u64) : 0;
    }
    if (!python_type_named(&type, "method") || !tasks->frames.layout.func_qualname)
        return 0;
    name = python_word(python_word(head) + tasks->frames.layout.func_qualname);
    return python_is_named(&tasks->text, name, "Task.__step", 11) || python_is_named(&tasks->text, name, "Task.__wakeup", 13) ?
               head - callback + sizeof(u64) : 0;
}

/* The task whose step a callback of a loop is; 0: that is another one. */
static unsigned long python_callback_task(unsigned long callback)
{
    struct python_task_reader tasks;
    struct python_future future;
    unsigned long task;
    int at;
    if (!callback || !python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) || !(at = python_callback_task_offset(&tasks, callback)))
        return 0;
    task = python_word(callback + at);
    return task && python_read_future(&tasks, &future, task) && future.is_task ? task : 0;
}

/* 1: it has not ended; 0: it has, or is none. */
static int python_task_is_pending(unsigned long task)
{
    struct python_task_reader tasks;
    struct python_future future;
    return python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) && python_read_future(&tasks, &future, task) && future.is_task && future.pending;
}

/* Its name, or the qualified name of its coroutine. */
static void python_named_task_text(char *to, unsigned long task, int of_coroutine)
{
    struct python_task_reader tasks;
    struct python_future future;
    unsigned long name;
    int known = python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) && python_read_future(&tasks, &future, task) && future.is_task;
    python_begin(&tasks.text, to, "");
    python_begin_values(&tasks.text, &tasks.frames.layout);
    if (!known)
        python_puts(&tasks.text, "<unknown>");
    else if (!of_coroutine)
        python_put_task_name(&tasks.text, future.name);
    else if ((name = python_generator_name(future.coroutine, tasks.text.shift)))
        python_put_attribute(&tasks.text, name);
    else
        python_put_object(&tasks.text, future.coroutine, 0);
    *tasks.text.at = '\0';
}
