/*
 * Dicts, attributes and items of objects.  A part of python_objects.stp.in, which includes it behind what
 * reads memory, types and objects.
 *
 * No code of the program runs: an object's attributes are what its dict, its slots and the dicts of its
 * classes hold.
 *
 * SPDX-License-Identifier: MIT
 */

/* Include/object.h: more of tp_flags. */
enum {
    PYTHON_INLINE_VALUES = 1 << 2, /* 3.13+ */
    PYTHON_MANAGED_DICT = 1 << 4,  /* 3.11+ */
    PYTHON_DICT = 1 << 29,
    PYTHON_EXCEPTION = 1 << 30,
};
#define PYTHON_TYPE_OBJECT (1UL << 31)

/* Include/cpython/object.h: struct _typeobject, behind tp_base. */
enum {
    PYTHON_TP_DICT = 264, /* NULL in the built-in types of 3.12+ */
    PYTHON_TP_DESCR_GET = 272,
    PYTHON_TP_DICTOFFSET = 288,
    PYTHON_TP_MRO = 344,
};

/* All that one text may look at: objects, entries and items. */
enum { PYTHON_EFFORT = 5000, PYTHON_ENTRIES = 1000, PYTHON_CLASSES = 64 };

static void python_begin_values(struct python_text *text, const struct layout_page *layout)
{
    text->layout = layout;
    text->shift = layout->head_shift;
    text->effort = PYTHON_EFFORT;
}

static int python_spend(struct python_text *text)
{
    return text->effort > 0 && text->effort-- > 0;
}

static unsigned long python_type_address(unsigned long object, unsigned shift)
{
    return object ? python_word(object + shift + offsetof(struct python_object, type)) : 0;
}

/* The items of a tuple, and how many; whether it is one. */
static int python_find_items(const struct layout_page *layout, unsigned long tuple, unsigned long *items, u64 *count)
{
    *items = tuple + layout->tuple_items;
    return tuple && layout->tuple_items &&
           python_read(count, tuple + layout->head_shift + offsetof(struct python_sized, size), sizeof *count);
}

/* ---- dicts */

struct python_walk {
    unsigned long entries, values, order; /* values, order: 0 unless they are apart from the keys */
    u64 count, at;
    u64 most; /* not more of them */
    int size; /* of an entry */
};

/* Whether the dict can be walked. */
static int python_walk_keys(struct python_walk *walk, const struct layout_page *layout, unsigned long keys)
{
    u8 bytes[3];
    u64 count;
    memset(walk, 0, sizeof *walk);
    if (!layout->keys_form || !keys || !python_read(&walk->count, keys + layout->keys_count, sizeof walk->count))
        return 0;
    walk->most = PYTHON_ENTRIES;
    walk->size = 3 * sizeof(u64);
    if (layout->keys_form == KEYS_LOG2) {
        if (!python_read(bytes, keys + layout->keys_size, sizeof bytes) || bytes[1] > 40)
            return 0;
        if (bytes[2])
            walk->size = 2 * sizeof(u64);
        walk->entries = keys + layout->keys_indices + (1ULL << bytes[1]);
        return 1;
    }
    if (!python_read(&count, keys + layout->keys_size, sizeof count))
        return 0;
    walk->entries = keys + layout->keys_indices +
                    (count <= 0xff ? count : count <= 0xffff ? 2 * count : count <= 0xffffffff ? 4 * count : 8 * count);
    return 1;
}

/* Values that are apart from the keys, in the order in which they were set. */
static int python_walk_values(struct python_walk *walk, const struct layout_page *layout, unsigned long values)
{
    u8 head[2];
    walk->values = values + layout->values_items;
    if (layout->values_form == VALUES_IN_ORDER)
        return 1;
    if (layout->values_form == VALUES_BEHIND_ORDER) { /* ..., 2nd, 1st, how many, size of this */
        walk->order = values - 3;
        if (!python_read(head, values - 2, 1))
            return 0;
        walk->count = head[0];
    } else { /* room for how many, how many, two flags; the values; 1st, 2nd, ... */
        if (!python_read(head, values, 2))
            return 0;
        walk->order = values + layout->values_items + head[0] * sizeof(u64);
        walk->count = head[1];
    }
    return 1;
}

