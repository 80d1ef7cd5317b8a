/*
 * Coroutines, generators and asynchronous generators: where they stand, and what they await there.  A part of
 * python_objects.stp.in, which includes it behind python_samples.h.
 *
 * SPDX-License-Identifier: MIT
 */

/* The CPython 3.N that it is; 0: not known. */
static int python_minor(const struct offsets_page *layout)
{
    const char *at = layout->version + 2;
    int minor = 0, digits;
    if (layout->version[0] != '3' || layout->version[1] != '.')
        return 0;
    for (digits = 0; digits < 2 && *at >= '0' && *at <= '9'; digits++)
        minor = 10 * minor + *at++ - '0';
    return minor;
}

/* What an object is, by its type. */
enum python_awaitable_kind {
    PYTHON_KIND_OTHER = 1,
    PYTHON_KIND_FRAME,  /* it has a frame */
    PYTHON_KIND_WRAPS,  /* behind its head is what it stands for */
    PYTHON_KIND_FUTURE, /* of _asyncio, or derived from that */
    PYTHON_KIND_TASK,
    PYTHON_KIND_CLASS, /* of a class statement */
};
struct python_awaitable_type {
    unsigned long type;
    enum python_awaitable_kind kind;
    int value; /* of one with a frame: where; of a future or a task: which of python_futures */
};

/* FutureObj and TaskObj, Modules/_asynciomodule.c: what each CPython has where.  Behind what a task waits for are its
 * coroutine and its name; from 3.14 on its place in a list of tasks is behind these. */
static const struct python_futures {
    int first, last; /* 3.N */
    int task_size, future_size, state, waiter;
} python_futures[] = {
    {8, 8, 144, 104, 72, 104},   {9, 10, 184, 144, 80, 144},  {9, 10, 192, 152, 88, 152},
    {11, 12, 176, 128, 88, 128}, {13, 13, 144, 104, 96, 112}, {14, 15, 168, 112, 104, 120},
    {14, 15, 176, 112, 104, 120}, /* free-threaded: the thread that made it is behind that */
};
enum { PYTHON_TASK_NODE = 152 }; /* that place */

/* All that is looked up for tasks. */
struct python_task_reader {
    struct python_text text;
    struct python_frames frames; /* with the layout */
    unsigned long budget;        /* for line tables */
    int minor;
    unsigned long state, interpreter; /* a PyThreadState, and its PyInterpreterState */
    struct python_awaitable_type kinds[8];
    unsigned looked; /* up for the table of kinds */
};

static int python_type_named(const struct python_type *type, const char *name)
{
    char known[32] = "";
    int size = strlen(name) + 1;
    return size <= (int)sizeof known && python_read(known, type->name, size) && memcmp(known, name, size) == 0;
}

/* Which of python_futures a type of that size, without python_ob_base_offset(), is; -1: none. */
static int python_future_at(int minor, u64 size, int is_task)
{
    int i;
    for (i = 0; i < (int)ARRAY_SIZE(python_futures); i++)
        if (minor >= python_futures[i].first && minor <= python_futures[i].last &&
            size == (u64)(is_task ? python_futures[i].task_size : python_futures[i].future_size))
            return i;
    return -1;
}

/* Whether a type is one of _asyncio's, which are static to 3.11, or derived from one. */
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

/* Where a coroutine has its frame, gi_frame: Include/genobject.h (to 3.10, of another object); gi_iframe: behind all
 * that the type's size counts but for a frame without variables: Include/cpython/genobject.h (3.11 on),
 * Include/internal/pycore_interpframe_structs.h (3.14 on). */
