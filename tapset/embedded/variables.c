/*
 * Reads the variables of frames, and the objects to which paths lead from them.  At the end are the functions that
 * python_values.stp.in calls.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* ---------------------------------------------------------------- variables */

/* False: the frame's variables can't be read. */
static int python_find_variables(struct python_variables *variables, const struct python_frames *frames)
{
    const struct offsets_page *layout = &frames->layout;
    const unsigned offsets[] = {layout->co_flags, layout->co_argcount, layout->co_kwonlyargcount,
                                layout->co_varnames, layout->co_localspluskinds, layout->co_cellvars, layout->co_freevars};
    u64 words[7]; /* the first three: of 4 bytes each; an offset is 0 if this CPython lacks the member */
    memset(variables, 0, sizeof *variables);
    variables->frame = frames->frame;
    if (!layout->frame_localsplus || !python_read_words(words, offsets, 7, frames->code, NULL, 0) ||
        !python_find_items(layout, words[3], &variables->names[0], &variables->counts[0]))
        return 0;
    variables->flags = python_low_u32(words[0]);
    variables->arguments = python_low_u32(words[1]);
    variables->keyword_arguments = python_low_u32(words[2]);
    if (layout->co_localspluskinds) {
        variables->kinds = words[4] + layout->ob_base_offset + sizeof(struct PyBytesObject);
        return 1;
    }
    return python_find_items(layout, words[5], &variables->names[1], &variables->counts[1]) &&
           python_find_items(layout, words[6], &variables->names[2], &variables->counts[2]);
}

static u64 python_variables_count(const struct python_variables *variables)
{
    return min_t(u64, variables->counts[0] + variables->counts[1] + variables->counts[2], PYTHON_ENTRIES);
}

static unsigned long python_variable_name(const struct python_variables *variables, u64 number)
{
    int i;
    for (i = 0; i < 2 && number >= variables->counts[i]; i++)
        number -= variables->counts[i];
    return python_word(variables->names[i] + number * sizeof(u64));
}

static enum python_lookup python_variable(const struct python_variables *variables, const struct offsets_page *layout, u64 number,
                                       unsigned long *value)
{
    struct python_type type;
    u8 kind = 0;
    u64 word;
    if (!python_read(&word, variables->frame + layout->frame_localsplus + number * sizeof word, sizeof word) ||
        (variables->kinds && !python_read(&kind, variables->kinds + number, 1)))
        return PYTHON_LOOKUP_UNREADABLE;
    *value = word & ~STACKREF_TAGS;
    /* An argument becomes a cell (Include/cpython/cellobject.h) only once the function has begun. */
    if (*value && (kind & (CO_FAST_CELL | CO_FAST_FREE) || number >= variables->counts[0])) {
        if (!python_read_type(&type, *value, layout->ob_base_offset))
            return PYTHON_LOOKUP_UNREADABLE;
        if (python_type_is(&type, "cell"))
            *value = python_word(*value + layout->ob_base_offset + sizeof(struct PyObject_head));
    }
    return *value ? PYTHON_LOOKUP_OK : PYTHON_LOOKUP_UNSET;
}

/* Looks a name up in the frame's variables, then in its globals.  The variables of a class statement or a module are in
 * the dict f_locals. */
static enum python_lookup python_variable_named(struct python_text *text, const struct python_frames *frames, const char *name,
                                             int length, unsigned long *value)
{
    struct python_variables variables;
    enum python_lookup got = PYTHON_LOOKUP_ABSENT;
    u64 i, count;
    if (!python_find_variables(&variables, frames))
        return PYTHON_LOOKUP_UNREADABLE;
    count = python_variables_count(&variables);
    for (i = 0; i < count && got != PYTHON_LOOKUP_OK; i++) {
        if (!python_use_budget(text))
            return PYTHON_LOOKUP_UNREADABLE;
        /* up to 3.10 an argument that inner functions use is listed twice */
        if (python_is_named(text, python_variable_name(&variables, i), name, length))
            got = python_variable(&variables, &frames->layout, i, value);
    }
    if (got == PYTHON_LOOKUP_ABSENT && !(variables.flags & CO_OPTIMIZED))
        got = python_dict_item(text, python_word(frames->frame + frames->layout.frame_f_locals), name, length, value);
    if (got == PYTHON_LOOKUP_ABSENT && frames->layout.frame_f_globals)
        got = python_dict_item(text, python_word(frames->frame + frames->layout.frame_f_globals), name, length, value);
    return got;
}

