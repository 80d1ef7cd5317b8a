/*
 * Types that the files of this folder and the embedded C of the tapset share, and a prototype of each function that
 * is used outside its file.  Each of them includes this file first.  stap may put the files in any order, so outside
 * functions of stap a file uses nothing else of another one.
 *
 * All functions run in a probe, perhaps in an interrupt: they don't sleep, take no page fault, and use little stack.
 * What the program controls is read with limits, because a probe must end soon.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PYTHON_EMBEDDED_H
#define PYTHON_EMBEDDED_H

#include <linux/cred.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "shared/characters.h"
#include "shared/cpython_objects.h"
#include "shared/offsets_page.h"
#include "shared/versions.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 8, 0)
#define copy_from_kernel_nofault probe_kernel_read
#endif

static __always_inline u64 python_hash_mix(u64 hash, u64 word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

/* The same of many words: this of each, and python_hash_mix() at the end.  Two texts that differ in one word never have the same
 * hash. */
static __always_inline u64 python_hash_next(u64 hash, u64 word)
{
    return hash * 0x9e3779b97f4a7c15ULL + word;
}

/* ---------------------------------------------------------------- memory.c */

/* Reads consecutive bytes of the process, a piece at a time. */
struct python_bytes {
    unsigned long at, end; /* the bytes behind the piece */
    unsigned have, used;   /* of the piece */
    int failed;            /* bytes are missing: unreadable, or over a budget */
    unsigned char piece[64];
};

struct python_type {
    u64 name, basicsize, itemsize, flags, base;
    unsigned shift; /* python_ob_base_offset(), of types and objects */
};

/* A text that is being written: a string of limited length, or a small buffer that is printed whenever it is full. */
struct python_text {
    char *start, *at, *end; /* behind end is room for a NUL */
    enum python_print {
        PYTHON_PRINT = 1,  /* it is a buffer to print */
        PYTHON_PRINT_JSON, /* and what is written now is within a string of JSON */
    } print;
    int full;               /* a piece had no room; later ones are dropped */
    int reserve;            /* bytes behind end, for python_put_last() */
    unsigned shift;         /* python_ob_base_offset() */

    /* For values: layout and effort are set by python_begin_values(); else NULL and 0. */
    const struct offsets_page *layout;
    int effort; /* the budget: how many more objects, entries and items may be read */
    int raw;    /* ASCII characters are not escaped */
    /* Cache of python_find_str_base(): the type of the last str, and the built-in base of this type. */
    unsigned long str_type;
    struct python_type str_base;
};

/* ---------------------------------------------------------------- objects.c */

enum { PYTHON_INT_MOST = 20 }; /* digits of 30 bits: of an int with more only the size is written */

/* ---------------------------------------------------------------- attributes.c */

/* Limits: objects, entries and items for one text; entries of a dict, or variables of a frame; classes of an MRO. */
enum { PYTHON_BUDGET = 5000, PYTHON_ENTRIES = 1000, PYTHON_CLASSES = 64 };

struct python_dict_iter {
    unsigned long entries, values, order; /* addresses; values, order: 0 if the entries hold the values, in order */
    u64 count, at;
    u64 most; /* the limit for at */
    int size; /* of an entry */
};

/* The result of a lookup: an object, or the reason why there is none. */
enum python_lookup {
    PYTHON_LOOKUP_OK,
    PYTHON_LOOKUP_ABSENT,
    PYTHON_LOOKUP_UNREADABLE,
    PYTHON_LOOKUP_COMPUTED, /* code of the program would have to run */
    PYTHON_LOOKUP_UNSET,    /* a variable that is not assigned yet, or is deleted */
};

/* ---------------------------------------------------------------- repr.c */

enum { PYTHON_DEPTH = 4, PYTHON_ITEMS = 16, PYTHON_CHARACTERS = 256 };

/* ---------------------------------------------------------------- frames.c */

/* Limits for one stack: bytes of line tables, and frames.  And frames of all threads that are printed at once, as the
 * processor does nothing else meanwhile: the innermost 64 of 1000 threads. */
enum { PYTHON_TABLES = 128 * 1024, PYTHON_STACK = 1000, PYTHON_FRAMES = 64 * 1000 };

