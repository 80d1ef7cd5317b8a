/*
 * Reads samples: the frames of a thread, with lines, and the keys by which python_samples.stp.in caches their names.
 * Then prints stacks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* Begins with the innermost frame of the running thread (state: 0) or of the thread of its process with this
 * PyThreadState; python_next_frame() goes on. */
static enum python_frame_status python_begin_sample(struct python_sample *sample, unsigned long state)
{
    struct python_frames *frames = &sample->frames;
    sample->count = 0;
    sample->file_read = 0;
    sample->writer.str_type = 0;
    sample->budget = PYTHON_TABLES;
    if (!state)
        return python_first_frame(frames, 0);
    memset(frames, 0, sizeof *frames);
    return python_read_layout(&frames->layout) ? python_state_frame(frames, state) : PYTHON_FRAME_UNKNOWN;
}

/* Adds so many bytes to a hash; 0: unreadable. */
static u64 python_hash_bytes(u64 hash, unsigned long from, unsigned long size)
{
    unsigned long done, piece, i;
    u64 words[32];
    for (done = 0; done < size; done += piece) {
        piece = min_t(unsigned long, size - done, sizeof words);
        words[(piece - 1) / sizeof *words] = 0;
        if (!python_read(words, from + done, piece))
            return 0;
        for (i = 0; i < DIV_ROUND_UP(piece, sizeof *words); i++)
            hash = python_hash_next(hash, words[i]);
    }
    return python_hash_mix(hash, size);
}

/* A hash of a str: its own, if CPython has computed it, else one of its first PYTHON_CHARACTERS; 0: unreadable. */
static u64 python_str_hash(unsigned long str, unsigned shift)
{
    struct python_bytes bytes = {0};
    struct python_type type;
    unsigned kind;
    u64 hash, count;
    if (!str || !python_read(&hash, str + shift + offsetof(struct PyASCIIObject, hash), sizeof hash))
        return 0;
    if (hash != ~0ULL)
        return hash;
    if (!python_read_type(&type, str, shift) || !python_find_characters(&bytes, &count, &kind, str, &type))
        return 0;
    return python_hash_bytes(python_hash_mix(kind, count), bytes.at, min_t(u64, count, PYTHON_CHARACTERS) * kind);
}

/* The user and the mount namespace (a container) of this process.  A name is kept for one owner alone: who may write to a
 * process's memory could have names kept that are false. */
static __always_inline u64 python_owner(void)
{
    const struct nsproxy *namespaces = current->nsproxy; /* NULL: the process ends */
    return python_hash_mix(python_hash_mix(python_secret, __kuid_val(current_euid())), namespaces ? (unsigned long)namespaces->mnt_ns : 0);
}

/* A key that identifies a code object.  It contains hashes of the names, because a later code object may have the address of
 * a freed one, and its names those of the freed names. */
static __always_inline u64 python_key(u64 owner, unsigned long code, u64 name_hash, u64 file_hash)
{
    u64 key = (name_hash * 0x9e3779b97f4a7c15ULL ^ file_hash) * 0xc2b2ae3d27d4eb4fULL ^ code ^ owner;
    return key ^ key >> 29;
}

/* The key of the frame's code object; 0: unreadable. */
static u64 python_sample_key(struct python_sample *sample)
{
    struct python_frames *frames = &sample->frames;
    if (!frames->name_hash || frames->name_hash == ~0ULL)
        frames->name_hash = python_str_hash(frames->name, frames->layout.ob_base_offset);
    if (!frames->file_hash || frames->file_hash == ~0ULL)
        frames->file_hash = python_str_hash(frames->file, frames->layout.ob_base_offset);
    return frames->name_hash && frames->file_hash ? python_key(sample->owner, frames->code, frames->name_hash, frames->file_hash) : 0;
}

/* Writes a str, as much of it as has room; returns its length. */
static size_t python_sample_str(struct python_sample *sample, char *to, int room, unsigned long object)
{
    struct python_text *text = &sample->writer;
    text->start = text->at = to;
    text->end = to + room - 1;
    text->full = 0;
    text->shift = sample->frames.layout.ob_base_offset;
    python_put_attribute(text, object);
    *text->at = '\0';
    return text->at - to;
}

static __always_inline u64 python_place_hash(const struct python_code_position *place, u64 key)
{
    return python_hash_mix(key, (u64)place->first_line << 32 | (u32)place->offset);
}

/* Reads the position of the frame, for the two functions below.  Returns a hash of the position and the code's key,
 * without the line table; 0: unreadable. */
static u64 python_sample_place(struct python_sample *sample, u64 key)
{
    struct python_code_position *place = &sample->place;
    if (python_frame_position(&sample->frames.layout, sample->frames.frame, sample->frames.code, place))
        return python_place_hash(place, key);
    place->size = 0;
    return 0;
}