/* ---------------------------------------------------------------- paths: name.attribute[3]['key'] */

static enum python_lookup python_index(struct python_text *text, unsigned long object, s64 index, unsigned long *value)
{
    struct python_type type;
    struct python_dict_iter walk;
    unsigned long key, items;
    s64 number;
    u64 count;
    int more;
    if (!python_read_type(&type, object, text->shift))
        return PYTHON_LOOKUP_UNREADABLE;
    if (type.flags & (Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS)) {
        if (!python_find_items(text->layout, object, &items, &count))
            return PYTHON_LOOKUP_UNREADABLE;
        if (type.flags & Py_TPFLAGS_LIST_SUBCLASS)
            items = python_word(object + text->shift + sizeof(struct PyVarObject_head));
        if (index < 0)
            index += (s64)count;
        if (index < 0 || (u64)index >= count)
            return PYTHON_LOOKUP_ABSENT;
        *value = python_word(items + index * sizeof(u64));
        return *value ? PYTHON_LOOKUP_OK : PYTHON_LOOKUP_UNREADABLE;
    }
    if (!(type.flags & Py_TPFLAGS_DICT_SUBCLASS))
        return PYTHON_LOOKUP_COMPUTED;
    if (!python_dict_iter_init(&walk, text->layout, object))
        return PYTHON_LOOKUP_UNREADABLE;
    while ((more = python_dict_iter_next(&walk, text, &key, value)) > 0)
        if (python_int_of(key, &number, text->shift) && number == index)
            return PYTHON_LOOKUP_OK;
    return more < 0 ? PYTHON_LOOKUP_UNREADABLE : PYTHON_LOOKUP_ABSENT;
}

/* Looks an attribute up; of a class, in the class and its bases first. */
static enum python_lookup python_member_of(struct python_text *text, unsigned long object, const char *name, int length,
                                        unsigned long *value)
{
    struct python_type type;
    enum python_lookup got;
    if (python_read_type(&type, object, text->shift) && type.flags & Py_TPFLAGS_TYPE_SUBCLASS) {
        got = python_class_attribute(text, object, name, length, value);
        if (got != PYTHON_LOOKUP_ABSENT)
            return got;
    }
    return python_attribute(text, object, name, length, value);
}

/* Follows the step of a path that begins at *at, and moves *at behind the step. */
static enum python_lookup python_resolve_step(struct python_text *text, const char **at, unsigned long *value)
{
    const char *from = *at + 1;
    unsigned long object = *value;
    struct python_type type;
    s64 index = 0;
    int length, negative;
    if (**at == '.') {
        length = strcspn(from, ".[");
        *at = from + length;
        return python_member_of(text, object, from, length, value);
    }
    if (*from == '\'' || *from == '"') {
        const char *end = strchr(from + 1, *from);
        if (!end || end[1] != ']')
            return PYTHON_LOOKUP_ABSENT;
        *at = end + 2;
        if (!python_read_type(&type, object, text->shift))
            return PYTHON_LOOKUP_UNREADABLE;
        if (!(type.flags & Py_TPFLAGS_DICT_SUBCLASS))
            return PYTHON_LOOKUP_COMPUTED;
        return python_dict_item(text, object, from + 1, end - from - 1, value);
    }
    negative = *from == '-';
    from += negative;
    for (length = 0; from[length] >= '0' && from[length] <= '9' && length < 18; length++)
        index = 10 * index + from[length] - '0';
    if (!length || from[length] != ']')
        return PYTHON_LOOKUP_ABSENT;
    *at = from + length + 1;
    return python_index(text, object, negative ? -index : index, value);
}