/* What determines the line of a frame. */
struct python_code_position {
    int first_line, offset;    /* line of the def; offset of the instruction in bytes */
    unsigned long table, size; /* the line table */
};

/* Whether a frame was found. */
enum python_frame_status {
    PYTHON_FRAME_OK,
    PYTHON_FRAME_NONE,    /* the stack ends, or the thread runs no Python code */
    PYTHON_FRAME_UNKNOWN, /* a frame can't be read */
};

/* An iteration over frames, from one frame outwards. */
struct python_frames {
    struct offsets_page layout;
    unsigned long frame, code; /* the current frame and its code object; 0: none */
    unsigned long code_type;   /* the type of code objects, once python_is_code() has found it */
    unsigned long back;        /* the caller's frame */
    unsigned long last_code;   /* the last code object that was checked: a recursive function repeats it */
    unsigned long name, file;  /* co_name and co_filename of last_code; 0: unreadable */
    u64 name_hash, file_hash;  /* their hashes: 0 if not read, -1 if CPython has not computed them */
    int passed_over;           /* frames between C and Python */
    /* The PyThreadState and its PyInterpreterState; 0: unknown, or it began with the address of a frame. */
    unsigned long state, interpreter;
    int in_jit;                /* the thread runs code of the JIT: its innermost frame's line may be an earlier one */
};

/* What of it changes from frame to frame, where most of it is read at once. */
struct python_step {
    unsigned long frame, code, back, name, file;
    u64 name_hash, file_hash;
};

/* ---------------------------------------------------------------- variables.c */

/* The variables of a frame are numbered.  Up to 3.10: the function's own, arguments first, in the order of the signature;
 * cells, which inner functions use, too; free variables, of outer functions.  From 3.11 on cells may be among the others:
 * names[0] has all, and kinds has the kind of each. */
struct python_variables {
    unsigned long frame, names[3], kinds;
    u64 counts[3];
    u32 flags, arguments, keyword_arguments;
};

/* ---------------------------------------------------------------- samples.c */

enum {
    PYTHON_DEEPEST = 1000, /* the most frames of a sample */
    PYTHON_THREAD_NAME = 128, /* room for a thread's name, which is cut */
    PYTHON_TEXT = 300,     /* room for a name or a file */
    PYTHON_WHICH = 300,    /* room for the description of a file or socket */
    PYTHON_SAMPLE_TEXT = 768, /* KSYM_SYMBOL_LEN and more */
    PYTHON_ADDRESSES = 97,
};

/* For python_sample_frames(): up to the outermost frame. */
#define PYTHON_OUTERMOST ~0UL

/* The form of a frame's name in a stack. */
enum {
    PYTHON_PLAIN,     /* f (x.py) */
    PYTHON_WITH_LINE, /* f (x.py:3) */
    PYTHON_TRACE,     /* File "x.py", line 3, in f */
    PYTHON_IN_JIT = 4, /* with one of the last two: the line may be an earlier one, and " [jit]" follows */
};

/* What is described of a sleep beside its kind: nothing, which file or socket, or this with all ports. */
enum python_detail { PYTHON_KIND_ALONE, PYTHON_SAY_WHICH, PYTHON_SAY_PORTS };

/* What a probe reads, and what it writes to do so: each running probe has its own, by python_open_sample(). */
struct python_sample {
    int taken;                         /* a probe has it */
    u64 owner;                         /* python_owner() of the running process */
    struct python_frames frames;       /* at a frame of the sample, for most functions */
    unsigned long budget;              /* for line tables */
    struct python_code_position place; /* the last that python_sample_place() has read */

    /* The names of a stack, the innermost first, as numbers: "<GC>" where the thread collects garbage, those of the
     * frames, "..." and a first name. */
    u32 names[PYTHON_DEEPEST + 3], paths[PYTHON_DEEPEST + 3];
    int count, collects, depth; /* depth: the number of frames */

    /* The file whose text is in `file`, and its number and python_is_users_file(); 0: none of this sample. */
    unsigned long file_read;
    u32 file_number;
    int file_is_users, file_has_semicolon;
    char file[PYTHON_TEXT], name[PYTHON_TEXT], label[2 * PYTHON_TEXT + 40];
    size_t file_length, name_length;
    struct python_text writer; /* of these texts */

