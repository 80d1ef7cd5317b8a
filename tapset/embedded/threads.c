/*
 * Finds the name that the module threading has for a thread, and whether a thread collects garbage.
 *
 * The name is that of a Thread object.  A thread that threading has started has it in its outermost frame, which stays
 * the same.  The main thread's is a variable of threading.  The dict of all (threading._active) is not read: other
 * threads change it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* ---------------------------------------------------------------- names */

/* The Thread object of a thread with this outermost frame; 0: threading has not started it. */
static unsigned long python_started_thread(struct python_text *text, const struct python_frames *outermost)
{
    struct python_variables variables;
    unsigned long name = python_word(outermost->code + outermost->layout.co_name), module, self;
    if ((!python_is_named(text, name, "_bootstrap", 10) && !python_is_named(text, name, "Thread._bootstrap", 17)) ||
        !outermost->layout.frame_f_globals ||
        python_dict_item(text, python_word(outermost->frame + outermost->layout.frame_f_globals), "__name__", 8, &module) != PYTHON_LOOKUP_OK ||
        !python_is_named(text, module, "threading", 9) || !python_find_variables(&variables, outermost) || !variables.arguments ||
        python_variable(&variables, &outermost->layout, 0, &self) != PYTHON_LOOKUP_OK)
        return 0;
    return self;
}

/* Finds the Thread object of the main thread, which threading makes when it is imported.  PYTHON_LOOKUP_ABSENT: it is not
 * imported. */
static enum python_lookup python_main_thread(struct python_text *text, unsigned long interpreter, unsigned long *object)
{
    const struct offsets_page *layout = text->layout;
    unsigned long module;
    enum python_lookup got;
    if (!interpreter)
        return PYTHON_LOOKUP_UNREADABLE;
    got = python_dict_item(text, python_word(interpreter + layout->interp_modules), "threading", 9, &module);
    if (got != PYTHON_LOOKUP_OK)
        return got;
    /* a module has its dict behind the head (Objects/moduleobject.c) */
    got = python_dict_item(text, python_word(module + layout->ob_base_offset + sizeof(struct PyObject_head)), "_main_thread", 12, object);
    return got == PYTHON_LOOKUP_OK ? got : PYTHON_LOOKUP_UNREADABLE;
}

/* Whether an ident is pthread_self() of the thread with this thread pointer, which points to the C library's struct of the
 * thread or, on aarch64, behind it. */
static int python_is_ident(unsigned long ident, unsigned long pointer)
{
    enum { PYTHON_PTHREAD = 8192 }; /* more than sizeof(struct pthread) */
    return pointer - ident < PYTHON_PTHREAD;
}

/* The same for the ident of a Thread object. */
static int python_has_ident(struct python_text *text, unsigned long object, unsigned long pointer)
{
    unsigned long ident;
    s64 value;
    return python_attribute(text, object, "_ident", 6, &ident) == PYTHON_LOOKUP_OK && python_int_of(ident, &value, text->shift) &&
           python_is_ident(value, pointer);
}

/* Finds the outermost frame of the thread with this PyThreadState; false: there is none, or it can't be read. */
static int python_find_outermost(struct python_frames *frames, unsigned long state)
{
    enum python_frame_status found = python_state_frame(frames, state);
    unsigned long frame = 0, code = 0;
    int depth;
    for (depth = 0; found == PYTHON_FRAME_OK && depth < PYTHON_STACK; depth++) {
        frame = frames->frame;
        code = frames->code;
        found = python_next_frame(frames);
    }
    frames->frame = frame;
    frames->code = code;
    return found == PYTHON_FRAME_NONE && frame;
}

/* Writes the name of a thread of this process, and returns 1; 0: threading has none for it; -1: unknown, as before its
 * first frame. */
static int python_put_thread_name(struct python_text *text, const struct offsets_page *layout, struct task_struct *thread)
{
    struct python_frames frames = {.layout = *layout};
    enum python_lookup got = PYTHON_LOOKUP_OK;
    unsigned long state, object, name;
    int found;
    if (!python_read_state(layout, thread, &state) || !state)
        return -1;
    python_begin_values(text, &frames.layout);
    found = python_find_outermost(&frames, state);
    object = found ? python_started_thread(text, &frames) : 0;
    if (!object) {
        got = python_main_thread(text, frames.interpreter, &object);
        if (got == PYTHON_LOOKUP_OK && !python_has_ident(text, object, python_thread_pointer(thread)))
            return found - 1;
    }
    if (got == PYTHON_LOOKUP_OK && python_attribute(text, object, "_name", 5, &name) == PYTHON_LOOKUP_OK)
        python_put_attribute(text, name);
    else if (got == PYTHON_LOOKUP_ABSENT && thread->pid == thread->tgid)
        python_puts(text, "MainThread"); /* as threading will name it */
    else
        return found - 1;
    return 1;
}

/* The names of running threads, each at most a second old; that there is none, a tenth of one, because a Python may only
 * be starting. */
struct python_thread_name {
    int taken;
    pid_t pid;
    u64 start_time;
    unsigned long read; /* jiffies */
    char name[PYTHON_THREAD_NAME];
};
static struct python_thread_name python_thread_names[256];

/* Writes the name of the running thread, or "", into a string of SystemTap. */
static void python_thread_name_text(char *to)
{
    struct python_thread_name *kept = &python_thread_names[current->pid % ARRAY_SIZE(python_thread_names)];
    struct offsets_page layout;
    struct python_text text = {.start = to, .at = to, .end = to + min_t(int, PYTHON_THREAD_NAME, MAXSTRINGLEN) - 4, .reserve = 3};
    int is_mine = !xchg(&kept->taken, 1), found;
    to[0] = '\0';
    if (is_mine && kept->pid == current->pid && kept->start_time == current->start_time && time_before(jiffies, kept->read + (kept->name[0] ? HZ : HZ / 10)))
        strcpy(to, kept->name);
    else if (!current->mm || !python_read_layout(&layout))
        python_warn_no_shim();
    else {
        text.shift = layout.ob_base_offset;
        found = python_put_thread_name(&text, &layout, current);
        if (text.full)
            python_put_last(&text, "...");
        *text.at = '\0';
        if (is_mine && found >= 0) {
            kept->pid = current->pid;
            kept->start_time = current->start_time;
            kept->read = jiffies;
            strcpy(kept->name, to);
        }
    }
    if (is_mine)
        smp_store_release(&kept->taken, 0);
}

/* ---------------------------------------------------------------- collections */

/* Whether it can be known that a thread collects. */
static int python_tells_collections(const struct offsets_page *layout)
{
    return layout->interp_collecting || layout->gil_to_collecting;
}

/* Whether the thread whose innermost frame this is collects garbage: its interpreter does, and the thread holds the GIL.
 * From 3.15 on not in what the collection calls in Python.  No, where it can't be known. */
static int python_collects(const struct python_frames *frames)
{
    const struct offsets_page *layout = &frames->layout;
    unsigned long at;
    struct python_gil gil;
    if (layout->interp_collecting)
        at = frames->interpreter + layout->interp_collecting;
    else if (layout->gil_to_collecting)
        at = python_gil_address(layout, frames->state) + layout->gil_to_collecting;
    else
        return 0;
    if (!python_low_u32(python_word(at)))
        return 0;
    gil.address = python_gil_address(layout, frames->state);
    return gil.address && python_read_gil(&gil, layout) && gil.holder == frames->state &&
           (!layout->interp_collecting_frame ||
            python_word(frames->interpreter + layout->interp_collecting_frame) == frames->frame);
}
