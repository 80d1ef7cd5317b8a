/*
 * All tasks of asyncio in a process, with where and for what they wait.  A part of python_objects.stp.in, which includes
 * it behind python_tasks.h.
 *
 * SPDX-License-Identifier: MIT
 */

/* The tasks that were printed as those of threads, and how many were printed in all. */
enum { PYTHON_RUNNING = 32 };
struct python_list {
    unsigned long running[PYTHON_RUNNING];
    int running_count, printed;
    s64 depth;
};

static void python_put_quoted_name(struct python_text *text, unsigned long name)
{
    python_puts(text, "\"");
    python_put_task_name(text, name);
    python_puts(text, "\"");
}

/* ---- for what it waits */

/* One of several; those that are done are left out. */
static void python_put_wait(struct python_task_reader *tasks, unsigned long object, int *count)
{
    struct python_future future;
    struct python_type type;
    if (!python_read_future(tasks, &future, object) || !future.pending)
        return;
    python_puts(&tasks->text, *count ? ", " : ", waits for ");
    if (*count >= PYTHON_ITEMS)
        python_puts(&tasks->text, "...");
    else if (future.is_task)
        python_put_quoted_name(&tasks->text, future.name);
    else if (python_read_type(&type, object, tasks->text.shift))
        python_put_class_name(&tasks->text, python_type_address(object, tasks->text.shift), &type);
    ++*count;
}

/* All of a list or a set, or the one; whether there was something to be named. */
static int python_put_waits(struct python_task_reader *tasks, unsigned long object)
{
    struct python_items items;
    unsigned long item;
    int count = 0;
    if (!python_find_all_items(tasks, &items, object))
        python_put_wait(tasks, object, &count);
    else
        while (count <= PYTHON_ITEMS && (item = python_next_item(tasks, &items)))
            python_put_wait(tasks, item, &count);
    return count;
}

/* Where a coroutine of asyncio's waits for a future that it has made for several others, or for another one: a variable
 * of it, or an attribute of that, has those. */
static const struct {
    const char *module, *function, *variable, *attribute;
} python_waits[] = {
    {"asyncio.tasks", "_wait", "fs", NULL},
    {"asyncio.tasks", "wait_for", "fut", NULL}, /* to 3.11 */
    {"asyncio.taskgroups", "__aexit__", "self", "_tasks"},
    {"asyncio.taskgroups", "_aexit", "self", "_tasks"},
};

static int python_put_waits_of_frame(struct python_task_reader *tasks, const struct python_await_chain *chain)
{
    struct python_text *text = &tasks->text;
    unsigned long module, value, function;
    int i, has_module = 0;
    if (!chain->count || !python_chain_frame(tasks, chain, chain->count - 1))
        return 0;
    function = python_word(tasks->frames.code + tasks->frames.layout.co_name);
    for (i = 0; i < (int)ARRAY_SIZE(python_waits); i++) {
        if (!python_is_named(text, function, python_waits[i].function, strlen(python_waits[i].function)))
            continue;
        if (!has_module && python_dict_item(text, python_word(tasks->frames.frame + tasks->frames.layout.frame_f_globals), "__name__", 8,
                                            &module) != PYTHON_LOOKUP_OK)
            return 0;
        has_module = 1;
        if (!python_is_named(text, module, python_waits[i].module, strlen(python_waits[i].module)))
            continue;
        if (python_variable_named(text, &tasks->frames, python_waits[i].variable, strlen(python_waits[i].variable), &value) != PYTHON_LOOKUP_OK)
            return 0;
        if (python_waits[i].attribute &&
            python_attribute(text, value, python_waits[i].attribute, strlen(python_waits[i].attribute), &value) != PYTHON_LOOKUP_OK)
            return 0;
        return python_put_waits(tasks, value);
    }
    return 0;
}