    /* The last first name of a stack, and its number. */
    char root[TASK_COMM_LEN + 24 + PYTHON_THREAD_NAME];
    u32 root_number;

    /* For python_sleep.stp.in, sleep_files.c and python_interrupted.stp.in. */
    char which[PYTHON_WHICH], text[PYTHON_SAMPLE_TEXT], part[PYTHON_WHICH];
    unsigned long addresses[PYTHON_ADDRESSES];
};

/* ---------------------------------------------------------------- locks.c */

/* Limits: names of a path; innermost frames that are searched; threads of a cycle. */
enum { PYTHON_LOCK_STEPS = 3, PYTHON_LOCK_FRAMES = 8, PYTHON_CYCLE = 16 };

/* What a thread waits for. */
struct python_lock {
    unsigned long futex;
    unsigned long object; /* not 0: this object is looked for in place of the futex's lock */
    unsigned long path[PYTHON_LOCK_STEPS], function; /* names, and that of the function whose frame has the first one */
    int steps, is_rlock;
    int is_join;                /* for the end of the thread holder */
    unsigned long owner;        /* pthread_self() of holder */
    struct task_struct *holder; /* NULL: unknown */
};

/* ---------------------------------------------------------------- dump.c */

/* Limits: characters of a value; objects, entries and items for one value, and for those of a process. */
enum { PYTHON_VALUE = 100, PYTHON_VALUE_EFFORT = 500, PYTHON_DUMP_EFFORT = 100000 };

/* What a dump prints, and where it is. */
struct python_dump {
    int taken; /* a probe has it */
    s64 depth;
    int locals, tasks, json;
    int processes;               /* there may be several, and each has a head */
    int printed;                 /* the processes that were printed */
    int threads;                 /* of this process, that were printed */
    int effort;                  /* what is left of PYTHON_DUMP_EFFORT */
    int left;                    /* of PYTHON_FRAMES */
    unsigned long budget;        /* for line tables */
    struct python_frames frames; /* with the layout */
    struct python_frames others; /* of the threads that a thread waits for */
    char buffer[512], value[4 * PYTHON_VALUE + sizeof "..."];
};

/* ---------------------------------------------------------------- functions */

/* memory.c */
static __always_inline int python_read(void *to, unsigned long from, unsigned long size);
static int python_is_narrow(void);
static int python_read_words(u64 *words, const unsigned *offsets, int count, unsigned long from, u8 *byte, unsigned byte_offset);
static unsigned long python_word(unsigned long at);
static u32 python_low_u32(u64 word);
static __always_inline u64 python_first_bytes(unsigned count);
static int python_byte(struct python_bytes *bytes);
static unsigned python_ob_base_offset(void);
static __always_inline int python_minor(const struct offsets_page *layout);
static int python_read_type_at(struct python_type *type, unsigned long address, unsigned shift);
static int python_read_type(struct python_type *type, unsigned long object, unsigned shift);
static int python_find_base(struct python_type *type, u64 flag);
static int python_type_is(const struct python_type *type, const char *name);
static int python_type_is_bool(const struct python_type *type);
static void python_begin(struct python_text *text, char *string, const char *last);
static void python_flush(struct python_text *text);
static void python_put(struct python_text *text, const char *bytes, int count);
static void python_puts(struct python_text *text, const char *string);
static void python_put_last(struct python_text *text, const char *string);
static void python_open_string(struct python_text *text);
static void python_close_string(struct python_text *text);
static void python_put_number(struct python_text *text, int negative, u64 value);
static void python_put_character(struct python_text *text, u32 c, char quote);