static int python_frame_within(const struct python_task_reader *tasks, const struct python_type *type)
{
    if (tasks->minor <= 10)
        return sizeof(struct PyObject_head);
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
    /* not those of class statements, which may have these names, too */
    for (i = 0; i < (int)ARRAY_SIZE(frames) && !(type.flags & PYTHON_HEAP); i++)
        if (python_type_named(&type, frames[i])) {
            kind->value = python_frame_within(tasks, &type);
            if (kind->value >= (int)sizeof(struct PyObject_head) && kind->value < 256 && tasks->frames.layout.frame_localsplus)
                kind->kind = PYTHON_KIND_FRAME;
            return;
        }
    /* Objects/genobject.c, Objects/iterobject.c, Modules/_asynciomodule.c: in all of them it is behind the head */
    for (i = 0; i < (int)ARRAY_SIZE(wraps) && !(type.flags & PYTHON_HEAP); i++)
        if (python_type_named(&type, wraps[i]))
            kind->kind = PYTHON_KIND_WRAPS;
    if (python_type_named(&type, "_asyncio.FutureIter"))
        kind->kind = PYTHON_KIND_WRAPS;
    if (kind->kind == PYTHON_KIND_OTHER && !python_look_up_future(kind, type, tasks->minor) && type.flags & PYTHON_HEAP)
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

/* ---- what it awaits */

struct python_coroutine {
    unsigned long frame; /* 0: it has ended */
    int runs;            /* or what it awaits does */
    unsigned long awaits; /* 0: it runs, has not begun, or yields something */
};

/* PyFrameObject, to 3.10: Include/frameobject.h (3.8), Include/cpython/frameobject.h (3.9, 3.10). */
enum {
    PYTHON_FRAME_STACK = 64,
    PYTHON_FRAME_TOP = 72,   /* to 3.9: NULL while it runs */
    PYTHON_FRAME_DEPTH = 80, /* 3.10: of int */
    PYTHON_FRAME_STATE = 108,
    PYTHON_YIELD_FROM = 72, /* Include/opcode.h */
};

/* As _PyGen_yf() of Objects/genobject.c finds it; the instruction is in a bytes, before the names of the code object
 * (PyCodeObject.co_code, seven words before co_filename). */
static void python_awaited_3_10(const struct python_task_reader *tasks, struct python_coroutine *coroutine)
{
    const struct offsets_page *layout = &tasks->frames.layout;
    unsigned long frame = coroutine->frame, top = 0, code;
    int instruction, depth = 0;
    u8 opcode, state = 0;
    if (tasks->minor == 10) {
        if (!python_read(&depth, frame + PYTHON_FRAME_DEPTH, sizeof depth) || !python_read(&state, frame + PYTHON_FRAME_STATE, 1))
            return;
        coroutine->runs = state == 0; /* FRAME_EXECUTING */
        if (depth > 0 && depth < 0x10000)
            top = python_word(frame + PYTHON_FRAME_STACK) + depth * sizeof(u64);
    } else {
        top = python_word(frame + PYTHON_FRAME_TOP);
        coroutine->runs = !top;
    }
    if (coroutine->runs || !top || !python_read(&instruction, frame + layout->frame_instr_ptr, sizeof instruction) || instruction < 0)
        return;
    code = python_word(python_word(frame + layout->frame_executable) + layout->co_filename - 7 * sizeof(u64));
    if (tasks->minor == 10)
        instruction *= 2;
    if (code && python_read(&opcode, code + sizeof(struct PyBytesObject) + instruction + 2, 1) && opcode == PYTHON_YIELD_FROM)
        coroutine->awaits = python_word(top - sizeof(u64));
}

/* _PyInterpreterFrame: in 3.11 to 3.13 how many words of variables and stack there are, an int; from 3.14 on a pointer
 * behind the last of them (Include/internal/pycore_frame.h, pycore_interpframe_structs.h).  gi_frame_state: five bytes
 * before the frame; its values are those of pycore_frame.h.  RESUME's argument tells whether it awaits: 2 (yield from)
 * and 3 (await), in 3.11 and 3.12; later that is a state of its own.  What it awaits is the last word, in 3.15 the one
 * before. */
enum { PYTHON_FRAME_TOP_3_11 = 64, PYTHON_STATE_BEFORE = 5 };

static void python_awaited_3_11(const struct python_task_reader *tasks, struct python_coroutine *coroutine)
{
    const struct offsets_page *layout = &tasks->frames.layout;
    unsigned long frame = coroutine->frame, next;
    signed char state;
    u8 unit[2];
    u32 count;
    if (!python_read(&state, frame - PYTHON_STATE_BEFORE, 1))
        state = 100;
    coroutine->runs = state == (tasks->minor >= 15 ? 4 : 0);
    if (tasks->minor >= 15 ? state > 4 : state > 0)
        coroutine->frame = 0;
    if (tasks->minor >= 15 ? state != 2 && state != 3 : state != -1)
        return;
    if (tasks->minor <= 12) {
        next = python_word(frame + layout->frame_instr_ptr) + sizeof unit;
        if (!python_read(unit, next, sizeof unit) || (unit[1] & 3) < 2)
            return;
    }
    if (tasks->minor >= 14)
        coroutine->awaits = python_word(python_word(frame + PYTHON_FRAME_TOP_3_11) -
                                        (tasks->minor >= 15 ? 2 : 1) * sizeof(u64)) & ~PYTHON_TAGS;
    else if (python_read(&count, frame + PYTHON_FRAME_TOP_3_11, sizeof count) && count && count < 0x10000)
        coroutine->awaits = python_word(frame + layout->frame_localsplus + (count - 1) * sizeof(u64));
}

/* Whether it is a coroutine or the like. */
static int python_read_coroutine(struct python_task_reader *tasks, struct python_coroutine *coroutine, unsigned long object)
{
    struct python_awaitable_type kind = python_awaitable_type(tasks, object);
    memset(coroutine, 0, sizeof *coroutine);
    if (kind.kind != PYTHON_KIND_FRAME)
        return 0;
    if (tasks->minor >= 11) {
        coroutine->frame = object + kind.value;
        python_awaited_3_11(tasks, coroutine);
        return 1;
    }
    coroutine->frame = python_word(object + kind.value);
    if (coroutine->frame)
        python_awaited_3_10(tasks, coroutine);
    return 1;
}

/* The frames in which a task waits, the innermost last: the last ones of so many, if it's more than there is room for. */
enum { PYTHON_CHAIN = 64 };
struct python_await_chain {
    unsigned long frames[PYTHON_CHAIN];
    int count;
    int runs; /* one of them does */
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

/* Goes to the frame of the chain with this number: whether it is one. */
static int python_chain_frame(struct python_task_reader *tasks, const struct python_await_chain *chain, int at)
{
    struct python_frames *frames = &tasks->frames;
    frames->frame = chain->frames[at % PYTHON_CHAIN];
    frames->code = python_word(frames->frame + frames->layout.frame_executable) & ~PYTHON_TAGS;
    return frames->code && python_is_code(frames);
}

/* Whole lines, the innermost frame first, and a line of dots if there are more of them. */
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
        python_put_frame(&tasks->text, &tasks->frames.layout, tasks->frames.frame, tasks->frames.code, &tasks->budget);
    }
}
