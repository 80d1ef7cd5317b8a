/*
 * Reads coroutines and the tasks of asyncio: which task runs in a thread, where the others wait, and for what.  Without
 * a lock: what other threads change meanwhile may be "<unknown>", or wrong.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* ---------------------------------------------------------------- types of awaitable objects */

/* What an object is, by its type. */
enum python_awaitable_kind {
    PYTHON_KIND_OTHER = 1,
    PYTHON_KIND_FRAME,  /* a coroutine, generator or asynchronous generator, which has a frame */
    PYTHON_KIND_WRAPS,  /* a wrapper: the wrapped object is behind its head */
    PYTHON_KIND_FUTURE, /* of _asyncio.Future, or of a class derived from it */
    PYTHON_KIND_TASK,   /* of _asyncio.Task, or of a class derived from it */
    PYTHON_KIND_CLASS,  /* of another heap type */
};
struct python_awaitable_type {
    unsigned long type;
    enum python_awaitable_kind kind;
    int value; /* KIND_FRAME: the frame's offset; KIND_FUTURE, KIND_TASK: the row of future_offsets[] */
};

struct python_task_reader {
    struct python_text text;
    struct python_frames frames; /* with the layout */
    unsigned long budget;        /* for line tables */
    int minor;
    unsigned long state, interpreter; /* the thread's PyThreadState, and its PyInterpreterState */
    struct python_awaitable_type kinds[8]; /* cache of python_awaitable_type() */
    unsigned looked; /* types that were read for kinds */
    int json;        /* what a task does is written as JSON */
};

/* Up to 3.10 a generator's frame is a PyFrameObject; from 3.11 on it is a part of the generator. */
static int python_frames_are_objects(const struct python_task_reader *tasks)
{
    return generator_offsets[tasks->minor].awaits_format == AWAITS_BY_OPCODE;
}

static int python_type_named(const struct python_type *type, const char *name)
{
    char known[32] = "";
    int size = strlen(name) + 1;
    return size <= (int)sizeof known && python_read(known, type->name, size) && memcmp(known, name, size) == 0;
}

/* The row of future_offsets[] for a type of this size, less python_ob_base_offset(); -1: none. */
static int python_future_at(int minor, u64 size, int is_task)
{
    int i;
    for (i = 0; i < (int)ARRAY_SIZE(future_offsets); i++)
        if (minor >= future_offsets[i].first && minor <= future_offsets[i].last &&
            size == (u64)(is_task ? future_offsets[i].task_size : future_offsets[i].future_size))
            return i;
    return -1;
}

/* Whether a type is _asyncio.Future or _asyncio.Task (static types up to 3.11), or derived from one. */
static int python_look_up_future(struct python_awaitable_type *kind, struct python_type type, int minor)
{
    int level, is_task;
    for (level = 0; level < 16; level++) {
        is_task = python_type_named(&type, "_asyncio.Task");
        if (is_task || python_type_named(&type, "_asyncio.Future")) {
            kind->value = python_future_at(minor, type.basicsize - type.shift, is_task);
            kind->kind = kind->value < 0 ? PYTHON_KIND_OTHER : is_task ? PYTHON_KIND_TASK : PYTHON_KIND_FUTURE;
            return 1;
        }
        if (!python_read_type_at(&type, type.base, type.shift))
            break;
    }
    return 0;
}

/* The offset of gi_frame, or gi_iframe, in a generator. */
static int python_frame_within(const struct python_task_reader *tasks, const struct python_type *type)
{
    if (python_frames_are_objects(tasks))
        return GI_FRAME_OFFSET;
    return (int)type->basicsize - tasks->frames.layout.frame_localsplus;
}

static void python_read_awaitable_type(struct python_task_reader *tasks, struct python_awaitable_type *kind)
{
    static const char *const frames[] = {"coroutine", "generator", "async_generator"};
    static const char *const wraps[] = {"coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable"};
    struct python_type type;
    int i;
    kind->kind = PYTHON_KIND_OTHER;
    if (!python_read_type_at(&type, kind->type, tasks->frames.layout.ob_base_offset))
        return;
    /* static types only: a class statement may use these names, too */
    for (i = 0; i < (int)ARRAY_SIZE(frames) && !(type.flags & Py_TPFLAGS_HEAPTYPE); i++)
        if (python_type_named(&type, frames[i])) {
            kind->value = python_frame_within(tasks, &type);
            if (kind->value >= (int)sizeof(struct PyObject_head) && kind->value < 256 && tasks->frames.layout.frame_localsplus)
                kind->kind = PYTHON_KIND_FRAME;
            return;
        }
    /* each has the wrapped object behind its head: Objects/genobject.c, Objects/iterobject.c, Modules/_asynciomodule.c */
    for (i = 0; i < (int)ARRAY_SIZE(wraps) && !(type.flags & Py_TPFLAGS_HEAPTYPE); i++)
        if (python_type_named(&type, wraps[i]))
            kind->kind = PYTHON_KIND_WRAPS;
    if (python_type_named(&type, "_asyncio.FutureIter"))
        kind->kind = PYTHON_KIND_WRAPS;
    if (kind->kind == PYTHON_KIND_OTHER && !python_look_up_future(kind, type, tasks->minor) && type.flags & Py_TPFLAGS_HEAPTYPE)
        kind->kind = PYTHON_KIND_CLASS;
}

