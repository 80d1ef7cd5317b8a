/*
 * Prints the threads of a process for pydump, with their stacks, variables and tasks, as text or as an object of JSON.
 * Its memory is static: one probe at a time dumps, the one that has set python_dump.taken.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

static struct python_dump python_dump;

/* ---------------------------------------------------------------- variables */

/* Cuts the text of a value behind PYTHON_VALUE characters, of which the last three become dots.  full: it is longer. */
static void python_cut_value(char *text, int full)
{
    char *at, *cut = text;
    int characters = 0;
    for (at = text; *at; at++) {
        if ((*at & 0xc0) == 0x80)
            continue;
        if (characters++ == PYTHON_VALUE - 3)
            cut = at;
    }
    if (full || characters > PYTHON_VALUE)
        memcpy(cut, "...", sizeof "...");
}

/* Reads a value into python_dump.value, as far as the dump's budget goes. */
static void python_dump_value(struct python_dump *dump, const struct offsets_page *layout, enum python_lookup got, unsigned long value)
{
    struct python_text text;
    int most = min_t(int, dump->effort, PYTHON_VALUE_EFFORT);
    memset(&text, 0, sizeof text);
    text.start = text.at = dump->value;
    text.end = dump->value + sizeof dump->value - sizeof "...";
    text.shift = layout->ob_base_offset;
    python_begin_values(&text, layout);
    text.effort = most;
    if (got == PYTHON_LOOKUP_OK && most > 0)
        python_put_object(&text, value, 0);
    else
        python_puts(&text, most > 0 ? "<unknown>" : "...");
    dump->effort -= 1 + most - max_t(int, text.effort, 0);
    *text.at = '\0';
    python_cut_value(dump->value, text.full);
}

static void python_dump_variable(struct python_dump *dump, struct python_text *text, const struct offsets_page *layout, unsigned long name,
                                 enum python_lookup got, unsigned long value, const char *indent, int *count)
{
    python_dump_value(dump, layout, got, value);
    if (!dump->json) {
        python_puts(text, indent);
        python_puts(text, "    ");
        python_put_attribute(text, name);
        python_puts(text, " = ");
        python_puts(text, dump->value);
        python_puts(text, "\n");
        return;
    }
    if ((*count)++)
        python_puts(text, ",");
    python_open_string(text);
    python_put_attribute(text, name);
    python_close_string(text);
    python_puts(text, ":");
    python_open_string(text);
    python_puts(text, dump->value);
    python_close_string(text);
}

/* Whether the name of a module's or class's variable is Python's own: __builtins__, __doc__. */
static int python_is_dunder(unsigned long name, unsigned shift)
{
    char letters[64];
    int length = python_copy_name(letters, sizeof letters, name, shift);
    return length > 4 && strncmp(letters, "__", 2) == 0 && strncmp(letters + length - 2, "__", 2) == 0;
}

/* The variables of a class statement or a module. */
static void python_dump_namespace(struct python_dump *dump, struct python_text *text, const struct python_frames *frames, const char *indent,
                                  int *count)
{
    struct python_dict_iter walk;
    struct python_text reader;
    unsigned long name, value;
    memset(&reader, 0, sizeof reader);
    python_begin_values(&reader, &frames->layout);
    if (!python_dict_iter_init(&walk, &frames->layout, python_word(frames->frame + frames->layout.frame_f_locals)))
        return;
    while (dump->effort > 0 && python_dict_iter_next(&walk, &reader, &name, &value) > 0)
        if (!python_is_dunder(name, frames->layout.ob_base_offset))
            python_dump_variable(dump, text, &frames->layout, name, PYTHON_LOOKUP_OK, value, indent, count);
}

/* Prints the variables of a frame that have a value. */
static void python_dump_locals(struct python_dump *dump, struct python_text *text, const struct python_frames *frames, const char *indent)
{
    struct python_variables variables;
    enum python_lookup got;
    unsigned long value = 0;
    u64 i, all;
    int count = 0;
    if (!python_find_variables(&variables, frames)) {
        python_puts(text, dump->json ? "null" : indent);
        python_puts(text, dump->json ? "" : "    <unknown>\n");
        return;
    }
    python_puts(text, dump->json ? "{" : "");
    all = python_variables_count(&variables);
    for (i = 0; i < all && dump->effort > 0; i++)
        if ((got = python_variable(&variables, &frames->layout, i, &value)) != PYTHON_LOOKUP_UNSET)
            python_dump_variable(dump, text, &frames->layout, python_variable_name(&variables, i), got, value, indent, &count);
    if (!(variables.flags & CO_OPTIMIZED))
        python_dump_namespace(dump, text, frames, indent, &count);
    if (dump->effort <= 0 && !dump->json) {
        python_puts(text, indent);
        python_puts(text, "    ...\n");
    }
    python_puts(text, dump->json ? "}" : "");
}

/* ---------------------------------------------------------------- frames */

static void python_dump_string(struct python_text *text, const char *key, unsigned long object)
{
    python_puts(text, key);
    python_open_string(text);
    python_put_attribute(text, object);
    python_close_string(text);
}