/* What a task that is not a thread's does. */
static void python_put_state(struct python_task_reader *tasks, const struct python_future *task, const struct python_await_chain *chain)
{
    struct python_future waits;
    unsigned long children;
    if (chain->runs)
        python_puts(&tasks->text, ", running");
    else if (!task->waits || (python_read_future(tasks, &waits, task->waits) && !waits.pending))
        python_puts(&tasks->text, ", ready");
    else if (!waits.is_task && python_awaitable_type(tasks, task->waits).kind != PYTHON_KIND_OTHER &&
             /* asyncio.tasks._GatheringFuture */
             ((python_attribute(&tasks->text, task->waits, "_children", 9, &children) == PYTHON_LOOKUP_OK && python_put_waits(tasks, children)) ||
              python_put_waits_of_frame(tasks, chain)))
        return;
    else if (!python_put_waits(tasks, task->waits))
        python_puts(&tasks->text, ", waits for <unknown>");
}

/* ---- the list */

static void python_begin_task(struct python_task_reader *tasks, unsigned long name)
{
    python_puts(&tasks->text, "Task ");
    python_put_quoted_name(&tasks->text, name);
}

static void python_end_task(struct python_task_reader *tasks, struct python_list *list)
{
    python_puts(&tasks->text, "\n");
    python_flush(&tasks->text);
    list->printed++;
}

/* A task of the thread, with the thread's stack from the task's coroutine on. */
static void python_print_running(struct python_task_reader *tasks, struct python_list *list, struct task_struct *thread)
{
    struct python_future future;
    unsigned long task = python_running_task(tasks, &future), last;
    enum python_frame_status found;
    s64 depth = min_t(s64, list->depth, PYTHON_STACK);
    int ended = 0;
    if (!task)
        return;
    if (list->running_count < PYTHON_RUNNING)
        list->running[list->running_count++] = task;
    python_begin_task(tasks, future.name);
    python_puts(&tasks->text, ", running in thread ");
    python_put_number(&tasks->text, 0, thread->pid);
    python_puts(&tasks->text, python_is_running(thread) ? "\n" : ", asleep\n");
    last = python_task_frame(tasks, task);
    for (found = python_enter_frames(tasks); found == PYTHON_FRAME_OK && !ended; found = python_next_frame(&tasks->frames)) {
        if (depth-- <= 0) {
            python_puts(&tasks->text, "...\n");
            break;
        }
        python_put_frame(&tasks->text, &tasks->frames.layout, tasks->frames.frame, tasks->frames.code, &tasks->budget);
        ended = tasks->frames.frame == last;
    }
    if (found == PYTHON_FRAME_UNKNOWN && !ended)
        python_puts(&tasks->text, "<unknown>\n");
    python_end_task(tasks, list);
}

/* One that no thread runs, unless it is done. */
static void python_print_task(struct python_task_reader *tasks, struct python_list *list, unsigned long task)
{
    struct python_future future;
    struct python_await_chain chain;
    int i;
    for (i = 0; i < list->running_count; i++)
        if (list->running[i] == task)
            return;
    if (list->printed >= PYTHON_TASKS || !python_read_future(tasks, &future, task) || !future.is_task || !future.pending)
        return;
    python_follow_awaits(tasks, &chain, future.coroutine);
    python_begin_task(tasks, future.name);
    python_put_state(tasks, &future, &chain);
    python_puts(&tasks->text, "\n");
    python_put_await_chain(tasks, &chain, list->depth);
    python_end_task(tasks, list);
}

/* Those of a set, or of a WeakSet. */
static void python_print_set(struct python_task_reader *tasks, struct python_list *list, unsigned long set, int weak)
{
    struct python_items items;
    unsigned long item;
    if (!set || (weak && python_attribute(&tasks->text, set, "data", 4, &set) != PYTHON_LOOKUP_OK) || !python_find_all_items(tasks, &items, set))
        return;
    while ((item = python_next_item(tasks, &items)))
        /* Include/weakrefobject.h, Include/cpython/weakrefobject.h: wr_object is behind the head */
        python_print_task(tasks, list, weak ? python_word(item + tasks->text.shift + sizeof(struct PyObject_head)) : item);
}