static struct python_awaitable_type python_awaitable_type(struct python_task_reader *tasks, unsigned long object)
{
    unsigned long type = python_type_address(object, tasks->frames.layout.ob_base_offset);
    struct python_awaitable_type *kind, none = {.kind = PYTHON_KIND_OTHER};
    int i;
    if (!type)
        return none;
    for (i = 0; i < (int)ARRAY_SIZE(tasks->kinds); i++)
        if (tasks->kinds[i].type == type)
            return tasks->kinds[i];
    kind = &tasks->kinds[tasks->looked++ % ARRAY_SIZE(tasks->kinds)];
    kind->type = type;
    python_read_awaitable_type(tasks, kind);
    return *kind;
}

/* ---------------------------------------------------------------- what a coroutine awaits */

struct python_coroutine {
    unsigned long frame; /* 0: it has ended */
    int runs;            /* it, or what it awaits, runs */
    unsigned long awaits; /* 0: it runs, has not begun, or yields something */
};

/* Up to 3.10, as Objects/genobject.c: _PyGen_yf().  The instructions are in the bytes object co_code. */
static void python_awaited_by_opcode(const struct python_task_reader *tasks, struct python_coroutine *coroutine)
{
    const struct offsets_page *layout = &tasks->frames.layout;
    const struct generator_offsets *generator = &generator_offsets[tasks->minor];
    unsigned long frame = coroutine->frame, top = 0, code;
    int instruction, depth = 0;
    u8 opcode, state = 0;
    if (generator->stack_top_format == STACK_TOP_DEPTH) {
        if (!python_read(&depth, frame + generator->stack_top, sizeof depth) || !python_read(&state, frame + generator->f_state, 1))
            return;
        coroutine->runs = state == generator->executing;
        if (depth > 0 && depth < 0x10000)
            top = python_word(frame + generator->f_valuestack) + depth * sizeof(u64);
    } else {
        top = python_word(frame + generator->stack_top);
        coroutine->runs = !top;
    }
    if (coroutine->runs || !top || !python_read(&instruction, frame + layout->frame_instr_ptr, sizeof instruction) || instruction < 0)
        return;
    code = python_word(python_word(frame + layout->frame_executable) + layout->co_filename - CO_CODE_BEFORE_FILENAME);
    if (layout->lines == LINES_LINETABLE)
        instruction *= 2;
    if (code && python_read(&opcode, code + sizeof(struct PyBytesObject) + instruction + 2, 1) && opcode == OPCODE_YIELD_FROM_36)
        coroutine->awaits = python_word(top - sizeof(u64));
}

/* From 3.11 on. */
static void python_awaited_by_state(const struct python_task_reader *tasks, struct python_coroutine *coroutine)
{
    const struct offsets_page *layout = &tasks->frames.layout;
    const struct generator_offsets *generator = &generator_offsets[tasks->minor];
    unsigned long frame = coroutine->frame, next;
    signed char state;
    u8 unit[2];
    u32 count;
    if (!python_read(&state, frame - GI_FRAME_STATE_BEFORE_IFRAME, 1))
        state = 100;
    coroutine->runs = state == generator->executing;
    if (state > generator->cleared_above)
        coroutine->frame = 0;
    if (state != generator->suspended && state != generator->suspended_locked)
        return;
    if (generator->awaits_format == AWAITS_BY_RESUME) {
        next = python_word(frame + layout->frame_instr_ptr) + sizeof unit;
        if (!python_read(unit, next, sizeof unit) || (unit[1] & RESUME_OPARG_LOCATION_MASK) < RESUME_AFTER_YIELD_FROM)
            return;
    }
    if (generator->stack_top_format == STACK_TOP_STACKPOINTER)
        coroutine->awaits =
            python_word(python_word(frame + generator->stack_top) - generator->awaited_before_top * sizeof(u64)) & ~STACKREF_TAGS;
    else if (python_read(&count, frame + generator->stack_top, sizeof count) && count && count < 0x10000)
        coroutine->awaits =
            python_word(frame + layout->frame_localsplus + (count - generator->awaited_before_top) * sizeof(u64));
}

/* False: not a coroutine, generator or asynchronous generator. */
static int python_read_coroutine(struct python_task_reader *tasks, struct python_coroutine *coroutine, unsigned long object)
{
    struct python_awaitable_type kind = python_awaitable_type(tasks, object);
    memset(coroutine, 0, sizeof *coroutine);
    if (kind.kind != PYTHON_KIND_FRAME)
        return 0;
    if (!python_frames_are_objects(tasks)) {
        coroutine->frame = object + kind.value;
        python_awaited_by_state(tasks, coroutine);
        return 1;
    }
    coroutine->frame = python_word(object + kind.value);
    if (coroutine->frame)
        python_awaited_by_opcode(tasks, coroutine);
    return 1;
}

/* The frames in which a task waits, the innermost last.  Frame number N is frames[N % PYTHON_CHAIN]: of more frames the
 * innermost stay. */