/* Finds the object to which a path leads from a variable of the frame. */
static enum python_lookup python_resolve_path(struct python_text *text, const struct python_frames *frames, const char *path,
                                     unsigned long *value)
{
    int length = strcspn(path, ".[");
    enum python_lookup got = python_variable_named(text, frames, path, length, value);
    for (path += length; got == PYTHON_LOOKUP_OK && *path; )
        got = *path == '.' || *path == '[' ? python_resolve_step(text, &path, value) : PYTHON_LOOKUP_ABSENT;
    return got;
}

static void python_put_lookup(struct python_text *text, enum python_lookup got, unsigned long value)
{
    if (got == PYTHON_LOOKUP_OK)
        python_put_object(text, value, 0);
    else
        python_puts(text, got == PYTHON_LOOKUP_ABSENT   ? "<not there>" :
                          got == PYTHON_LOOKUP_COMPUTED ? "<computed>" :
                          got == PYTHON_LOOKUP_UNSET    ? "<unset>" : "<unknown>");
}

/* ---------------------------------------------------------------- functions for python_values.stp.in */

/* frameptr 0: the innermost frame of the running thread. */

static void python_end_values(struct python_text *text)
{
    if (text->full)
        python_put_last(text, "...");
    *text->at = '\0';
}

static void python_repr_text(char *to, unsigned long object)
{
    struct offsets_page layout;
    struct python_text text;
    if (!python_read_layout(&layout))
        memset(&layout, 0, sizeof layout);
    python_begin(&text, to, "...");
    python_begin_values(&text, &layout);
    if (object)
        python_put_object(&text, object, 0);
    python_end_values(&text);
}

/* The class of the object at the address; 0: there is no object. */
static unsigned long python_class_of(unsigned long object, unsigned shift)
{
    struct python_type metaclass;
    unsigned long address = python_type_address(object, shift), class_of_class, root;
    if (!address) /* so of most counts: no more reads that fail */
        return 0;
    /* the class of a class is `type`, whose class it is itself, or derived from it, whose class is `type` */
    class_of_class = python_type_address(address, shift);
    root = python_type_address(class_of_class, shift);
    if (!root || python_type_address(root, shift) != root || !python_read_type_at(&metaclass, class_of_class, shift))
        return 0;
    return metaclass.flags & Py_TPFLAGS_TYPE_SUBCLASS ? address : 0;
}

/* Whether an object is at the address, with its type. */
static bool python_is_object(unsigned long object, unsigned shift, struct python_type *type)
{
    unsigned long address;
    u64 references = python_word(object + shift); /* ob_refcnt, or ob_ref_shared */
    /* their count is less than a pointer; from 3.14 on flags are in its highest bits */
    if (!shift && (!(u32)references || (u16)(references >> 32)))
        return false;
    /* An item of a list may be as small: the address of a static object.  A count may be an address: that of nothing,
     * or of what is no object (999999999 in a static object of 3.11, which may be in the heap behind the program). */
    if (python_class_of(references, shift))
        return false;
    address = python_class_of(object, shift);
    return address && python_read_type_at(type, address, shift);
}

/* The object for which CPython has allocated the block, by PyObject_Malloc(); 0: there is none in it.  Before an object are the
 * collector's head (16 bytes; up to 3.7: 32; none in a free-threaded build) and, from 3.11 on, two words for the dict
 * or the weak references of instances (Objects/typeobject.c: _PyType_AllocNoTrack()). */
static unsigned long python_object_in(unsigned long block, unsigned shift)
{
    static const unsigned heads[] = {0, 16, 32};
    struct python_type type;
    int i;
    for (i = 0; i < (int)ARRAY_SIZE(heads); i++)
        if (python_is_object(block + heads[i], shift, &type) && (shift || !(type.flags & Py_TPFLAGS_HAVE_GC) == !heads[i]))
            return block + heads[i];
    return 0;
}

/* The object whose count of references, or whose head for the collector, is at the address; 0: something else is.  The
 * head is the words before an object: two, up to 3.7 four (Include/objimpl.h: union _gc_head).  A free-threaded build
 * has none; there the words of ob_gc_bits and of both counts are in the object. */