static void python_dump_frame(struct python_dump *dump, struct python_text *text, const struct python_frames *frames, int in_jit,
                              const char *indent, int *count)
{
    const struct offsets_page *layout = &frames->layout;
    int line, known;
    dump->left--;
    if (!dump->json) {
        python_puts(text, indent);
        python_put_frame(text, layout, frames->frame, frames->code, &dump->budget, in_jit);
        if (dump->locals)
            python_dump_locals(dump, text, frames, indent);
        return;
    }
    known = python_frame_line(layout, frames->frame, frames->code, &line, &dump->budget);
    python_dump_string(text, (*count)++ ? ",{\"function\":" : "{\"function\":", python_word(frames->code + layout->co_name));
    python_dump_string(text, ",\"file\":", python_word(frames->code + layout->co_filename));
    python_puts(text, ",\"line\":");
    python_put_number(text, line < 0, line < 0 ? -(s64)line : line);
    python_puts(text, known ? "" : ",\"def\":true");
    python_puts(text, in_jit ? ",\"jit\":true" : "");
    if (dump->locals) {
        python_puts(text, ",\"locals\":");
        python_dump_locals(dump, text, frames, "");
    }
    python_puts(text, "}");
}

/* Behind the last frame that is printed. */
static void python_dump_stack_end(struct python_dump *dump, struct python_text *text, enum python_frame_status found, const char *indent)
{
    if (dump->json)
        python_puts(text, found == PYTHON_FRAME_NONE ? "],\"whole\":true" : "],\"whole\":false");
    else if (found != PYTHON_FRAME_NONE) {
        python_puts(text, indent);
        python_puts(text, found == PYTHON_FRAME_OK ? "...\n" : "<unknown>\n");
    }
}

/* Prints frames from the innermost one to the outermost, or to the frame `last` (0: none). */
static void python_dump_stack(struct python_dump *dump, struct python_text *text, enum python_frame_status found,
                              struct python_frames *frames, unsigned long last, const char *indent)
{
    s64 depth = min_t(s64, dump->depth, PYTHON_STACK);
    int in_jit = frames->in_jit, count = 0;
    python_puts(text, dump->json ? ",\"frames\":[" : "");
    for (; found == PYTHON_FRAME_OK && depth-- > 0 && dump->left > 0; in_jit = 0) {
        python_dump_frame(dump, text, frames, in_jit, indent, &count);
        found = last && frames->frame == last ? PYTHON_FRAME_NONE : python_next_frame(frames);
    }
    python_dump_stack_end(dump, text, found, indent);
}

/* ---------------------------------------------------------------- threads */

static void python_dump_process_head(struct python_dump *dump, struct python_text *text, const struct offsets_page *layout)
{
    struct task_struct *leader = current->group_leader;
    char version[sizeof layout->version + 1] = "";
    if (!dump->json && !dump->processes)
        return;
    python_puts(text, !dump->json ? "Process " : dump->printed ? ",\n{\"pid\":" : "{\"processes\":[\n{\"pid\":");
    python_put_number(text, 0, leader->pid);
    if (!dump->json) {
        python_puts(text, " \"");
        python_put_comm(text, leader);
        python_puts(text, "\"\n\n");
        return;
    }
    python_puts(text, ",\"name\":");
    python_open_string(text);
    python_put_comm(text, leader);
    python_close_string(text);
    python_puts(text, ",\"version\":");
    memcpy(version, layout->version, sizeof layout->version);
    python_open_string(text);
    python_put_ascii(text, version);
    python_close_string(text);
    python_puts(text, ",\"threads\":[");
}

static void python_dump_thread_name(struct python_text *text, struct task_struct *thread, const struct offsets_page *layout)
{
    python_puts(text, "Thread ");
    python_put_number(text, 0, thread->pid);
    python_puts(text, " ");
    python_put_quoted_thread(text, layout, thread, 0);
}

static void python_dump_path(struct python_text *text, const struct python_lock *lock)
{
    int i;
    for (i = 0; i < lock->steps; i++) {
        python_puts(text, i ? "." : "");
        python_put_attribute(text, lock->path[i]);
    }
}

static void python_dump_lock_as_json(struct python_text *text, const struct python_lock *lock, struct task_struct **cycle, int count)
{
    int i;
    python_puts(text, "{\"path\":");
    python_open_string(text);
    python_dump_path(text, lock);
    python_close_string(text);
    python_dump_string(text, ",\"function\":", lock->function);
    python_puts(text, ",\"holder\":");
    if (lock->holder)
        python_put_number(text, 0, lock->holder->pid);
    else
        python_puts(text, "null");
    python_puts(text, lock->is_join ? ",\"join\":true,\"deadlock\":[" : ",\"deadlock\":[");
    for (i = 0; i < count; i++) {
        python_puts(text, i ? "," : "");
        python_put_number(text, 0, cycle[i]->pid);
    }
    python_puts(text, "]}");
}