enum { PYTHON_CHAIN = 64 };
struct python_await_chain {
    unsigned long frames[PYTHON_CHAIN];
    int count;
    int runs; /* one of the coroutines runs */
};

/* Follows the awaits from a coroutine inwards. */
static void python_follow_awaits(struct python_task_reader *tasks, struct python_await_chain *chain, unsigned long object)
{
    struct python_coroutine coroutine;
    chain->count = chain->runs = 0;
    while (object && chain->count < PYTHON_STACK && python_use_budget(&tasks->text)) {
        if (python_awaitable_type(tasks, object).kind == PYTHON_KIND_WRAPS) {
            object = python_word(object + tasks->frames.layout.ob_base_offset + sizeof(struct PyObject_head));
            continue;
        }
        if (!python_read_coroutine(tasks, &coroutine, object) || !coroutine.frame)
            return;
        chain->frames[chain->count++ % PYTHON_CHAIN] = coroutine.frame;
        chain->runs |= coroutine.runs;
        object = coroutine.awaits;
    }
}

/* Makes the frame of the chain with this number the current one; false: not a frame. */
static int python_chain_frame(struct python_task_reader *tasks, const struct python_await_chain *chain, int at)
{
    struct python_frames *frames = &tasks->frames;
    frames->frame = chain->frames[at % PYTHON_CHAIN];
    frames->code = python_word(frames->frame + frames->layout.frame_executable) & ~STACKREF_TAGS;
    return frames->code && python_is_code(frames);
}

/* Writes whole lines, the innermost frame first, then a line of dots if frames are left. */
static void python_put_await_chain(struct python_task_reader *tasks, const struct python_await_chain *chain, s64 depth)
{
    int at;
    depth = min_t(s64, depth, PYTHON_CHAIN);
    for (at = chain->count - 1; at >= 0; at--) {
        if (depth-- <= 0) {
            python_puts(&tasks->text, "...\n");
            return;
        }
        if (!python_chain_frame(tasks, chain, at)) {
            python_puts(&tasks->text, "<unknown>\n");
            return;
        }
        python_put_frame(&tasks->text, &tasks->frames.layout, tasks->frames.frame, tasks->frames.code, &tasks->budget, 0);
    }
}

/* ---------------------------------------------------------------- reading tasks */

/* Limits: tasks and threads; objects and entries for one name, and for a list of all tasks; modules. */
enum { PYTHON_TASKS = 1000, PYTHON_TASK_EFFORT = 20000, PYTHON_TASKS_EFFORT = 60000, PYTHON_MODULES = 15000 };

/* Begins a read of tasks.  False: no offsets page, or an unsupported CPython. */
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
    return tasks->minor >= ASYNCIO_OLDEST_MINOR && tasks->minor <= CPYTHON_NEWEST_MINOR && tasks->frames.layout.interp_modules &&
           tasks->frames.layout.tstate_interp;
}

/* Makes a thread of this process the current one; false: it runs no Python. */
static int python_enter_thread(struct python_task_reader *tasks, struct task_struct *thread)
{
    if (!python_read_state(&tasks->frames.layout, thread, &tasks->state) || !tasks->state)
        return 0;
    tasks->interpreter = python_word(tasks->state + tasks->frames.layout.tstate_interp);
    return tasks->interpreter != 0;
}

/* ---------------------------------------------------------------- names in dicts, with hints */

enum python_hint {
    PYTHON_HINT_MODULE,
    PYTHON_HINT_CURRENT,
    PYTHON_HINT_TASKS,
    PYTHON_HINT_EAGER,
    PYTHON_HINTS,
};

/* By process: the index of the entry that a name had last time, and a hash of the dict, with its number of entries, in
 * which the name was absent.  Another process may share both: the entry is always compared, the hash has the PID. */
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

/* A variable of the module asyncio.tasks; 0: none, or the module is not imported. */
static unsigned long python_asyncio_item(struct python_task_reader *tasks, const char *name, enum python_hint which)
{
    unsigned long modules = python_word(tasks->interpreter + tasks->frames.layout.interp_modules), module, value;
    if (!python_dict_item_by_hint(tasks, modules, "asyncio.tasks", PYTHON_HINT_MODULE, &module))
        return 0;
    /* a module has its dict behind the head (Objects/moduleobject.c) */
    return python_dict_item_by_hint(tasks, python_word(module + tasks->frames.layout.ob_base_offset + sizeof(struct PyObject_head)), name, which, &value) ? value : 0;
}

/* ---------------------------------------------------------------- items of lists, tuples and sets */

struct python_items {
    unsigned long at;
    u64 count;
    int size;
};

/* False: not a list, tuple or set. */
static int python_find_all_items(struct python_task_reader *tasks, struct python_items *items, unsigned long object)
{
    struct python_type type;
    struct PySetObject set;
    unsigned shift = tasks->frames.layout.ob_base_offset;
    if (!object || !python_read_type(&type, object, shift))
        return 0;
    items->size = sizeof(u64);
    if (type.flags & (Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS)) {
        if (!python_find_items(&tasks->frames.layout, object, &items->at, &items->count))
            return 0;
        if (type.flags & Py_TPFLAGS_LIST_SUBCLASS)
            items->at = python_word(object + shift + sizeof(struct PyVarObject_head));
        return 1;
    }
    if ((!python_type_is(&type, "set") && !python_type_is(&type, "frozenset")) || !python_read(&set, object + shift, sizeof set))
        return 0;
    items->at = (unsigned long)set.table;
    items->count = set.mask + 1;
    items->size = 2 * sizeof(u64); /* with the hash */
    return 1;
}