/* Whether so many bytes of the line table are there and in the budget. */
static __always_inline bool python_use_table(struct python_sample *sample, unsigned long used)
{
    if (used > sample->place.size || used > sample->budget)
        return false;
    sample->budget -= used;
    return true;
}

/* Adds the first so many bytes of the line table to that hash; 0: unreadable, or over budget. */
static u64 python_sample_table(struct python_sample *sample, u64 hash, unsigned long used)
{
    return python_use_table(sample, used) ? python_hash_bytes(hash, sample->place.table, used) : 0;
}

/* The line of the position, or of the def.  *used: how many bytes of the line table determine the line.  *place, the hash of
 * python_sample_place(), gets these bytes added, or becomes 0 if the line is unknown. */
static int python_sample_line(struct python_sample *sample, u64 *place, u32 *used)
{
    unsigned long read;
    int line;
    int known = python_place_line(&sample->frames.layout, &sample->place, &line, &read, &sample->budget);
    *used = read;
    *place = known && *place ? python_hash_bytes(*place, sample->place.table, read) : 0;
    return line;
}

/* ---------------------------------------------------------------- stacks as text */

/* Writes whole lines, then a line of dots if frames are left; returns how many frames. */
static int python_put_frames(struct python_text *text, enum python_frame_status found, struct python_frames *frames,
                             s64 depth, unsigned long *budget)
{
    int in_jit = frames->in_jit, count = 0;
    depth = min_t(s64, depth, PYTHON_STACK);
    for (; found == PYTHON_FRAME_OK; in_jit = 0, found = python_next_frame(frames)) {
        char *line = text->at;
        if (count++ < depth)
            python_put_frame(text, &frames->layout, frames->frame, frames->code, budget, in_jit);
        if (count > depth || text->full) {
            text->at = line;
            python_put_last(text, "...\n");
            return count - 1;
        }
    }
    if (found == PYTHON_FRAME_UNKNOWN)
        python_put_last(text, "<unknown>\n");
    return count;
}

static void python_put_stack(struct python_text *text, unsigned long object, s64 depth)
{
    struct python_frames frames;
    unsigned long budget = PYTHON_TABLES;
    python_put_frames(text, python_first_frame(&frames, object), &frames, depth, &budget);
}

/* Begins a text that is printed whenever its buffer is full. */
static void python_begin_printing(struct python_text *text, char *buffer, int size)
{
    memset(text, 0, sizeof *text);
    text->start = text->at = buffer;
    text->end = buffer + size - 1;
    text->print = PYTHON_PRINT;
    text->shift = python_ob_base_offset();
}

/* Whether a thread is on a CPU or waits for one: not the running thread, while it leaves its CPU to sleep. */
static int python_is_running(struct task_struct *thread)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
    return READ_ONCE(thread->__state) == TASK_RUNNING;
#else
    return READ_ONCE(thread->state) == TASK_RUNNING;
#endif
}

/* Writes bytes that the program controls, with ? for those that are not ASCII. */
static void python_put_ascii(struct python_text *text, const char *c)
{
    for (; *c; c++)
        python_put_character(text, (unsigned char)*c < 0x80 ? *c : '?', 0);
}

/* Writes a thread's name in the kernel. */
static void python_put_comm(struct python_text *text, struct task_struct *thread)
{
    char comm[sizeof thread->comm];
    memcpy(comm, thread->comm, sizeof comm);
    comm[sizeof comm - 1] = '\0';
    python_put_ascii(text, comm);
}

/* Writes a thread's name in quotes, that of threading or, where threading has none, of the kernel; json: as a string of
 * JSON. */
static void python_put_quoted_thread(struct python_text *text, const struct offsets_page *layout, struct task_struct *thread, int json)
{
    if (json)
        python_open_string(text);
    else
        python_puts(text, "\"");
    if (python_put_thread_name(text, layout, thread) <= 0)
        python_put_comm(text, thread);
    text->layout = NULL; /* that was python_put_thread_name()'s */
    if (json)
        python_close_string(text);
    else
        python_puts(text, "\"");
}

/* Prints a thread of this process and its stack, of at most *left frames, and takes their number off; false: no Python
 * frames. */
static int python_print_thread(struct task_struct *thread, const struct offsets_page *layout, s64 depth,
                               unsigned long *budget, int *left)
{
    struct python_frames frames = {.layout = *layout};
    enum python_frame_status found = python_thread_frame(&frames, thread);
    struct python_text text;
    char buffer[128];
    if (found == PYTHON_FRAME_NONE)
        return 0;
    python_begin_printing(&text, buffer, sizeof buffer);
    python_puts(&text, "Thread ");
    python_put_number(&text, 0, thread->pid);
    python_puts(&text, " ");
    python_put_quoted_thread(&text, layout, thread, 0);
    python_puts(&text, python_is_running(thread) ? ", running\n" : ", asleep\n");
    *left -= python_put_frames(&text, found, &frames, min_t(s64, depth, *left), budget);
    python_puts(&text, "\n");
    python_flush(&text);
    return 1;
}