/* Says for which lock the thread sleeps, and which threads wait for each other. */
static void python_dump_lock(struct python_dump *dump, struct python_text *text, struct task_struct *thread,
                             const struct offsets_page *layout)
{
    struct task_struct *cycle[PYTHON_CYCLE];
    struct python_lock lock;
    int count, i;
    dump->others.layout = *layout;
    if (!python_find_lock(&lock, &dump->others, thread)) {
        python_puts(text, dump->json ? ",\"lock\":null" : "");
        return;
    }
    count = lock.holder ? python_find_cycle(cycle, &dump->others, thread) : 0;
    if (dump->json) {
        python_puts(text, ",\"lock\":");
        python_dump_lock_as_json(text, &lock, cycle, count);
        return;
    }
    python_puts(text, "waits for ");
    python_dump_path(text, &lock);
    python_puts(text, " in ");
    python_put_attribute(text, lock.function);
    if (lock.holder) {
        python_puts(text, lock.is_join ? ", the end of " : ", which is held by ");
        python_dump_thread_name(text, lock.holder, layout);
    }
    python_puts(text, count ? "\ndeadlock: Thread " : "");
    for (i = 0; i < count; i++) {
        python_put_number(text, 0, cycle[i]->pid);
        python_puts(text, " -> Thread ");
    }
    if (count)
        python_put_number(text, 0, thread->pid);
    python_puts(text, "\n");
}

static void python_dump_thread_head(struct python_dump *dump, struct python_text *text, struct task_struct *thread,
                                    const struct offsets_page *layout)
{
    int running = python_is_running(thread), has_gil = -1;
    unsigned long state;
    if (python_read_state(layout, thread, &state) && state)
        has_gil = python_state_has_gil(layout, state);
    if (!dump->json) {
        python_dump_thread_name(text, thread, layout);
        python_puts(text, running ? ", running" : ", asleep");
        python_puts(text, has_gil > 0 ? ", has the GIL\n" : "\n");
        return;
    }
    python_puts(text, dump->threads ? ",\n {\"tid\":" : "\n {\"tid\":");
    python_put_number(text, 0, thread->pid);
    python_puts(text, ",\"name\":");
    python_put_quoted_thread(text, layout, thread, 1);
    python_puts(text, running ? ",\"state\":\"running\",\"gil\":" : ",\"state\":\"asleep\",\"gil\":");
    python_puts(text, has_gil < 0 ? "null" : has_gil ? "true" : "false");
}

/* Prints a thread, if it runs Python code, and its tasks. */
static void python_dump_thread(struct python_dump *dump, struct task_struct *thread)
{
    struct python_frames *frames = &dump->frames;
    enum python_frame_status found;
    struct python_text text;
    frames->passed_over = frames->in_jit = 0;
    found = python_thread_frame(frames, thread);
    if (found == PYTHON_FRAME_NONE)
        return;
    python_begin_printing(&text, dump->buffer, sizeof dump->buffer);
    if (!dump->threads)
        python_dump_process_head(dump, &text, &frames->layout);
    python_dump_thread_head(dump, &text, thread, &frames->layout);
    python_dump_lock(dump, &text, thread, &frames->layout);
    python_dump_stack(dump, &text, found, frames, 0, "");
    python_flush(&text);
    dump->threads++;
    if (dump->tasks)
        python_dump_tasks_of(thread);
    _stp_print(dump->json ? "}" : "\n");
}

/* Behind the last thread. */
static void python_dump_process_end(struct python_dump *dump, int all_threads)
{
    if (dump->json)
        _stp_print(all_threads ? "],\"all_threads\":true" : "],\"all_threads\":false");
    else if (!all_threads)
        _stp_print("There are more threads.\n\n");
    if (dump->tasks)
        python_dump_other_tasks();
    if (dump->json && dump->locals)
        _stp_print(dump->effort > 0 ? ",\"all_locals\":true" : ",\"all_locals\":false");
    if (dump->json)
        _stp_print("}");
}

/* Prints the threads of the process in which the probe runs; returns how many. */
static int python_dump_process(struct python_dump *dump)
{
    struct task_struct *thread;
    int looked = 0;
    dump->threads = 0;
    dump->budget = PYTHON_TABLES;
    dump->effort = python_lock_effort = PYTHON_DUMP_EFFORT;
    dump->left = PYTHON_FRAMES;
    memset(&dump->frames, 0, sizeof dump->frames);
    memset(&dump->others, 0, sizeof dump->others);
    if (!current->mm || !python_read_layout(&dump->frames.layout)) {
        python_warn_no_shim();
        return 0;
    }
    rcu_read_lock();
    if (dump->tasks)
        python_dump_begin_tasks(dump);
    for_each_thread(current, thread)
        if (looked++ < PYTHON_STACK)
            python_dump_thread(dump, thread);
    if (dump->threads)
        python_dump_process_end(dump, looked <= PYTHON_STACK);
    rcu_read_unlock();
    dump->printed += dump->threads > 0;
    return dump->threads;
}

/* Makes the calling probe the one that dumps; false: another one does. */
static int python_dump_take(void)
{
    return !xchg(&python_dump.taken, 1);
}

/* What it has printed must be in front of what the next one prints, perhaps on another CPU. */
static void python_dump_give_back(void)
{
    _stp_print_flush();
    smp_store_release(&python_dump.taken, 0);
}