/* The next item; 0: the end, budget spent, or unreadable. */
static unsigned long python_next_item(struct python_task_reader *tasks, struct python_items *items)
{
    u64 entry[2];
    while (items->count && python_use_budget(&tasks->text)) {
        if (!python_read(entry, items->at, sizeof *entry) || (items->size > 8 && !python_read(entry, items->at, sizeof entry)))
            return 0;
        items->count--;
        items->at += items->size;
        if (entry[0] && (items->size == 8 || entry[1] != ~0ULL)) /* not free or deleted: no key has the hash -1 */
            return entry[0];
    }
    return 0;
}

/* ---------------------------------------------------------------- futures and tasks */

struct python_future {
    int is_task, pending;
    unsigned long coroutine, name, waits; /* of a task; waits: the future for which it waits, or 0 */
};

/* Reads a future or task of a class in Python, such as asyncio.futures._PyFuture and asyncio.tasks._PyTask. */
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

/* False: not a future or task. */
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
        !python_read(&state, fields + future_offsets[kind.value].fut_state, sizeof state))
        return 0;
    future->pending = state == FUTURE_PENDING;
    future->is_task = kind.kind == PYTHON_KIND_TASK;
    if (!future->is_task)
        return 1;
    if (!python_read(words, fields + future_offsets[kind.value].task_fut_waiter, sizeof words))
        return 0;
    future->waits = words[0];
    future->coroutine = words[1];
    future->name = words[2];
    return 1;
}

/* From 3.12 on the name of a task that was made without one is an int, its number, until the program reads the name. */
static void python_put_task_name(struct python_text *text, unsigned long name)
{
    struct python_type type;
    if (python_read_type(&type, name, text->shift) && type.flags & Py_TPFLAGS_LONG_SUBCLASS) {
        python_puts(text, "Task-");
        if (!python_put_int(text, name, &type, 0))
            python_puts(text, "<unknown>");
    } else
        python_put_attribute(text, name);
}

/* ---------------------------------------------------------------- the task that runs in a thread */

/* The frame of a task's coroutine; 0: it has none. */
static unsigned long python_task_frame(struct python_task_reader *tasks, unsigned long task)
{
    struct python_coroutine coroutine;
    struct python_future future;
    if (!python_read_future(tasks, &future, task) || !future.is_task || !python_read_coroutine(tasks, &coroutine, future.coroutine))
        return 0;
    return coroutine.frame;
}

/* Makes the innermost frame of the thread the current one. */
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

/* Up to 3.13: of the tasks that the running loops run, the one whose frame is on the thread's stack, or whose loop has the
 * thread's id (before and after the coroutine runs, and for a coroutine without a frame). */
static unsigned long python_running_by_loop(struct python_task_reader *tasks)
{
    unsigned long current_tasks = python_asyncio_item(tasks, "_current_tasks", PYTHON_HINT_CURRENT), loop, task, frame, number;
    u64 thread = python_word(tasks->state + asyncio_offsets[tasks->minor].thread_id);
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

/* The task that runs in the thread, even if the thread sleeps in it; 0: none. */
static unsigned long python_running_task(struct python_task_reader *tasks, struct python_future *future)
{
    unsigned long task;
    if (asyncio_offsets[tasks->minor].tasks_format != TASKS_LINKED)
        task = python_running_by_loop(tasks);
    else
        task = tasks->frames.layout.tstate_running_task ? python_word(tasks->state + tasks->frames.layout.tstate_running_task) : 0;
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

/* ---------------------------------------------------------------- tasks by their addresses, for scripts that follow tasks */

static unsigned long python_task_here(void)
{
    struct python_task_reader tasks;
    struct python_future future;
    if (!python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) || !python_enter_thread(&tasks, current))
        return 0;
    return python_running_task(&tasks, &future);
}

/* The offset of the task in an object by which a loop calls the task's step; 0: another object.  Such objects are: wrappers
 * of Modules/_asynciomodule.c; PyCFunctionObject (Include/cpython/methodobject.h), whose PyMethodDef begins with the
 * function's name; PyMethodObject (Include/cpython/classobject.h). */
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
    if (type.flags & Py_TPFLAGS_HEAPTYPE)
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

/* The task whose step a callback of a loop calls; 0: another callback. */
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

/* False: the task has ended, or is no task. */
static int python_task_is_pending(unsigned long task)
{
    struct python_task_reader tasks;
    struct python_future future;
    return python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) && python_read_future(&tasks, &future, task) && future.is_task && future.pending;
}

/* Whether a task waits for another one. */
static int python_task_waits_for_task(unsigned long task)
{
    struct python_task_reader tasks;
    struct python_future future;
    return python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) && python_read_future(&tasks, &future, task) && future.is_task &&
           future.waits && python_read_future(&tasks, &future, future.waits) && future.is_task;
}