static int python_walk_dict(struct python_walk *walk, const struct layout_page *layout, unsigned long dict)
{
    u64 values;
    return dict && layout->keys_form && python_read(&values, dict + layout->dict_values, sizeof values) &&
           python_walk_keys(walk, layout, python_word(dict + layout->dict_keys)) &&
           (!values || python_walk_values(walk, layout, values));
}

/* The next entry; 0 at the end; -1 if it can't be read, or after too many. */
static int python_walk_on(struct python_walk *walk, struct python_text *text, unsigned long *key, unsigned long *value)
{
    u64 entry[2];
    while (walk->at < walk->count) {
        u64 index = walk->at++;
        if (walk->at > walk->most || !python_spend(text))
            return -1;
        if (walk->order) {
            u8 place;
            if (!python_read(&place, text->layout->values_form == VALUES_BEHIND_ORDER ? walk->order - index :
                                                                                       walk->order + index, 1))
                return -1;
            index = place;
        }
        if (!python_read(entry, walk->entries + walk->size * (index + 1) - sizeof entry, sizeof entry))
            return -1;
        if (walk->values && !python_read(&entry[1], walk->values + index * sizeof(u64), sizeof entry[1]))
            return -1;
        if (!entry[0] || !entry[1]) /* deleted */
            continue;
        *key = entry[0];
        *value = entry[1];
        return 1;
    }
    return 0;
}

/* Whether an object is a str of that ASCII text. */
static int python_is_named(struct python_text *text, unsigned long object, const char *name, int length)
{
    static const unsigned offsets[] = {offsetof(struct python_object, type), offsetof(struct python_sized, size)};
    struct python_bytes bytes = {0};
    struct python_type type;
    unsigned kind;
    u64 words[2], count;
    /* most are of another length, which is where other objects have a size, too */
    if (!python_words(words, offsets, 2, object + text->shift, NULL, 0) || words[1] != (u64)length)
        return 0;
    if (words[0] != text->name_type) {
        if (!python_read_type_at(&type, words[0], text->shift) || !(type.flags & PYTHON_UNICODE) || !python_find_base(&type, PYTHON_UNICODE))
            return 0;
        text->name_type = words[0];
        text->name_base = type;
    }
    if (!python_find_characters(&bytes, &count, &kind, object, &text->name_base) || kind != 1)
        return 0;
    while (length-- > 0)
        if (python_byte(&bytes) != (unsigned char)*name++)
            return 0;
    return 1;
}

/* What was looked for: an object, or why there is none. */
enum python_got {
    PYTHON_GOT,
    PYTHON_ABSENT,
    PYTHON_UNREADABLE,
    PYTHON_COMPUTED, /* code of the program would have to run */
    PYTHON_UNSET,    /* a variable that has no value yet, or no more */
};

static enum python_got python_walk_to(struct python_walk *walk, struct python_text *text, const char *name, int length,
                                      unsigned long *value)
{
    unsigned long key;
    int more;
    while ((more = python_walk_on(walk, text, &key, value)) > 0)
        if (python_is_named(text, key, name, length))
            return PYTHON_GOT;
    return more < 0 ? PYTHON_UNREADABLE : PYTHON_ABSENT;
}

/* What a dict has under a key that is a str. */
static enum python_got python_dict_item(struct python_text *text, unsigned long dict, const char *name, int length,
                                        unsigned long *value)
{
    struct python_walk walk;
    if (!python_walk_dict(&walk, text->layout, dict))
        return PYTHON_UNREADABLE;
    return python_walk_to(&walk, text, name, length, value);
}

/* ---- attributes */

/* Descrobject.h: PyMemberDescrObject; structmember.h: PyMemberDef. */
struct python_member_descriptor {
    struct python_object object;
    u64 type, name, qualified_name, member;
};
struct python_member {
    u64 name;
    u32 type, padding;
    u64 offset;
};
enum { PYTHON_MEMBER_OBJECT = 6, PYTHON_MEMBER_SLOT = 16 }; /* T_OBJECT, T_OBJECT_EX */