static unsigned long python_object_counted_at(unsigned long address)
{
    struct offsets_page layout;
    struct python_type type;
    unsigned at, last, shift;
    if (!python_read_layout(&layout))
        return 0;
    address &= ~7UL;
    shift = layout.ob_base_offset;
    last = shift ? shift : python_minor(&layout) > 7 ? 16 : 32;
    for (at = 0; at <= last; at += 8) {
        unsigned long object = shift ? address - at : address + at;
        if (python_is_object(object, shift, &type) && (shift || !at || type.flags & Py_TPFLAGS_HAVE_GC))
            return object;
    }
    return 0;
}

/* Writes the exception that function__return passes: an object or, if CPython has not made the object yet, a tuple of its
 * class and what it will be made with. */
static void python_exception_text(char *to, unsigned long object)
{
    struct offsets_page layout;
    struct python_text text;
    struct python_type type;
    u64 parts[2];
    python_repr_text(to, object);
    if (!object || !python_read_layout(&layout) || !python_read_type(&type, object, layout.ob_base_offset) || !(type.flags & Py_TPFLAGS_TUPLE_SUBCLASS) ||
        !python_read(parts, object + layout.tuple_ob_item, sizeof parts) || !python_read_type_at(&type, parts[0], layout.ob_base_offset))
        return;
    python_begin(&text, to, "...");
    python_begin_values(&text, &layout);
    python_put_class_name(&text, parts[0], &type);
    if (!parts[1])
        python_puts(&text, "()");
    else if (!python_put_call(&text, parts[1], 0)) {
        python_puts(&text, "(");
        python_put_object(&text, parts[1], 0);
        python_puts(&text, ")");
    }
    python_end_values(&text);
}

static void python_typename_text(char *to, unsigned long object)
{
    unsigned long address;
    struct offsets_page layout;
    struct python_text text;
    struct python_type type;
    if (!python_read_layout(&layout))
        memset(&layout, 0, sizeof layout);
    python_begin(&text, to, "");
    python_begin_values(&text, &layout);
    address = python_type_address(object, text.shift);
    if (object && python_read_type_at(&type, address, text.shift))
        python_put_class(&text, address, &type);
    else if (object)
        python_puts(&text, "<unknown>");
    *text.at = '\0';
}

/* Writes a str without quotes, its ASCII characters unescaped. */
static void python_str_text(char *to, unsigned long object)
{
    struct python_text text;
    python_begin(&text, to, "");
    text.raw = 1;
    python_put_plain_str(&text, object, MAXSTRINGLEN);
    *text.at = '\0';
}

static s64 python_int_value(unsigned long object)
{
    s64 value = 0;
    return python_int_of(object, &value, python_ob_base_offset()) ? value : 0;
}

static void python_local_text(char *to, unsigned long frameptr, const char *path)
{
    struct python_frames frames;
    struct python_text text;
    enum python_lookup got;
    unsigned long value = 0;
    python_begin(&text, to, "...");
    if (python_first_frame(&frames, frameptr) == PYTHON_FRAME_OK) {
        python_begin_values(&text, &frames.layout);
        got = python_resolve_path(&text, &frames, path, &value);
        python_put_lookup(&text, got, value);
    } else if (frameptr)
        python_puts(&text, "<unknown>");
    python_end_values(&text);
}

/* 0: not found. */
static unsigned long python_local_object(unsigned long frameptr, const char *path)
{
    struct python_frames frames;
    struct python_text text = {0};
    unsigned long value;
    if (python_first_frame(&frames, frameptr) != PYTHON_FRAME_OK)
        return 0;
    python_begin_values(&text, &frames.layout);
    return python_resolve_path(&text, &frames, path, &value) == PYTHON_LOOKUP_OK ? value : 0;
}

/* Writes "name=value", or with stars "*value"; a comma before all but the first. */
static void python_put_variable(struct python_text *text, unsigned long name, enum python_lookup got, unsigned long value,
                                const char *stars, int *count)
{
    if ((*count)++)
        python_puts(text, ", ");
    python_puts(text, stars);
    if (!*stars) {
        python_put_attribute(text, name);
        python_puts(text, "=");
    }
    python_put_lookup(text, got, value);
}