/* objects.c */
static int python_find_characters(struct python_bytes *bytes, u64 *count, unsigned *kind, unsigned long object, const struct python_type *type);
static s64 python_next_character(struct python_bytes *bytes, unsigned kind);
static int python_find_str_base(struct python_text *text, unsigned long address);
static int python_put_characters(struct python_text *text, unsigned long object, const struct python_type *base, char quote, unsigned most);
static int python_put_str(struct python_text *text, unsigned long object, struct python_type *type, char quote, unsigned most);
static int python_put_plain_str(struct python_text *text, unsigned long object, unsigned most);
static void python_put_raw_bytes(struct python_text *text, unsigned long at, u64 length, unsigned most);
static int python_put_bytes(struct python_text *text, unsigned long object, struct python_type *type, unsigned most);
static int python_int_head(unsigned long object, struct python_type *type, u64 *count, int *negative);
static int python_put_int(struct python_text *text, unsigned long object, struct python_type *type, int is_bool);
static void python_put_double(struct python_text *text, u64 bits, int dot);
static int python_put_float(struct python_text *text, unsigned long object);

/* attributes.c */
static void python_begin_values(struct python_text *text, const struct offsets_page *layout);
static int python_use_budget(struct python_text *text);
static unsigned long python_type_address(unsigned long object, unsigned shift);
static int python_find_items(const struct offsets_page *layout, unsigned long tuple, unsigned long *items, u64 *count);
static int python_dict_iter_init(struct python_dict_iter *walk, const struct offsets_page *layout, unsigned long dict);
static int python_dict_iter_next(struct python_dict_iter *walk, struct python_text *text, unsigned long *key, unsigned long *value);
static int python_is_named(struct python_text *text, unsigned long object, const char *name, int length);
static enum python_lookup python_dict_item(struct python_text *text, unsigned long dict, const char *name, int length, unsigned long *value);
static enum python_lookup python_class_attribute(struct python_text *text, unsigned long type, const char *name, int length, unsigned long *value);
static int python_find_attributes(struct python_dict_iter *walk, const struct offsets_page *layout, unsigned long object, unsigned long type_address, const struct python_type *type);
static enum python_lookup python_attribute(struct python_text *text, unsigned long object, const char *name, int length, unsigned long *value);

/* repr.c */
static void python_put_object(struct python_text *text, unsigned long object, int depth);
static void python_put_class_name(struct python_text *text, unsigned long address, const struct python_type *type);
static int python_int_of(unsigned long object, s64 *value, unsigned shift);
static unsigned long python_generator_name(unsigned long object, unsigned shift);

/* frames.c */
static int python_read_layout(struct offsets_page *layout);
static int python_frame_line(const struct offsets_page *layout, unsigned long frame, unsigned long code, int *line, unsigned long *budget);
static int python_frame_position(const struct offsets_page *layout, unsigned long frame, unsigned long code, struct python_code_position *place);
static int python_place_line(const struct offsets_page *layout, const struct python_code_position *place, int *line, unsigned long *used, unsigned long *budget);
static void python_put_attribute(struct python_text *text, unsigned long object);
static void python_put_frame(struct python_text *text, const struct offsets_page *layout, unsigned long frame, unsigned long code, unsigned long *budget, int in_jit);
static int python_is_code(struct python_frames *frames);
#ifdef user_read_access_begin
static __always_inline struct python_step python_step_of(const struct python_frames *frames);
static __always_inline struct python_step python_step_to(const struct python_frames *frames);
static __always_inline void python_set_step(struct python_frames *frames, const struct python_step *step);
static __always_inline int python_get_step(struct python_step *step, const struct offsets_page *layout, unsigned long code_type);
static __always_inline int python_get_position(struct python_code_position *place, const struct python_step *step, const struct offsets_page *layout);
static __always_inline int python_get_bytes_hash(u64 *hash, unsigned long from, unsigned long size);
static __always_inline u64 python_get_str_hash(unsigned long str, const struct offsets_page *layout);
static __always_inline int python_open_memory(void);
static __always_inline void python_close_memory(void);
#endif
static enum python_frame_status python_next_frame(struct python_frames *frames);
static void python_warn_no_shim(void);
static unsigned long python_thread_pointer(struct task_struct *thread);
static int python_read_state(const struct offsets_page *layout, struct task_struct *thread, unsigned long *state);
static enum python_frame_status python_state_frame(struct python_frames *frames, unsigned long state);
static enum python_frame_status python_thread_frame(struct python_frames *frames, struct task_struct *thread);
static enum python_frame_status python_first_frame(struct python_frames *frames, unsigned long frame);