/* Whether it is the frame of the task's coroutine. */
static int python_is_frame_of_task(unsigned long task, unsigned long frame)
{
    struct python_task_reader tasks;
    return python_begin_tasks(&tasks, PYTHON_TASK_EFFORT) && python_task_frame(&tasks, task) == frame;
}

/* Writes the task's name, or the qualified name of its coroutine. */
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

/* ---------------------------------------------------------------- for what a task waits */

enum { PYTHON_RUNNING = 32 };
struct python_list {
    unsigned long running[PYTHON_RUNNING]; /* tasks that were printed as running in a thread */
    int running_count, printed;            /* printed: of all tasks */
    s64 depth;
    int left; /* of PYTHON_FRAMES, for those tasks */
    int is_cut; /* there may be tasks that were not found */
    void (*each)(struct python_task_reader *tasks, struct python_list *list, unsigned long task); /* for the others */
};

static void python_put_quoted_name(struct python_task_reader *tasks, unsigned long name)
{
    if (tasks->json)
        python_open_string(&tasks->text);
    else
        python_puts(&tasks->text, "\"");
    python_put_task_name(&tasks->text, name);
    if (tasks->json)
        python_close_string(&tasks->text);
    else
        python_puts(&tasks->text, "\"");
}

static void python_put_either(struct python_task_reader *tasks, const char *text, const char *json)
{
    python_puts(&tasks->text, tasks->json ? json : text);
}

/* Writes a future or task that is awaited, unless it is done. */
static void python_put_wait(struct python_task_reader *tasks, unsigned long object, int *count)
{
    struct python_future future;
    struct python_type type;
    if (!python_read_future(tasks, &future, object) || !future.pending)
        return;
    if (!*count)
        python_put_either(tasks, ", waits for ", "\"waits\",\"waits_for\":[");
    else
        python_put_either(tasks, ", ", ",");
    if (*count >= PYTHON_ITEMS)
        python_put_either(tasks, "...", "{\"more\":true}");
    else if (future.is_task) {
        python_put_either(tasks, "", "{\"task\":");
        python_put_quoted_name(tasks, future.name);
        python_put_either(tasks, "", "}");
    } else {
        python_put_either(tasks, "", "{\"class\":");
        if (tasks->json)
            python_open_string(&tasks->text);
        if (python_read_type(&type, object, tasks->text.shift))
            python_put_class_name(&tasks->text, python_type_address(object, tasks->text.shift), &type);
        if (tasks->json)
            python_close_string(&tasks->text);
        python_put_either(tasks, "", "}");
    }
    ++*count;
}

/* Writes the items of a list, tuple or set, or the one object; returns how many are not done. */
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
    if (count)
        python_put_either(tasks, "", "]");
    return count;
}

/* Coroutines of asyncio that wait for a future of their own in place of others: the variable of the coroutine, or the
 * variable's attribute, that holds the others. */