/* From 3.14 on: those of a list (Include/internal/pycore_llist.h: next, previous), of which two words of each are a part. */
static void python_print_linked(struct python_task_reader *tasks, struct python_list *list, unsigned long head)
{
    int within = tasks->frames.layout.ob_base_offset + PYTHON_TASK_NODE;
    unsigned long at = head, next = python_word(head);
    while (next != head) {
        if (!next || !python_use_budget(&tasks->text) || python_word(next + sizeof(u64)) != at ||
            python_awaitable_type(tasks, next - within).kind != PYTHON_KIND_TASK) {
            python_puts(&tasks->text, "<unknown>\n");
            return;
        }
        python_print_task(tasks, list, next - within);
        at = next;
        next = python_word(at);
    }
}

/* From 3.14 on each thread state has a list of the tasks that were made there (they are linked in both directions:
 * Include/cpython/pystate.h); the interpreter has those of threads that have ended. */
static void python_print_lists(struct python_task_reader *tasks, struct python_list *list)
{
    const struct offsets_page *layout = &tasks->frames.layout;
    unsigned long state;
    int direction, count = 0;
    for (direction = 1; direction >= 0; direction--)
        for (state = direction ? tasks->state : python_word(tasks->state); state && count++ < PYTHON_TASKS;
             state = python_word(state + direction * sizeof(u64)))
            python_print_linked(tasks, list, state + python_asyncio[tasks->minor].tasks_head);
    python_print_linked(tasks, list, tasks->interpreter + layout->interp_modules +
                                     (layout->ob_base_offset ? python_asyncio[tasks->minor].interp_tasks_head_nogil :
                                                           python_asyncio[tasks->minor].interp_tasks_head));
}

static void python_print_waiting_tasks(struct python_task_reader *tasks, struct python_list *list)
{
    if (tasks->minor >= 14)
        python_print_lists(tasks, list);
    else if (tasks->minor >= 12) {
        python_print_set(tasks, list, python_asyncio_item(tasks, "_scheduled_tasks", PYTHON_HINT_TASKS), 1);
        python_print_set(tasks, list, python_asyncio_item(tasks, "_eager_tasks", PYTHON_HINT_EAGER), 0);
    } else
        python_print_set(tasks, list, python_asyncio_item(tasks, "_all_tasks", PYTHON_HINT_TASKS), 1);
    if (tasks->text.effort <= 0)
        python_puts(&tasks->text, "<unknown>\n");
    python_flush(&tasks->text);
}

/* The number of tasks. */
static int python_print_tasks(s64 depth)
{
    char buffer[128];
    struct python_list list = {.depth = depth};
    struct python_task_reader tasks;
    struct task_struct *thread;
    struct python_text text;
    int looked = 0, entered;
    if (!python_begin_tasks(&tasks, PYTHON_TASKS_EFFORT))
        return 0;
    python_begin_printing(&text, buffer, sizeof buffer);
    text.layout = tasks.text.layout;
    text.effort = tasks.text.effort;
    tasks.text = text;
    rcu_read_lock();
    entered = python_enter_thread(&tasks, current);
    for_each_thread(current, thread) {
        unsigned long state = tasks.state, interpreter = tasks.interpreter;
        if (looked++ < PYTHON_TASKS && python_enter_thread(&tasks, thread))
            python_print_running(&tasks, &list, thread);
        if (entered) {
            tasks.state = state;
            tasks.interpreter = interpreter;
        }
        entered |= tasks.state && tasks.interpreter;
    }
    rcu_read_unlock();
    if (entered)
        python_print_waiting_tasks(&tasks, &list);
    return list.printed;
}