/* variables.c */
static int python_find_variables(struct python_variables *variables, const struct python_frames *frames);
static u64 python_variables_count(const struct python_variables *variables);
static unsigned long python_variable_name(const struct python_variables *variables, u64 number);
static enum python_lookup python_variable(const struct python_variables *variables, const struct offsets_page *layout, u64 number, unsigned long *value);
static enum python_lookup python_variable_named(struct python_text *text, const struct python_frames *frames, const char *name, int length, unsigned long *value);
static void python_repr_text(char *to, unsigned long object);
static void python_exception_text(char *to, unsigned long object);
static void python_typename_text(char *to, unsigned long object);
static void python_str_text(char *to, unsigned long object);
static s64 python_int_value(unsigned long object);
static void python_local_text(char *to, unsigned long frameptr, const char *path);
static unsigned long python_local_object(unsigned long frameptr, const char *path);
static void python_args_text(char *to, unsigned long frameptr);
static void python_locals_text(char *to, unsigned long frameptr);
static s64 python_frame_above(unsigned long frameptr, s64 depth);

/* gil.c */
static long python_system_call_at(struct task_struct *thread, struct pt_regs *registers, unsigned long *arguments);
static long python_system_call(unsigned long *arguments);
static unsigned long python_futex(void);
static unsigned long python_gil_waited_for(unsigned long futex, unsigned long known, unsigned long *holder, u64 *switches);
static int python_cannot_have_had_gil(unsigned long known, u64 switches);
static unsigned long python_has_gil(void);
static int python_state_has_gil(const struct offsets_page *layout, unsigned long state);
static void python_warn_no_gil(void);

/* threads.c */
static int python_is_ident(unsigned long ident, unsigned long pointer);
static int python_put_thread_name(struct python_text *text, const struct offsets_page *layout, struct task_struct *thread);
static void python_thread_name_text(char *to);
static int python_tells_collections(const struct offsets_page *layout);
static int python_collects(const struct python_frames *frames);

/* samples.c */
/* A random number, by which no program can make up keys and hashes; 0 until python_open_sample() has made it. */
static unsigned long python_secret;
static __always_inline u64 python_owner(void);
static enum python_frame_status python_begin_sample(struct python_sample *sample, unsigned long state);
static __always_inline u64 python_key(u64 owner, unsigned long code, u64 name_hash, u64 file_hash);
static u64 python_sample_key(struct python_sample *sample);
static size_t python_sample_str(struct python_sample *sample, char *to, int room, unsigned long object);
static __always_inline u64 python_place_hash(const struct python_code_position *place, u64 key);
static u64 python_sample_place(struct python_sample *sample, u64 key);
static __always_inline bool python_use_table(struct python_sample *sample, unsigned long used);
static u64 python_sample_table(struct python_sample *sample, u64 hash, unsigned long used);
static int python_sample_line(struct python_sample *sample, u64 *place, u32 *used);
static void python_begin_printing(struct python_text *text, char *buffer, int size);
static int python_is_running(struct task_struct *thread);
static void python_put_ascii(struct python_text *text, const char *c);
static void python_put_comm(struct python_text *text, struct task_struct *thread);
static void python_put_quoted_thread(struct python_text *text, const struct offsets_page *layout, struct task_struct *thread, int json);

/* locks.c */
static int python_find_lock(struct python_lock *lock, struct python_frames *frames, struct task_struct *thread);
static int python_find_cycle(struct task_struct **cycle, struct python_frames *frames, struct task_struct *thread);

/* asyncio.c */
static int python_task_is_pending(unsigned long task);
static int python_task_waits_for_task(unsigned long task);
static int python_is_frame_of_task(unsigned long task, unsigned long frame);
static void python_dump_begin_tasks(struct python_dump *dump);
static void python_dump_tasks_of(struct task_struct *thread);
static void python_dump_other_tasks(void);

/* dump.c */
static void python_dump_frame(struct python_dump *dump, struct python_text *text, const struct python_frames *frames, int in_jit, const char *indent, int *count);
static void python_dump_stack_end(struct python_dump *dump, struct python_text *text, enum python_frame_status found, const char *indent);
static void python_dump_stack(struct python_dump *dump, struct python_text *text, enum python_frame_status found, struct python_frames *frames, unsigned long last, const char *indent);
static int python_dump_process(struct python_dump *dump);
static int python_dump_take(void);
static void python_dump_give_back(void);