/* What the dicts of its classes have under that name, and of which type it is. */
static enum python_got python_class_attribute(struct python_text *text, unsigned long type, const char *name, int length,
                                              unsigned long *value)
{
    unsigned long class, dict, bases;
    u64 count, i;
    enum python_got got;
    if (!python_find_items(text->layout, python_word(type + text->shift + PYTHON_TP_MRO), &bases, &count))
        return PYTHON_UNREADABLE;
    for (i = 0; i < count; i++) {
        if (i == PYTHON_CLASSES || !python_spend(text))
            return PYTHON_UNREADABLE;
        class = python_word(bases + i * sizeof(u64));
        if (!class)
            return PYTHON_UNREADABLE;
        dict = python_word(class + text->shift + PYTHON_TP_DICT);
        got = dict ? python_dict_item(text, dict, name, length, value) : PYTHON_ABSENT;
        if (got != PYTHON_ABSENT)
            return got;
    }
    return PYTHON_ABSENT;
}

/* Where an instance has its attributes: a dict, or values for the keys that its class has; 0: neither. */
static int python_find_attributes(struct python_walk *walk, const struct layout_page *layout, unsigned long object,
                                  unsigned long type_address, const struct python_type *type)
{
    unsigned long dict = 0, values = 0, keys = 0;
    s64 offset, size;
    if (layout->type_qualified_name)
        keys = python_word(type_address + layout->type_qualified_name + sizeof(u64)); /* ht_cached_keys */
    if (layout->values_form != VALUES_IN_ORDER && type->flags & PYTHON_MANAGED_DICT) {
        /* before the two words of the garbage collector, which a free-threaded build does not have */
        dict = python_word(object - (layout->head_shift ? 1 : 3) * sizeof(u64));
        if (layout->values_form == VALUES_BEHIND_ORDER && layout->values_before)
            values = python_word(object - 4 * sizeof(u64));
        else if (layout->values_form == VALUES_BEHIND_ORDER && dict & 1) {
            values = dict + 1;
            dict = 0;
        } else if (layout->values_form == VALUES_BEFORE_ORDER && !dict && type->flags & PYTHON_INLINE_VALUES)
            values = object + type->basicsize;
    } else if (python_read(&offset, type_address + layout->head_shift + PYTHON_TP_DICTOFFSET, sizeof offset) && offset) {
        /* from the end of an object with items: Objects/object.c, _PyObject_GetDictPtr() */
        if (offset < 0 && python_read(&size, object + layout->head_shift + offsetof(struct python_sized, size), sizeof size))
            offset += ALIGN(type->basicsize + (size < 0 ? -size : size) * type->itemsize, sizeof(u64));
        if (offset > 0)
            dict = python_word(object + offset);
    }
    if (dict)
        return python_walk_dict(walk, layout, dict);
    return values && python_walk_keys(walk, layout, keys) && python_walk_values(walk, layout, values);
}

/* An attribute of an object as its dict, its slots or its classes hold it. */
static enum python_got python_attribute(struct python_text *text, unsigned long object, const char *name, int length,
                                        unsigned long *value)
{
    unsigned long address = python_type_address(object, text->shift);
    struct python_walk walk;
    struct python_type type;
    struct python_member_descriptor slot;
    struct python_member member;
    enum python_got got;
    if (!python_read_type_at(&type, address, text->shift))
        return PYTHON_UNREADABLE;
    if (python_find_attributes(&walk, text->layout, object, address, &type)) {
        got = python_walk_to(&walk, text, name, length, value);
        if (got != PYTHON_ABSENT)
            return got;
    }
    got = python_class_attribute(text, address, name, length, value);
    if (got != PYTHON_GOT)
        return got;
    if (!python_read_type(&type, *value, text->shift))
        return PYTHON_UNREADABLE;
    if (!python_type_is(&type, "member_descriptor"))
        return python_word(python_type_address(*value, text->shift) + text->shift + PYTHON_TP_DESCR_GET) ? PYTHON_COMPUTED : PYTHON_GOT;
    if (!python_read(&slot, *value + text->shift, sizeof slot) || !python_read(&member, slot.member, sizeof member) ||
        (member.type != PYTHON_MEMBER_SLOT && member.type != PYTHON_MEMBER_OBJECT) ||
        !python_read(value, object + member.offset, sizeof *value))
        return PYTHON_UNREADABLE;
    return *value ? PYTHON_GOT : PYTHON_ABSENT;
}
