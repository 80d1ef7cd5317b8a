/*
 * Samples: for python_samples.stp, which calls these under a lock of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

static struct {
    struct python_frames frames;
    unsigned long budget; /* for its line tables */
    int more;             /* there are frames beyond these */
    struct {
        unsigned long frame, code, name, file;
    } at[PYTHON_STACK];
    struct python_code_position place; /* of the frame that was looked at last */
    /* The last code object that was asked for and its key, and the last file and its hash, in this sample. */
    unsigned long code, file;
    u64 key, file_hash;
} python_sample;

/* Takes at most so many frames of the running thread, or of another one of its process, by the PyThreadState of that,
 * the innermost first: their number; 0: it has none; -1: unknown. */
static int python_take_sample(unsigned long state, int most)
{
    struct python_frames *frames = &python_sample.frames;
    enum python_frame_status found = PYTHON_FRAME_UNKNOWN;
    int count = 0;
    if (!state)
        found = python_first_frame(frames, 0);
    else if (memset(frames, 0, sizeof *frames), python_read_layout(&frames->layout))
        found = python_state_frame(frames, state);
    for (; found == PYTHON_FRAME_OK && count < most; found = python_next_frame(frames)) {
        python_sample.at[count].frame = frames->frame;
        python_sample.at[count].name = frames->name;
        python_sample.at[count].file = frames->file;
        python_sample.at[count++].code = frames->code;
    }
    python_sample.code = python_sample.file = python_sample.file_hash = 0;
    python_sample.budget = PYTHON_TABLES;
    python_sample.more = found == PYTHON_FRAME_OK;
    return found == PYTHON_FRAME_UNKNOWN ? -1 : count;
}

/* Whether there are frames beyond them. */
static int python_sample_has_more(void)
{
    return python_sample.more;
}

static u64 python_hash_mix(u64 hash, u64 word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

/* Adds so many bytes to a hash; 0: they can't be read. */
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
            hash = python_hash_mix(hash, words[i]);
    }
    return hash;
}

/* A hash of a str: that of its characters which it keeps itself, or one of as many as a name may have; 0: it can't be
 * read. */
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

/* What tells the code of a frame of the sample, with its names, from all others; 0: nothing does.  A code object
 * that was freed may have another one at its address, whose names may have the addresses of the old ones, so it
 * is the names' own hashes that count. */
static u64 python_sample_key(int at)
{
    unsigned long code = python_sample.at[at].code, file = python_sample.at[at].file;
    unsigned shift = python_sample.frames.layout.ob_base_offset;
    u64 name, key;
    if (code == python_sample.code)
        return python_sample.key;
    if (file != python_sample.file)
        python_sample.file_hash = python_str_hash(file, shift);
    python_sample.file = file;
    name = python_str_hash(python_sample.at[at].name, shift);
    key = (name * 0x9e3779b97f4a7c15ULL ^ python_sample.file_hash) * 0xc2b2ae3d27d4eb4fULL ^ code;
    python_sample.code = code;
    python_sample.key = name && python_sample.file_hash ? key ^ key >> 29 : 0;
    return python_sample.key;
}

/* The names of a frame of the sample, as much of them as has room. */
static void python_sample_attribute(char *to, int room, int at, unsigned offset)
{
    struct python_text text = {.start = to, .at = to, .end = to + room - 1, .shift = python_sample.frames.layout.ob_base_offset};
    python_put_attribute(&text, python_word(python_sample.at[at].code + offset));
    *text.at = '\0';
}

static void python_sample_file(char *to, int room, int at)
{
    python_sample_attribute(to, room, at, python_sample.frames.layout.co_filename);
}

static void python_sample_function(char *to, int room, int at)
{
    python_sample_attribute(to, room, at, python_sample.frames.layout.co_name);
}

/* Looks at the place of a frame of the sample, for the functions below: what tells it, with the code's key, from
 * others, as far as that is not in the line table; 0: it can't be read. */