/* python_calls.stp */
static unsigned python_task_state(const struct task_struct *task);
static pid_t python_own_id(void);
static u64 python_function_number(const char *filename, const char *funcname);
static int python_leaves_cpu(void);
static u64 python_queued_time(const struct task_struct *task);
static int python_begin_sleep_at(u32 stack, bool queued, u64 since, u64 cpu, u64 queued_time);
static int python_begin_sleep(u32 stack, bool queued, u64 since);
static u64 python_cpu_now(void);
static bool python_is_kept(void);
static struct python_sleep_time python_end_sleep(void);
static u32 python_woken_stack(const struct task_struct *task);
static void python_set_woken_by(const struct task_struct *task, u32 stack, u32 joined);
static struct python_sleep_time python_next_asleep(u32 *number);

/* python_json.stp.in */
static size_t python_json_length(const char *text);
static void python_json_print(const char *text, size_t length);
static void python_json_print_pieces(const char *text, size_t length, bool json);
static void python_printable_print(const char *text);
static void python_json_print_us(const char *key, u64 ns);

/* python_resident.stp */
static bool python_process_has_ended(pid_t pid);

/* python_samples.stp.in */
static struct python_sample *python_open_sample(void);
static void python_close_sample(struct python_sample *sample);
static __always_inline void python_keep_entry(void *row, int entries, unsigned nth, const void *entry, size_t size);
static u32 python_sample_number(const char *text, size_t length);
static u32 python_join_sample(u32 stack, u32 between, struct python_sample *sample);
static enum python_frame_status python_begin_names(struct python_sample *sample, unsigned long state);
static enum python_frame_status python_sample_frames(struct python_sample *sample, enum python_frame_status found, unsigned long last, int style, int user);
static int python_end_names(struct python_sample *sample, enum python_frame_status found);
static int python_sample_names(struct python_sample *sample, unsigned long state, int style, int user);
static bool python_add_root(struct python_sample *sample, const char *root);
static s64 python_number_sample(struct python_sample *sample, const char *root, int style, int user, void (*hold)(u32 number));

/* python_sleep.stp.in */
static const char *python_describe_kind(struct python_sample *sample, enum python_detail detail);
static u32 python_extend_by_kind(struct python_sample *sample, u32 stack, const char *kind, bool folded);
static u32 python_join_waker(u32 stack, const struct task_struct *sleeper, int style, int user);
static u32 python_sleep_of(u32 number);

/* python_stacks.stp.in */
static struct python_stack *python_stack_of(s64 number);
static u32 python_outer_stack(u32 number);
static struct python_name *python_name_of(u32 number);
static const char *python_stack_text(s64 number);
static u32 python_name_number(const char *text, size_t length);
static u32 python_rare_name_number(const char *text, size_t length);
static u32 python_make_stack_of(u32 outer, u32 name);
static u32 python_make_stack(u32 outer, const char *text, size_t length);
static u32 python_make_stack_with_room(u32 outer, u32 name, unsigned long *flags);
static u32 python_make_stack_by_text(u32 outer, const char *text, unsigned long *flags);
static u32 python_make_row(const char *process, const char *file, const char *name, unsigned long *flags);
static s64 python_number_names(u32 outer, const u32 *names, u32 *paths, int count, void (*hold)(u32 number));
static void python_make_room(unsigned long *flags);
static void python_add_to_stack(u32 number, u64 count, u64 a, u64 b, u64 c, u64 d);
static void python_ref_stack(s64 note, int by);
static void python_note_stack(u32 number);
static void python_drop_stack(u32 number);
static void python_keep_stack(u32 number);

/* python_target.stp */
static int python_is_users_file(const char *name);
static void python_copy_comm(char *to, const struct task_struct *task);

static void python_lock_stacks(unsigned long *flags);
static bool python_try_lock_stacks(unsigned long *flags);
static void python_unlock_stacks(unsigned long flags);
static void python_relock_stacks(unsigned long *flags);

#endif