static void python_put_argument(struct python_text *text, const struct python_frames *frames,
                                const struct python_variables *variables, u64 number, const char *stars, int *count)
{
    unsigned long name = python_variable_name(variables, number), value = 0;
    enum python_lookup got = python_variable(variables, &frames->layout, number, &value);
    char letters[64];
    int length;
    /* up to 3.10 the argument may have moved to a cell */
    if (got == PYTHON_LOOKUP_UNSET && variables->counts[1] && (length = python_copy_name(letters, sizeof letters, name, text->shift)))
        got = python_variable_named(text, frames, letters, length, &value);
    python_put_variable(text, name, got, value, stars, count);
}

/* Begins a text about the variables of a frame; false: there are none, and the text is complete. */
static int python_begin_variables(struct python_text *text, char *to, struct python_frames *frames,
                                  struct python_variables *variables, unsigned long frameptr)
{
    python_begin(text, to, "...");
    if (python_first_frame(frames, frameptr) == PYTHON_FRAME_OK && python_find_variables(variables, frames)) {
        python_begin_values(text, &frames->layout);
        return 1;
    }
    if (frameptr)
        python_puts(text, "<unknown>");
    *text->at = '\0';
    return 0;
}

/* Writes the arguments in the order of the signature. */
static void python_args_text(char *to, unsigned long frameptr)
{
    struct python_frames frames;
    struct python_variables variables;
    struct python_text text;
    u64 i, all;
    int count = 0, has_more;
    if (!python_begin_variables(&text, to, &frames, &variables, frameptr))
        return;
    all = min_t(u64, (u64)variables.arguments + variables.keyword_arguments, python_variables_count(&variables));
    has_more = (variables.flags & CO_VARARGS) != 0;
    for (i = 0; i < all && i < variables.arguments && !text.full; i++)
        python_put_argument(&text, &frames, &variables, i, "", &count);
    if (has_more)
        python_put_argument(&text, &frames, &variables, all, "*", &count);
    for (; i < all && !text.full; i++)
        python_put_argument(&text, &frames, &variables, i, "", &count);
    if (variables.flags & CO_VARKEYWORDS)
        python_put_argument(&text, &frames, &variables, all + has_more, "**", &count);
    python_end_values(&text);
}

/* Writes the variables of a class statement or a module. */
static void python_put_namespace(struct python_text *text, unsigned long dict, int *count)
{
    struct python_dict_iter walk;
    unsigned long name, value;
    if (!python_dict_iter_init(&walk, text->layout, dict))
        return;
    while (!text->full && python_dict_iter_next(&walk, text, &name, &value) > 0) {
        if ((*count)++)
            python_puts(text, ", ");
        python_put_attribute(text, name);
        python_puts(text, "=");
        python_put_object(text, value, 0);
    }
}

static void python_locals_text(char *to, unsigned long frameptr)
{
    struct python_frames frames;
    struct python_variables variables;
    struct python_text text;
    enum python_lookup got;
    unsigned long value;
    u64 i, all;
    int count = 0;
    if (!python_begin_variables(&text, to, &frames, &variables, frameptr))
        return;
    all = python_variables_count(&variables);
    for (i = 0; i < all && !text.full; i++)
        if ((got = python_variable(&variables, &frames.layout, i, &value)) != PYTHON_LOOKUP_UNSET)
            python_put_variable(&text, python_variable_name(&variables, i), got, value, "", &count);
    if (!(variables.flags & CO_OPTIMIZED))
        python_put_namespace(&text, python_word(frames.frame + frames.layout.frame_f_locals), &count);
    python_end_values(&text);
}

/* The frame so many callers further out; -1, which python_first_frame() can't read: none. */
static s64 python_frame_above(unsigned long frameptr, s64 depth)
{
    struct python_frames frames;
    enum python_frame_status found = depth > PYTHON_STACK ? PYTHON_FRAME_NONE : python_first_frame(&frames, frameptr);
    for (; depth > 0 && found == PYTHON_FRAME_OK; depth--)
        found = python_next_frame(&frames);
    return found == PYTHON_FRAME_OK ? (s64)frames.frame : -1;
}
