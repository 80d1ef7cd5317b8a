/*
 * Reads the offsets page, and with it the frames of a thread, their lines and names.  A thread other than the running
 * one may change its frames meanwhile: what is read of it may be wrong, or PYTHON_FRAME_UNKNOWN.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* ---------------------------------------------------------------- offsets page and line tables */

/* Functions have their qualified names, where CPython has these. */
static int python_qualified;

/* Reads the offsets page; false: the process has none, or has 32 bits. */
static int python_read_layout(struct offsets_page *layout)
{
    if (python_is_narrow() ||
        ((!python_read(layout, (unsigned long)OFFSETS_ADDRESS, sizeof *layout) || layout->magic != OFFSETS_MAGIC) &&
         (!python_read(layout, (unsigned long)OFFSETS_LOW_ADDRESS, sizeof *layout) || layout->magic != OFFSETS_MAGIC)))
        return 0;
    if (python_qualified && layout->co_qualname)
        layout->co_name = layout->co_qualname;
    return 1;
}

/* Reads a varint of six bits a byte, the lowest first. */
static u32 python_varint(struct python_bytes *bytes)
{
    u32 value = 0;
    int shift, byte;
    for (shift = 0; shift < 32; shift += 6) {
        byte = python_byte(bytes);
        if (byte < 0)
            break;
        value |= (u32)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int python_signed_varint(struct python_bytes *bytes)
{
    u32 value = python_varint(bytes);
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* The line of the instruction at an offset in bytes, by a line table that begins with this line; -1: no line. */
static int python_line_of(int lines, struct python_bytes *table, int line, int offset)
{
    int at = 0, first = python_byte(table), no_line = 0;
    if (offset < 0) /* the frame has not begun */
        return line;
    while (first >= 0) {
        if (lines == LINES_LNOTAB) { /* CPython 3.9 Objects/codeobject.c: PyCode_Addr2Line() */
            at += first;
            if (at > offset)
                return line;
            line += (signed char)python_byte(table); /* if this read fails, so does the next */
        } else if (lines == LINES_LINETABLE) { /* CPython 3.10 Objects/codeobject.c: advance() */
            int delta = (signed char)python_byte(table);
            no_line = delta == -128;
            if (!no_line)
                line += delta;
            at += first;
            if (at > offset)
                return no_line ? -1 : line;
        } else { /* CPython 3.11 Objects/codeobject.c: get_line_delta(), in advance() */
            int form = first >> 3 & 15;
            at += ((first & 7) + 1) * 2;
            if (form == 13 || form == 14)
                line += python_signed_varint(table);
            else if (form >= 10 && form <= 12)
                line += form - 10;
            if (at > offset)
                return form == 15 ? -1 : line;
            do /* the first byte of an entry has its highest bit set */
                first = python_byte(table);
            while (first >= 0 && !(first & 128));
            continue;
        }
        first = python_byte(table);
    }
    /* up to 3.9: the last line has no end in the table */
    return lines == LINES_LNOTAB && !table->failed ? line : -1;
}

/* The first of the instructions that the frame executes: the code object's own, or in a free-threaded build the copy that
 * its thread has; 0: unreadable. */
static unsigned long python_first_instr(const struct offsets_page *layout, unsigned long frame, unsigned long code)
{
    unsigned long table;
    u64 count;
    u32 copy;
    if (!layout->co_tlbc)
        return code + layout->co_code_adaptive;
    table = python_word(code + layout->co_tlbc);
    if (!table || !python_read(&count, table, sizeof count) || !python_read(&copy, frame + layout->frame_tlbc_index, sizeof copy) ||
        copy >= count)
        return 0;
    return python_word(table + sizeof count + copy * sizeof(u64));
}

/* False: not all of it can be read; first_line may be set even then. */
static int python_frame_position(const struct offsets_page *layout, unsigned long frame, unsigned long code,
                              struct python_code_position *place)
{
    unsigned long object = python_word(code + layout->co_linetable);
    place->size = python_word(object + layout->ob_base_offset + offsetof(struct PyVarObject_head, ob_size));
    place->table = object + layout->ob_base_offset + sizeof(struct PyBytesObject);
    place->first_line = 0;
    if (!python_read(&place->first_line, code + layout->co_firstlineno, sizeof place->first_line))
        return 0;
    if (layout->lines == LINES_LOCATIONS) {
        unsigned long at = python_word(frame + layout->frame_instr_ptr), first = python_first_instr(layout, frame, code);
        if (!at || !first)
            return 0;
        place->offset = at - first;
    } else {
        if (!python_read(&place->offset, frame + layout->frame_instr_ptr, sizeof place->offset))
            return 0;
        if (layout->lines == LINES_LINETABLE && place->offset > 0)
            place->offset *= 2;
    }
    return object != 0;
}

/* Finds the line of a position.  *used: how many bytes of the line table were read.  False: no line is found, and *line is
 * that of the def. */
static int python_place_line(const struct offsets_page *layout, const struct python_code_position *place, int *line,
                             unsigned long *used, unsigned long *budget)
{
    struct python_bytes table = {0};
    int found;
    table.at = place->table;
    table.end = place->table + min(place->size, *budget);
    table.failed = place->size > *budget; /* the table is longer than what is read of it */
    found = python_line_of(layout->lines, &table, place->first_line, place->offset);
    *used = table.at - place->table;
    *budget -= *used;
    *line = found < 0 ? place->first_line : found;
    return found >= 0;
}

/* Finds the current line of a frame; false: no line is found, and *line is that of the def. */
static int python_frame_line(const struct offsets_page *layout, unsigned long frame,
                             unsigned long code, int *line, unsigned long *budget)
{
    struct python_code_position place;
    unsigned long used;
    if (python_frame_position(layout, frame, code, &place))
        return python_place_line(layout, &place, line, &used, budget);
    *line = place.first_line;
    return 0;
}

/* Writes a str without quotes, any other object as "<unknown>". */
static void python_put_attribute(struct python_text *text, unsigned long object)
{
    if (!python_put_plain_str(text, object, PYTHON_CHARACTERS))
        python_puts(text, "<unknown>");
}

/* ---------------------------------------------------------------- frames of a thread */

static void python_put_frame(struct python_text *text, const struct offsets_page *layout,
                             unsigned long frame, unsigned long code, unsigned long *budget, int in_jit)
{
    int line;
    int known = python_frame_line(layout, frame, code, &line, budget);
    python_puts(text, "File \"");
    python_put_attribute(text, python_word(code + layout->co_filename));
    python_puts(text, "\", line ");
    python_put_number(text, line < 0, line < 0 ? -(s64)line : line);
    python_puts(text, known ? ", in " : " (def), in ");
    python_put_attribute(text, python_word(code + layout->co_name));
    python_puts(text, in_jit ? " [jit]\n" : "\n");
}

/* Whether frames->code is a code object.  In a child that has just been forked, the page of the program's file with the
 * type's name may not be in memory yet: then the type's size suffices. */
static int python_is_code(struct python_frames *frames)
{
    const unsigned shift = frames->layout.ob_base_offset;
    const unsigned offsets[] = {(u16)(shift + offsetof(struct PyObject_head, ob_type)), frames->layout.co_name, frames->layout.co_filename};
    u64 words[3] = {0}, type;
    struct python_type known;
    char name;
    if (frames->code == frames->last_code)
        return 1;
    if (!python_read_words(words, offsets, 3, frames->code, NULL, 0)) {
        words[0] = python_word(frames->code + offsets[0]);
        words[1] = words[2] = 0;
    }
    type = words[0];
    if (type != frames->code_type && python_read_type_at(&known, type, shift) && !(known.flags & Py_TPFLAGS_HEAPTYPE) &&
        known.basicsize == frames->layout.code_basicsize && (python_type_is(&known, "code") || !python_read(&name, known.name, 1)))
        frames->code_type = type;
    if (!type || type != frames->code_type)
        return 0;
    frames->last_code = frames->code;
    frames->name = words[1];
    frames->name_hash = 0;
    if (words[2] != frames->file)
        frames->file_hash = 0;
    frames->file = words[2];
    return 1;
}

/* Whether frames->code, which python_is_code() knows, is CPython's _Py_InitCleanup (Python/specialize.c).  From 3.13 on its frame
 * is between a caller and the __init__() that it calls without C, and no traceback has it.  Its name and its file are one object. */
static int python_is_init_cleanup(const struct python_frames *frames)
{
    int first_line;
    return frames->name == frames->file && python_read(&first_line, frames->code + frames->layout.co_firstlineno, sizeof first_line) &&
           first_line == 0;
}

/* Skips frames between C and Python, and those of _Py_InitCleanup; reads the code and the caller of the next other frame. */
static enum python_frame_status python_skip_c_frames(struct python_frames *frames)
{
    const struct offsets_page *layout = &frames->layout;
    const unsigned offsets[] = {layout->frame_executable, layout->frame_previous};
    for (; frames->frame; frames->frame = frames->back) {
        u64 words[2];
        u8 owner = 0;
        if (!python_read_words(words, offsets, 2, frames->frame, layout->frame_owner ? &owner : NULL, layout->frame_owner))
            return PYTHON_FRAME_UNKNOWN;
        frames->code = words[0] & ~STACKREF_TAGS;
        frames->back = words[1];
        if (!frames->code)
            return PYTHON_FRAME_UNKNOWN;
        if ((!layout->frame_owner || owner != FRAME_OWNED_BY_CSTACK) && python_is_code(frames) && !python_is_init_cleanup(frames))
            return PYTHON_FRAME_OK;
        if (!python_word(frames->code + layout->ob_base_offset + offsetof(struct PyObject_head, ob_type)))
            return PYTHON_FRAME_UNKNOWN;
        if (frames->passed_over++ > PYTHON_STACK)
            return PYTHON_FRAME_UNKNOWN;
    }
    return PYTHON_FRAME_NONE;
}

#ifdef user_read_access_begin
#ifndef TASK_SIZE_MAX /* aarch64 before Linux 5.11, others before 5.18 */
#define TASK_SIZE_MAX TASK_SIZE
#endif

/* The address if PYTHON_SPAN bytes from it on belong to the process, else 0, where nothing can be read.  The processor must
 * not guess another outcome: the address is what the program has put there. */
static __always_inline unsigned long python_user_address(unsigned long address)
{
    enum { PYTHON_SPAN = U16_MAX + sizeof(u64) };
    return address & array_index_mask_nospec(address, TASK_SIZE_MAX - PYTHON_SPAN);
}

/* Goes to the caller's frame, and reads what is read of most frames, while the kernel has the process's memory open:
 * opening it takes longer than reading.  False, and nothing has changed: the frame is another than one of a code object
 * whose type is known. */
static __always_inline int python_get_step(struct python_step *step, const struct offsets_page *layout, unsigned long code_type)
{
    const unsigned shift = layout->ob_base_offset, hash = (u16)(shift + offsetof(struct PyASCIIObject, hash));
    unsigned long frame = python_user_address(step->back), back, code, type, name, file;
    u64 name_hash, file_hash = step->file_hash;
    u8 owner = 0;
    if (!frame)
        return 0;
    unsafe_get_user(code, (const unsigned long __user *)(frame + layout->frame_executable), failed);
    unsafe_get_user(back, (const unsigned long __user *)(frame + layout->frame_previous), failed);
    if (layout->frame_owner)
        unsafe_get_user(owner, (const u8 __user *)(frame + layout->frame_owner), failed);
    code = python_user_address(code & ~STACKREF_TAGS);
    if (layout->frame_owner && owner == FRAME_OWNED_BY_CSTACK)
        return 0;
    if (code != step->code) {
        unsafe_get_user(type, (const unsigned long __user *)(code + (u16)(shift + offsetof(struct PyObject_head, ob_type))), failed);
        if (type != code_type)
            return 0;
        unsafe_get_user(name, (const unsigned long __user *)(code + layout->co_name), failed);
        unsafe_get_user(file, (const unsigned long __user *)(code + layout->co_filename), failed);
        if (name == file) /* perhaps python_is_init_cleanup() */
            return 0;
        unsafe_get_user(name_hash, (const u64 __user *)(python_user_address(name) + hash), failed);
        if (file != step->file)
            unsafe_get_user(file_hash, (const u64 __user *)(python_user_address(file) + hash), failed);
        step->code = code;
        step->name = name;
        step->file = file;
        step->name_hash = name_hash;
        step->file_hash = file_hash;
    }
    step->frame = step->back;
    step->back = back;
    return 1;
failed:
    return 0;
}

/* As python_frame_position() of the step, while the process's memory is open.  False also in a free-threaded build. */
static __always_inline int python_get_position(struct python_code_position *place, const struct python_step *step,
                                               const struct offsets_page *layout)
{
    unsigned long frame = python_user_address(step->frame), code = python_user_address(step->code), table, instr;
    if (layout->co_tlbc)
        return 0;
    unsafe_get_user(table, (const unsigned long __user *)(code + layout->co_linetable), failed);
    table = python_user_address(table) + layout->ob_base_offset;
    unsafe_get_user(place->size, (const unsigned long __user *)(table + offsetof(struct PyVarObject_head, ob_size)), failed);
    unsafe_get_user(place->first_line, (const int __user *)(code + layout->co_firstlineno), failed);
    place->table = table + sizeof(struct PyBytesObject);
    if (layout->lines == LINES_LOCATIONS) {
        unsafe_get_user(instr, (const unsigned long __user *)(frame + layout->frame_instr_ptr), failed);
        place->offset = instr - code - layout->co_code_adaptive;
        return instr != 0;
    }
    unsafe_get_user(place->offset, (const int __user *)(frame + layout->frame_instr_ptr), failed);
    if (layout->lines == LINES_LINETABLE && place->offset > 0)
        place->offset *= 2;
    return 1;
failed:
    return 0;
}

/* Adds the bytes to the hash as python_hash_bytes(), while the process's memory is open.  Reads up to seven bytes more.
 * from: python_user_address() and a bit more. */
static __always_inline int python_get_bytes_hash(u64 *hash, unsigned long from, unsigned long size)
{
    const unsigned long end = from + size;
    u64 sum = *hash, word, words[4];
    if (size > U16_MAX / 2)
        return 0;
    for (; end - from > sizeof words; from += sizeof words) {
        unsafe_get_user(words[0], (const u64 __user *)from, failed);
        unsafe_get_user(words[1], (const u64 __user *)(from + sizeof word), failed);
        unsafe_get_user(words[2], (const u64 __user *)(from + 2 * sizeof word), failed);
        unsafe_get_user(words[3], (const u64 __user *)(from + 3 * sizeof word), failed);
        sum = python_hash_next(python_hash_next(sum, words[0]), words[1]);
        sum = python_hash_next(python_hash_next(sum, words[2]), words[3]);
    }
    for (; end - from > sizeof word; from += sizeof word) {
        unsafe_get_user(word, (const u64 __user *)from, failed);
        sum = python_hash_next(sum, word);
    }
    if (end != from) {
        unsafe_get_user(word, (const u64 __user *)from, failed);
        sum = python_hash_next(sum, word & python_first_bytes(end - from));
    }
    *hash = python_hash_mix(sum, size);
    return 1;
failed:
    return 0;
}

/* python_str_hash() of a str of ASCII that CPython has not hashed, such as the name of the program's file, while the process's
 * memory is open.  0: unreadable, or of another kind. */
static __always_inline u64 python_get_str_hash(unsigned long str, const struct offsets_page *layout)
{
    const int old = python_minor(layout) < 12;
    u64 length, hash;
    u32 state;
    str = python_user_address(str);
    unsafe_get_user(length, (const u64 __user *)(str + offsetof(struct PyASCIIObject, length)), failed);
    unsafe_get_user(state, (const u32 __user *)(str + offsetof(struct PyASCIIObject, state)), failed);
    if (layout->ob_base_offset || !(state & UNICODE_COMPACT) || !(state & UNICODE_ASCII) || (old && !(state & UNICODE_READY)))
        return 0;
    hash = python_hash_mix(1, length);
    str += old ? sizeof(struct PyASCIIObject_36) : sizeof(struct PyASCIIObject);
    return python_get_bytes_hash(&hash, str, min_t(u64, length, PYTHON_CHARACTERS)) ? hash : 0;
failed:
    return 0;
}

static __always_inline struct python_step python_step_of(const struct python_frames *frames)
{
    return (struct python_step){.frame = frames->frame, .code = frames->code, .back = frames->back, .name = frames->name,
                                .file = frames->file, .name_hash = frames->name_hash, .file_hash = frames->file_hash};
}

/* A step from which python_get_step() goes to the present frame, and reads it as a new one. */
static __always_inline struct python_step python_step_to(const struct python_frames *frames)
{
    return (struct python_step){.back = frames->frame, .code = ~0UL};
}

static __always_inline void python_set_step(struct python_frames *frames, const struct python_step *step)
{
    frames->frame = step->frame;
    frames->code = frames->last_code = step->code;
    frames->back = step->back;
    frames->name = step->name;
    frames->file = step->file;
    frames->name_hash = step->name_hash;
    frames->file_hash = step->file_hash;
}

/* Opens the process's memory for python_get_step(); false: it has none that can be read. */
static __always_inline int python_open_memory(void)
{
    pagefault_disable();
    if (user_read_access_begin((const void __user *)PAGE_SIZE, PAGE_SIZE))
        return 1;
    pagefault_enable();
    return 0;
}

static __always_inline void python_close_memory(void)
{
    user_read_access_end();
    pagefault_enable();
}
#endif

static enum python_frame_status python_next_frame(struct python_frames *frames)
{
#ifdef user_read_access_begin
    if (frames->code_type && frames->last_code == frames->code && python_open_memory()) {
        struct python_step step = python_step_of(frames);
        int got = python_get_step(&step, &frames->layout, frames->code_type);
        python_close_memory();
        if (got) {
            python_set_step(frames, &step);
            return PYTHON_FRAME_OK;
        }
    }
#endif
    frames->frame = frames->back;
    return python_skip_c_frames(frames);
}

/* Kernel threads.  Those of io_uring have the memory, and perhaps the registers, of the thread that made them. */
#ifdef PF_IO_WORKER
enum { PYTHON_KERNELS = PF_KTHREAD | PF_IO_WORKER };
#else
enum { PYTHON_KERNELS = PF_KTHREAD };
#endif

/* The thread pointer of a thread, from which offsets_page.tstate_tls counts; 0: unknown. */
static unsigned long python_thread_pointer(struct task_struct *thread)
{
    if (thread->flags & PYTHON_KERNELS)
        return 0;
#if defined(__x86_64__)
    return thread->thread.fsbase;
#elif defined(__aarch64__)
    return thread == current ? read_sysreg(tpidr_el0) : *task_user_tls(thread);
#else
    return 0;
#endif
}

/* The name of the program's file; "" in a kernel thread.  Under rcu_read_lock(). */
static const char *python_program(void)
{
    struct file *file = current->mm ? rcu_dereference(current->mm->exe_file) : NULL;
    return file && file->f_path.dentry ? (const char *)file->f_path.dentry->d_name.name : "";
}

/* Whether LD_PRELOAD names the shim, in the environment that the program was started with. */
static int python_preloads_shim(void)
{
    static const char variable[] = "LD_PRELOAD=";
    char part[256];
    unsigned long at = current->mm->env_start, end = min(current->mm->env_end, at + 0x8000), size;
    const char *found;
    for (; at < end; at += sizeof part - sizeof variable) {
        size = min((unsigned long)sizeof part - 1, end - at);
        if (!python_read(part, at, size))
            return 0;
        part[size] = '\0';
        found = strnstr(part, variable, size);
        if (found == part)
            return strstr(part, "libpython-stap.so") != NULL;
        if (found) /* read anew, all of it */
            at += found - part - (sizeof part - sizeof variable);
    }
    return 0;
}

/*
 * Warns once of a Python that has had no offsets page for more than two seconds: while it starts it has none yet.  On a
 * loaded machine a start may take longer, so one that preloads the shim has a minute.
 */
static void python_warn_no_shim(void)
{
    static struct {
        pid_t pid;
        unsigned long until;
    } seen[64];
    static int said;
    int is_python, place = current->tgid % 64;
    if (READ_ONCE(said))
        return;
    rcu_read_lock();
    is_python = strncmp(python_program(), "python", 6) == 0;
    rcu_read_unlock();
    if (!is_python)
        return;
    if (!current->mm->env_end) /* exec() has not put the environment there yet */
        return;
    if (seen[place].pid != current->tgid) {
        seen[place].until = jiffies + (python_preloads_shim() ? 60 : 2) * HZ;
        seen[place].pid = current->tgid;
    } else if (time_before(seen[place].until, jiffies) && !xchg(&said, 1)) {
        _stp_warn("Python process %d and perhaps others have no shim, and so no Python stack: stap-python attach %d",
                  current->tgid, current->tgid);
    }
}

/* Reads the address of the PyThreadState of a thread of this process: 0 if it has none.  False: unknown. */
static int python_read_state(const struct offsets_page *layout, struct task_struct *thread, unsigned long *state)
{
    unsigned long pointer = python_thread_pointer(thread);
    *state = 0;
    return layout->tstate_tls && pointer && python_read(state, pointer + layout->tstate_tls, sizeof *state);
}

/* Begins with the innermost frame of the thread with this PyThreadState, which may be another than the running one. */
static enum python_frame_status python_state_frame(struct python_frames *frames, unsigned long state)
{
    const struct offsets_page *layout = &frames->layout;
    const unsigned frame = layout->tstate_frame;
    const unsigned offsets[] = {layout->tstate_cframe ? layout->tstate_cframe : frame, layout->tstate_interp};
    u64 words[2];
    if (!python_read_words(words, offsets, 2, state, NULL, 0))
        return PYTHON_FRAME_UNKNOWN;
    frames->state = state;
    frames->interpreter = layout->tstate_interp ? words[1] : 0;
    if (layout->tstate_cframe && (!words[0] || !python_read_words(words, &frame, 1, words[0], NULL, 0)))
        return PYTHON_FRAME_UNKNOWN;
    frames->frame = words[0];
    frames->in_jit = layout->tstate_current_executor && python_word(state + layout->tstate_current_executor);
    return python_skip_c_frames(frames);
}

/* Begins with the innermost frame of a thread of this process. */
static enum python_frame_status python_thread_frame(struct python_frames *frames, struct task_struct *thread)
{
    unsigned long state;
    if (!python_read_state(&frames->layout, thread, &state))
        return PYTHON_FRAME_UNKNOWN;
    return state ? python_state_frame(frames, state) : PYTHON_FRAME_NONE;
}

/* Begins with the frame at the address or, if it is 0, with the innermost frame of the running thread. */
static enum python_frame_status python_first_frame(struct python_frames *frames, unsigned long frame)
{
    enum python_frame_status found;
    memset(frames, 0, sizeof *frames);
    if (!current->mm || !python_read_layout(&frames->layout)) {
        python_warn_no_shim();
        return frame ? PYTHON_FRAME_UNKNOWN : PYTHON_FRAME_NONE;
    }
    if (!frame)
        return python_thread_frame(frames, current);
    if (frames->layout.lines == LINES_UNKNOWN)
        return PYTHON_FRAME_UNKNOWN;
    frames->frame = frame;
    found = python_skip_c_frames(frames);
    return found == PYTHON_FRAME_NONE ? PYTHON_FRAME_UNKNOWN : found;
}

/* Writes the str at this offset of the frame's code object. */
static void python_put_code_str(struct python_text *text, enum python_frame_status found,
                                const struct python_frames *frames, unsigned offset)
{
    if (found == PYTHON_FRAME_OK)
        python_put_attribute(text, python_word(frames->code + offset));
    else if (found == PYTHON_FRAME_UNKNOWN)
        python_puts(text, "<unknown>");
}

/* Whether the running frame is at an instruction that resolves a lazy import. */
static int python_resolves_lazy_import(const struct offsets_page *layout, unsigned long frame)
{
    u8 opcode;
    return python_read(&opcode, python_word(frame + layout->frame_instr_ptr), sizeof opcode) &&
           (opcode == OPCODE_LOAD_NAME_315 || opcode == OPCODE_LOAD_GLOBAL_315 || opcode == OPCODE_LOAD_ATTR_315 ||
            opcode == OPCODE_LOAD_FROM_DICT_OR_GLOBALS_315 || opcode == OPCODE_IMPORT_FROM_315);
}

/* Writes __name__ of the frame's globals. */
static void python_put_module(struct python_text *text, enum python_frame_status found, const struct python_frames *frames)
{
    unsigned long globals = 0, name;
    enum python_lookup got;
    if (found == PYTHON_FRAME_NONE)
        return;
    if (found == PYTHON_FRAME_OK && frames->layout.frame_f_globals)
        globals = python_word(frames->frame + frames->layout.frame_f_globals);
    python_begin_values(text, &frames->layout);
    got = python_dict_item(text, globals, "__name__", 8, &name);
    if (got == PYTHON_LOOKUP_OK)
        python_put_attribute(text, name);
    else if (got != PYTHON_LOOKUP_ABSENT)
        python_puts(text, "<unknown>");
}