static const struct {
    const char *module, *function, *variable, *attribute;
} python_waits[] = {
    {"asyncio.tasks", "_wait", "fs", NULL},
    {"asyncio.tasks", "wait_for", "fut", NULL}, /* up to 3.11 */
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

/* Writes what a task does that was not printed as running in a thread. */
static void python_put_state(struct python_task_reader *tasks, const struct python_future *task, const struct python_await_chain *chain)
{
    struct python_future waits;
    unsigned long children;
    if (chain->runs)
        python_put_either(tasks, ", running", "\"running\",\"waits_for\":[]");
    else if (!task->waits || (python_read_future(tasks, &waits, task->waits) && !waits.pending))
        python_put_either(tasks, ", ready", "\"ready\",\"waits_for\":[]");
    else if (!waits.is_task && python_awaitable_type(tasks, task->waits).kind != PYTHON_KIND_OTHER &&
             /* asyncio.tasks._GatheringFuture */
             ((python_attribute(&tasks->text, task->waits, "_children", 9, &children) == PYTHON_LOOKUP_OK && python_put_waits(tasks, children)) ||
              python_put_waits_of_frame(tasks, chain)))
        return;
    else if (!python_put_waits(tasks, task->waits))
        python_put_either(tasks, ", waits for <unknown>", "\"waits\",\"waits_for\":null");
}

/* ---------------------------------------------------------------- the list of all tasks */

static void python_begin_task(struct python_task_reader *tasks, unsigned long name)
{
    python_puts(&tasks->text, "Task ");
    python_put_quoted_name(tasks, name);
}

static void python_end_task(struct python_task_reader *tasks, struct python_list *list)
{
    python_puts(&tasks->text, "\n");
    python_flush(&tasks->text);
    list->printed++;
}

/* Prints the task that runs in the thread, and the thread's stack from the innermost frame to the task's coroutine. */
static void python_print_running(struct python_task_reader *tasks, struct python_list *list, struct task_struct *thread)
{
    struct python_future future;
    unsigned long task = python_running_task(tasks, &future), last;
    enum python_frame_status found;
    s64 depth = min_t(s64, list->depth, PYTHON_STACK);
    int ended = 0, in_jit;
    if (!task)
        return;
    if (list->running_count < PYTHON_RUNNING)
        list->running[list->running_count++] = task;
    python_begin_task(tasks, future.name);
    python_puts(&tasks->text, ", running in thread ");
    python_put_number(&tasks->text, 0, thread->pid);
    python_puts(&tasks->text, python_is_running(thread) ? "\n" : ", asleep\n");
    last = python_task_frame(tasks, task);
    found = python_enter_frames(tasks);
    in_jit = tasks->frames.in_jit;
    for (; found == PYTHON_FRAME_OK && !ended; in_jit = 0, found = python_next_frame(&tasks->frames)) {
        if (depth-- <= 0 || list->left-- <= 0) {
            python_puts(&tasks->text, "...\n");
            break;
        }
        python_put_frame(&tasks->text, &tasks->frames.layout, tasks->frames.frame, tasks->frames.code, &tasks->budget, in_jit);
        ended = tasks->frames.frame == last;
    }
    if (found == PYTHON_FRAME_UNKNOWN && !ended)
        python_puts(&tasks->text, "<unknown>\n");
    python_end_task(tasks, list);
}

/* Whether a task is neither done nor printed as running in a thread, and may be printed. */
static int python_is_to_print(struct python_task_reader *tasks, struct python_list *list, struct python_future *future, unsigned long task)
{
    int i;
    for (i = 0; i < list->running_count; i++)
        if (list->running[i] == task)
            return 0;
    return list->printed < PYTHON_TASKS && python_read_future(tasks, future, task) && future->is_task && future->pending;
}

static void python_print_task(struct python_task_reader *tasks, struct python_list *list, unsigned long task)
{
    struct python_future future;
    struct python_await_chain chain;
    if (!python_is_to_print(tasks, list, &future, task))
        return;
    python_follow_awaits(tasks, &chain, future.coroutine);
    python_begin_task(tasks, future.name);
    python_put_state(tasks, &future, &chain);
    python_puts(&tasks->text, "\n");
    python_put_await_chain(tasks, &chain, list->depth);
    python_end_task(tasks, list);
}

/* Goes through the tasks of a set, or of a WeakSet. */
static void python_print_set(struct python_task_reader *tasks, struct python_list *list, unsigned long set, int weak)
{
    struct python_items items;
    unsigned long item;
    if (!set || (weak && python_attribute(&tasks->text, set, "data", 4, &set) != PYTHON_LOOKUP_OK) || !python_find_all_items(tasks, &items, set))
        return;
    while ((item = python_next_item(tasks, &items)))
        /* wr_object is behind the head (Include/weakrefobject.h, Include/cpython/weakrefobject.h) */
        list->each(tasks, list, weak ? python_word(item + tasks->text.shift + sizeof(struct PyObject_head)) : item);
}

/* 3.14 and later: goes through the tasks of a linked list, whose node (Include/internal/pycore_llist.h) is a part of each task. */
static void python_print_linked(struct python_task_reader *tasks, struct python_list *list, unsigned long head)
{
    int within = tasks->frames.layout.ob_base_offset + asyncio_offsets[tasks->minor].task_node;
    unsigned long at = head, next = python_word(head);
    while (next != head) {
        if (!next || !python_use_budget(&tasks->text) || python_word(next + sizeof(u64)) != at ||
            python_awaitable_type(tasks, next - within).kind != PYTHON_KIND_TASK) {
            list->is_cut = 1;
            return;
        }
        list->each(tasks, list, next - within);
        at = next;
        next = python_word(at);
    }
}

/* 3.14 and later: each thread state has a list of the tasks that were made in its thread, the interpreter one of those of
 * ended threads.  Thread states begin with prev and next (Include/cpython/pystate.h).  Without those of these states. */
static void python_print_lists(struct python_task_reader *tasks, struct python_list *list, const unsigned long *but, int but_count)
{
    const struct offsets_page *layout = &tasks->frames.layout;
    unsigned long state;
    int direction, count = 0, i;
    if (!layout->tstate_tasks_head || !layout->interp_tasks_head) {
        list->is_cut = 1;
        return;
    }
    for (direction = 1; direction >= 0; direction--)
        for (state = direction ? tasks->state : python_word(tasks->state); state && count++ < PYTHON_TASKS;
             state = python_word(state + direction * sizeof(u64))) {
            for (i = 0; i < but_count && but[i] != state; i++)
                ;
            if (i == but_count)
                python_print_linked(tasks, list, state + layout->tstate_tasks_head);
        }
    python_print_linked(tasks, list, tasks->interpreter + layout->interp_tasks_head);
}

/* Up to 3.13: goes through the tasks in the sets of asyncio.tasks. */
static void python_print_sets(struct python_task_reader *tasks, struct python_list *list)
{
    if (asyncio_offsets[tasks->minor].tasks_format == TASKS_SCHEDULED) {
        python_print_set(tasks, list, python_asyncio_item(tasks, "_scheduled_tasks", PYTHON_HINT_TASKS), 1);
        python_print_set(tasks, list, python_asyncio_item(tasks, "_eager_tasks", PYTHON_HINT_EAGER), 0);
    } else
        python_print_set(tasks, list, python_asyncio_item(tasks, "_all_tasks", PYTHON_HINT_TASKS), 1);
}

static void python_print_waiting_tasks(struct python_task_reader *tasks, struct python_list *list)
{
    if (asyncio_offsets[tasks->minor].tasks_format == TASKS_LINKED)
        python_print_lists(tasks, list, NULL, 0);
    else
        python_print_sets(tasks, list);
    if (tasks->text.effort <= 0 || list->is_cut)
        python_puts(&tasks->text, "<unknown>\n");
    python_flush(&tasks->text);
}

/* Prints the tasks of the process; returns how many. */
static int python_print_tasks(s64 depth)
{
    char buffer[128];
    struct python_list list = {.depth = depth, .left = PYTHON_FRAMES, .each = python_print_task};
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

/* ---------------------------------------------------------------- tasks by thread, for dump.c */

enum { PYTHON_LOOPS = 16 };
struct python_dumped_tasks {
    struct python_task_reader tasks;
    struct python_list list;
    struct python_dump *dump;
    struct python_await_chain chain;
    char buffer[512];
    int readable;                       /* this CPython's tasks can be read */
    unsigned long states[PYTHON_TASKS]; /* 3.14 and later: thread states whose tasks were printed */
    int state_count;
    unsigned long loops[PYTHON_LOOPS]; /* up to 3.13: the loops of tasks, with the identifiers of their threads (0: none) */
    u64 threads[PYTHON_LOOPS];
    int loop_count, loop; /* loop: that of which tasks are printed; -1: of those whose thread was not printed */
    u32 printed_loops;    /* a bit for each */
    int count;            /* the tasks that were printed below this thread, or for the process */
};
static struct python_dumped_tasks python_dumped;

/* The loop of a task: in C the first member behind the head (FutureObj_HEAD); 0: unknown. */
static unsigned long python_loop_of(struct python_task_reader *tasks, unsigned long task)
{
    struct python_awaitable_type kind = python_awaitable_type(tasks, task);
    unsigned long loop;
    if (kind.kind == PYTHON_KIND_TASK)
        return python_word(task + tasks->frames.layout.ob_base_offset + sizeof(struct PyObject_head));
    return python_attribute(&tasks->text, task, "_loop", 5, &loop) == PYTHON_LOOKUP_OK ? loop : 0;
}

/* The place of a loop in python_dumped.loops; -1: not there. */
static int python_loop_place(unsigned long loop)
{
    int i;
    for (i = 0; i < python_dumped.loop_count; i++)
        if (python_dumped.loops[i] == loop)
            return i;
    return -1;
}

/* Notes the loop of a task. */
static void python_note_loop(struct python_task_reader *tasks, struct python_list *list, unsigned long task)
{
    unsigned long loop = python_loop_of(tasks, task), number;
    s64 thread = 0;
    (void)list;
    if (!loop || python_dumped.loop_count == PYTHON_LOOPS || python_loop_place(loop) >= 0)
        return;
    if (python_attribute(&tasks->text, loop, "_thread_id", 10, &number) != PYTHON_LOOKUP_OK ||
        !python_int_of(number, &thread, tasks->text.shift))
        thread = 0;
    python_dumped.loops[python_dumped.loop_count] = loop;
    python_dumped.threads[python_dumped.loop_count++] = thread;
}

/* Begins a task; indented below its thread. */
static void python_dump_task_head(struct python_task_reader *tasks, unsigned long name)
{
    if (!python_dumped.count++ && python_dumped.loop < 0)
        python_put_either(tasks, "Tasks whose thread is not known, or runs no Python code:\n", "");
    python_put_either(tasks, "  Task ", python_dumped.count > 1 ? ",\n  {\"name\":" : "\n  {\"name\":");
    python_put_quoted_name(tasks, name);
    python_put_either(tasks, "", ",\"state\":");
}

static void python_dump_task_end(struct python_task_reader *tasks, struct python_list *list)
{
    python_put_either(tasks, "", "}");
    python_flush(&tasks->text);
    list->printed++;
}

/* Prints the frames of python_dumped.chain, the innermost first. */
static void python_dump_chain(struct python_task_reader *tasks)
{
    const struct python_await_chain *chain = &python_dumped.chain;
    struct python_dump *dump = python_dumped.dump;
    enum python_frame_status found = PYTHON_FRAME_NONE;
    int at, count = 0, most = min_t(s64, dump->depth, PYTHON_CHAIN);
    python_put_either(tasks, "", ",\"frames\":[");
    for (at = chain->count - 1; at >= 0 && found == PYTHON_FRAME_NONE; at--) {
        if (most-- <= 0 || dump->left <= 0)
            found = PYTHON_FRAME_OK;
        else if (!python_chain_frame(tasks, chain, at))
            found = PYTHON_FRAME_UNKNOWN;
        else
            python_dump_frame(dump, &tasks->text, &tasks->frames, 0, "  ", &count);
    }
    python_dump_stack_end(dump, &tasks->text, found, "  ");
}

/* Prints a task, if it belongs to python_dumped.loop. */
static void python_dump_task(struct python_task_reader *tasks, struct python_list *list, unsigned long task)
{
    struct python_future future;
    int place;
    list->is_cut |= list->printed >= PYTHON_TASKS;
    if (!python_is_to_print(tasks, list, &future, task))
        return;
    if (python_dumped.loop_count) {
        place = python_loop_place(python_loop_of(tasks, task));
        if (python_dumped.loop >= 0 ? place != python_dumped.loop : place >= 0 && python_dumped.printed_loops & 1U << place)
            return;
    }
    python_follow_awaits(tasks, &python_dumped.chain, future.coroutine);
    python_dump_task_head(tasks, future.name);
    python_put_state(tasks, &future, &python_dumped.chain);
    python_put_either(tasks, "\n", "");
    python_dump_chain(tasks);
    python_dump_task_end(tasks, list);
}

/* Prints the task that runs in the thread, with the thread's stack up to the task's coroutine. */
static void python_dump_running(struct python_task_reader *tasks, struct python_list *list)
{
    struct python_future future;
    unsigned long task = python_running_task(tasks, &future), last;
    if (!task)
        return;
    if (list->running_count < PYTHON_RUNNING)
        list->running[list->running_count++] = task;
    last = python_task_frame(tasks, task);
    python_dump_task_head(tasks, future.name);
    python_put_either(tasks, ", running\n", "\"running\",\"waits_for\":[]");
    python_dump_stack(python_dumped.dump, &tasks->text, python_enter_frames(tasks), &tasks->frames, last, "  ");
    python_dump_task_end(tasks, list);
}

/* Begins with the tasks of a process. */
static void python_dump_begin_tasks(struct python_dump *dump)
{
    struct python_task_reader *tasks = &python_dumped.tasks;
    struct task_struct *thread;
    struct python_text text;
    memset(&python_dumped, 0, sizeof python_dumped);
    python_dumped.dump = dump;
    python_dumped.readable = python_begin_tasks(tasks, PYTHON_TASKS_EFFORT);
    tasks->json = dump->json;
    python_begin_printing(&text, python_dumped.buffer, sizeof python_dumped.buffer);
    text.layout = tasks->text.layout;
    text.effort = tasks->text.effort;
    tasks->text = text;
    if (!python_dumped.readable || asyncio_offsets[tasks->minor].tasks_format == TASKS_LINKED)
        return;
    python_dumped.list.each = python_note_loop;
    for_each_thread(current, thread)
        if (python_enter_thread(tasks, thread)) {
            python_print_sets(tasks, &python_dumped.list);
            return;
        }
}

/* Up to 3.13: prints the tasks of the loops that the thread runs. */
static void python_dump_loops(struct python_task_reader *tasks, struct python_list *list)
{
    u64 thread = python_word(tasks->state + asyncio_offsets[tasks->minor].thread_id);
    int i;
    for (i = 0; i < python_dumped.loop_count; i++)
        if (thread && python_dumped.threads[i] == thread) {
            python_dumped.loop = i;
            python_dumped.printed_loops |= 1U << i;
            python_print_sets(tasks, list);
        }
}

/* Prints the tasks of a thread. */
static void python_dump_tasks_of(struct task_struct *thread)
{
    struct python_task_reader *tasks = &python_dumped.tasks;
    struct python_list *list = &python_dumped.list;
    list->each = python_dump_task;
    python_dumped.count = python_dumped.loop = 0;
    python_put_either(tasks, "", ",\"tasks\":[");
    if (python_dumped.readable && python_enter_thread(tasks, thread)) {
        python_dump_running(tasks, list);
        if (asyncio_offsets[tasks->minor].tasks_format != TASKS_LINKED)
            python_dump_loops(tasks, list);
        else if (tasks->frames.layout.tstate_tasks_head && python_dumped.state_count < PYTHON_TASKS) {
            python_dumped.states[python_dumped.state_count++] = tasks->state;
            python_print_linked(tasks, list, tasks->state + tasks->frames.layout.tstate_tasks_head);
        }
    }
    python_put_either(tasks, "", "]");
    python_flush(&tasks->text);
}

/* Prints the tasks of no thread that was printed, and whether these are all. */
static void python_dump_other_tasks(void)
{
    struct python_task_reader *tasks = &python_dumped.tasks;
    struct python_list *list = &python_dumped.list;
    python_dumped.count = 0;
    python_dumped.loop = -1;
    python_put_either(tasks, "", ",\"tasks\":[");
    if (python_dumped.readable && tasks->state) {
        if (asyncio_offsets[tasks->minor].tasks_format == TASKS_LINKED)
            python_print_lists(tasks, list, python_dumped.states, python_dumped.state_count);
        else
            python_print_sets(tasks, list);
    }
    list->is_cut |= tasks->text.effort <= 0;
    python_put_either(tasks, list->is_cut ? "There may be more tasks.\n" : "", "]");
    python_put_either(tasks, python_dumped.count || list->is_cut ? "\n" : "",
                      python_dumped.readable && !list->is_cut ? ",\"all_tasks\":true" : ",\"all_tasks\":false");
    python_flush(&tasks->text);
}