static u64 python_sample_place(int at, u64 key)
{
    struct python_code_position *place = &python_sample.place;
    if (python_frame_position(&python_sample.frames.layout, python_sample.at[at].frame, python_sample.at[at].code, place))
        return python_hash_mix(key, (u64)place->first_line << 32 | (u32)place->offset);
    place->size = 0;
    return 0;
}

/* Adds to that the first so many bytes of the line table; 0: they can't be read. */
static u64 python_sample_table(u64 hash, unsigned long used)
{
    if (used > python_sample.place.size || used > python_sample.budget)
        return 0;
    python_sample.budget -= used;
    return python_hash_bytes(hash, python_sample.place.table, used);
}

/* Its line, or that of its def; with *place, of python_sample_place(), the same, *used of the table's bytes tell the
 * line: they are added to *place, which is 0 if the line is not known. */
static int python_sample_line(u64 *place, u32 *used)
{
    unsigned long read;
    int line;
    int known = python_place_line(&python_sample.frames.layout, &python_sample.place, &line, &read, &python_sample.budget);
    *used = read;
    *place = known && *place ? python_hash_bytes(*place, python_sample.place.table, read) : 0;
    return line;
}

/* Whole lines, and a line of dots if there are more of them. */
static void python_put_frames(struct python_text *text, enum python_frame_status found, struct python_frames *frames,
                              s64 depth, unsigned long *budget)
{
    depth = min_t(s64, depth, PYTHON_STACK);
    for (; found == PYTHON_FRAME_OK; found = python_next_frame(frames)) {
        char *line = text->at;
        if (depth-- > 0)
            python_put_frame(text, &frames->layout, frames->frame, frames->code, budget);
        if (depth < 0 || text->full) {
            text->at = line;
            python_put_last(text, "...\n");
            return;
        }
    }
    if (found == PYTHON_FRAME_UNKNOWN)
        python_put_last(text, "<unknown>\n");
}

static void python_put_stack(struct python_text *text, unsigned long object, s64 depth)
{
    struct python_frames frames;
    unsigned long budget = PYTHON_TABLES;
    python_put_frames(text, python_first_frame(&frames, object), &frames, depth, &budget);
}

/* Begins a text that is printed. */
static void python_begin_printing(struct python_text *text, char *buffer, int size)
{
    memset(text, 0, sizeof *text);
    text->start = text->at = buffer;
    text->end = buffer + size - 1;
    text->print = 1;
    text->shift = python_ob_base_offset();
}

/* Whether a thread is on a CPU, or about to be: not this one, while it leaves its own to sleep. */
static int python_is_running(struct task_struct *thread)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
    return READ_ONCE(thread->__state) == TASK_RUNNING;
#else
    return READ_ONCE(thread->state) == TASK_RUNNING;
#endif
}

/* One thread of this process, with its stack; whether it has one. */
static int python_print_thread(struct task_struct *thread, const struct offsets_page *layout, s64 depth,
                               unsigned long *budget)
{
    struct python_frames frames = {.layout = *layout};
    enum python_frame_status found = python_thread_frame(&frames, thread);
    struct python_text text;
    char buffer[128], comm[sizeof thread->comm];
    char *c;
    if (found == PYTHON_FRAME_NONE)
        return 0;
    python_begin_printing(&text, buffer, sizeof buffer);
    python_puts(&text, "Thread ");
    python_put_number(&text, 0, thread->pid);
    python_puts(&text, " \"");
    memcpy(comm, thread->comm, sizeof comm);
    comm[sizeof comm - 1] = '\0';
    for (c = comm; *c; c++)
        python_put_character(&text, (unsigned char)*c < 0x80 ? *c : '?', 0);
    python_puts(&text, python_is_running(thread) ? "\", running\n" : "\", asleep\n");
    python_put_frames(&text, found, &frames, depth, budget);
    python_puts(&text, "\n");
    python_flush(&text);
    return 1;
}
