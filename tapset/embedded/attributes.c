/*
 * Looks up items of tuples and dicts, and attributes of objects.  No code of the program runs: attributes are those
 * that the object's dict, its slots and the dicts of its classes hold.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

static void python_begin_values(struct python_text *text, const struct offsets_page *layout)
{
    text->layout = layout;
    text->shift = layout->ob_base_offset;
    text->effort = PYTHON_BUDGET;
}

static int python_use_budget(struct python_text *text)
{
    return text->effort > 0 && text->effort-- > 0;
}

static unsigned long python_type_address(unsigned long object, unsigned shift)
{
    return object ? python_word(object + shift + offsetof(struct PyObject_head, ob_type)) : 0;
}

/* Finds the items of a tuple; false: unreadable.  Doesn't check that the object is a tuple. */
static int python_find_items(const struct offsets_page *layout, unsigned long tuple, unsigned long *items, u64 *count)
{
    *items = tuple + layout->tuple_ob_item;
    return tuple && layout->tuple_ob_item &&
           python_read(count, tuple + layout->ob_base_offset + offsetof(struct PyVarObject_head, ob_size), sizeof *count);
}

/* ---------------------------------------------------------------- dicts */

/* Begins an iteration over the keys and values of a keys object; false: unreadable. */
static int python_dict_iter_keys(struct python_dict_iter *walk, const struct offsets_page *layout, unsigned long keys)
{
    u8 bytes[3];
    u64 count;
    memset(walk, 0, sizeof *walk);
    if (!layout->dk_format || !keys || !python_read(&walk->count, keys + layout->dk_nentries, sizeof walk->count))
        return 0;
    walk->most = PYTHON_ENTRIES;
    walk->size = 3 * sizeof(u64);
    if (layout->dk_format == KEYS_LOG2) {
        if (!python_read(bytes, keys + layout->dk_indices_size, sizeof bytes) || bytes[1] > 40)
            return 0;
        if (bytes[2])
            walk->size = 2 * sizeof(u64);
        walk->entries = keys + layout->dk_indices + (1ULL << bytes[1]);
        return 1;
    }
    if (!python_read(&count, keys + layout->dk_indices_size, sizeof count))
        return 0;
    walk->entries = keys + layout->dk_indices +
                    (count <= 0xff ? count : count <= 0xffff ? 2 * count : count <= 0xffffffff ? 4 * count : 8 * count);
    return 1;
}

/* Continues python_dict_iter_keys() for values that are apart from the keys: in the order in which they were set. */
static int python_dict_iter_values(struct python_dict_iter *walk, const struct offsets_page *layout, unsigned long values)
{
    u8 head[2];
    walk->values = values + layout->dv_values;
    if (layout->dv_format == VALUES_IN_ORDER)
        return 1;
    if (layout->dv_format == VALUES_BEHIND_ORDER) { /* before the values: ..., 2nd, 1st, count, size of this prefix */
        walk->order = values - 3;
        if (!python_read(head, values - 2, 1))
            return 0;
        walk->count = head[0];
    } else { /* capacity, count, two flags; the values; 1st, 2nd, ... */
        if (!python_read(head, values, 2))
            return 0;
        walk->order = values + layout->dv_values + head[0] * sizeof(u64);
        walk->count = head[1];
    }
    return 1;
}

static int python_dict_iter_init(struct python_dict_iter *walk, const struct offsets_page *layout, unsigned long dict)
{
    u64 values;
    return dict && layout->dk_format && python_read(&values, dict + layout->ma_values, sizeof values) &&
           python_dict_iter_keys(walk, layout, python_word(dict + layout->ma_keys)) &&
           (!values || python_dict_iter_values(walk, layout, values));
}

/* 1: the next entry; 0: the end; -1: unreadable, or beyond a limit. */
static int python_dict_iter_next(struct python_dict_iter *walk, struct python_text *text, unsigned long *key, unsigned long *value)
{
    u64 entry[2];
    while (walk->at < walk->count) {
        u64 index = walk->at++;
        if (walk->at > walk->most || !python_use_budget(text))
            return -1;
        if (walk->order) {
            u8 place;
            if (!python_read(&place, text->layout->dv_format == VALUES_BEHIND_ORDER ? walk->order - index :
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

/* The next character of a name in UTF-8, which is not at its end. */
static u32 python_next_of_name(const char **at, const char *end)
{
    u32 character = (unsigned char)*(*at)++;
    int more = character < 0xc0 ? 0 : character < 0xe0 ? 1 : character < 0xf0 ? 2 : 3;
    if (more)
        character &= 0x3f >> more;
    while (more-- > 0 && *at < end)
        character = character << 6 | (*(*at)++ & 0x3f);
    return character;
}

/* Whether an object is a str with this name, which has length bytes of UTF-8. */
static int python_is_named(struct python_text *text, unsigned long object, const char *name, int length)
{
    static const unsigned offsets[] = {offsetof(struct PyObject_head, ob_type), offsetof(struct PyVarObject_head, ob_size)};
    struct python_bytes bytes = {0};
    const char *end = name + length;
    unsigned kind;
    u64 words[2], count, characters = 0;
    int i;
    /* the length first: most str differ in it, and other objects have ob_size at this offset */
    if (!python_read_words(words, offsets, 2, object + text->shift, NULL, 0) || words[1] > (u64)length)
        return 0;
    for (i = 0; i < length; i++)
        characters += (name[i] & 0xc0) != 0x80;
    if (words[1] != characters)
        return 0;
    if (!python_find_str_base(text, words[0]) || !python_find_characters(&bytes, &count, &kind, object, &text->str_base))
        return 0;
    while (name < end)
        if (python_next_character(&bytes, kind) != python_next_of_name(&name, end))
            return 0;
    return 1;
}

static enum python_lookup python_dict_iter_find(struct python_dict_iter *walk, struct python_text *text, const char *name, int length,
                                      unsigned long *value)
{
    unsigned long key;
    int more;
    while ((more = python_dict_iter_next(walk, text, &key, value)) > 0)
        if (python_is_named(text, key, name, length))
            return PYTHON_LOOKUP_OK;
    return more < 0 ? PYTHON_LOOKUP_UNREADABLE : PYTHON_LOOKUP_ABSENT;
}

/* Looks up a key that is a str. */
static enum python_lookup python_dict_item(struct python_text *text, unsigned long dict, const char *name, int length,
                                        unsigned long *value)
{
    struct python_dict_iter walk;
    if (!python_dict_iter_init(&walk, text->layout, dict))
        return PYTHON_LOOKUP_UNREADABLE;
    return python_dict_iter_find(&walk, text, name, length, value);
}

/* ---------------------------------------------------------------- attributes */

/* Looks a name up in the dicts of a type and its bases, in the order of the MRO. */
static enum python_lookup python_class_attribute(struct python_text *text, unsigned long type, const char *name, int length,
                                              unsigned long *value)
{
    unsigned long class, dict, bases;
    u64 count, i;
    enum python_lookup got;
    if (!python_find_items(text->layout, python_word(type + text->shift + offsetof(struct PyTypeObject, tp_mro)), &bases, &count))
        return PYTHON_LOOKUP_UNREADABLE;
    for (i = 0; i < count; i++) {
        if (i == PYTHON_CLASSES || !python_use_budget(text))
            return PYTHON_LOOKUP_UNREADABLE;
        class = python_word(bases + i * sizeof(u64));
        if (!class)
            return PYTHON_LOOKUP_UNREADABLE;
        dict = python_word(class + text->shift + offsetof(struct PyTypeObject, tp_dict));
        got = dict ? python_dict_item(text, dict, name, length, value) : PYTHON_LOOKUP_ABSENT;
        if (got != PYTHON_LOOKUP_ABSENT)
            return got;
    }
    return PYTHON_LOOKUP_ABSENT;
}

/* Begins an iteration over an instance's attributes: its dict, or its values, whose keys its class has; false: neither. */
static int python_find_attributes(struct python_dict_iter *walk, const struct offsets_page *layout, unsigned long object,
                                  unsigned long type_address, const struct python_type *type)
{
    unsigned long dict = 0, values = 0, keys = 0;
    s64 offset, size;
    if (layout->ht_qualname)
        keys = python_word(type_address + layout->ht_qualname + sizeof(u64)); /* ht_cached_keys */
    if (layout->dv_format != VALUES_IN_ORDER && type->flags & Py_TPFLAGS_MANAGED_DICT) {
        dict = python_word(object - (layout->ob_base_offset ? MANAGED_DICT_BEFORE_NOGIL : MANAGED_DICT_BEFORE));
        if (layout->dv_format == VALUES_BEHIND_ORDER && layout->dv_preheader)
            values = python_word(object - MANAGED_VALUES_BEFORE_311);
        else if (layout->dv_format == VALUES_BEHIND_ORDER && dict & 1) {
            values = dict + 1;
            dict = 0;
        } else if (layout->dv_format == VALUES_BEFORE_ORDER && !dict && type->flags & Py_TPFLAGS_INLINE_VALUES)
            values = object + type->basicsize;
    } else if (python_read(&offset, type_address + layout->ob_base_offset + offsetof(struct PyTypeObject, tp_dictoffset), sizeof offset) && offset) {
        /* negative: from the end of an object with items (Objects/object.c: _PyObject_GetDictPtr()) */
        if (offset < 0 && python_read(&size, object + layout->ob_base_offset + offsetof(struct PyVarObject_head, ob_size), sizeof size))
            offset += ALIGN(type->basicsize + (size < 0 ? -size : size) * type->itemsize, sizeof(u64));
        if (offset > 0)
            dict = python_word(object + offset);
    }
    if (dict)
        return python_dict_iter_init(walk, layout, dict);
    return values && python_dict_iter_keys(walk, layout, keys) && python_dict_iter_values(walk, layout, values);
}

/* Looks an attribute up in the object's dict, then in its classes, whose slots lead to a value in the object.
 * PYTHON_LOOKUP_COMPUTED: another descriptor. */
static enum python_lookup python_attribute(struct python_text *text, unsigned long object, const char *name, int length,
                                        unsigned long *value)
{
    unsigned long address = python_type_address(object, text->shift);
    struct python_dict_iter walk;
    struct python_type type;
    struct PyMemberDescrObject slot;
    struct PyMemberDef member;
    enum python_lookup got;
    if (!python_read_type_at(&type, address, text->shift))
        return PYTHON_LOOKUP_UNREADABLE;
    if (python_find_attributes(&walk, text->layout, object, address, &type)) {
        got = python_dict_iter_find(&walk, text, name, length, value);
        if (got != PYTHON_LOOKUP_ABSENT)
            return got;
    }
    got = python_class_attribute(text, address, name, length, value);
    if (got != PYTHON_LOOKUP_OK)
        return got;
    if (!python_read_type(&type, *value, text->shift))
        return PYTHON_LOOKUP_UNREADABLE;
    if (!python_type_is(&type, "member_descriptor"))
        return python_word(python_type_address(*value, text->shift) + text->shift + offsetof(struct PyTypeObject, tp_descr_get)) ? PYTHON_LOOKUP_COMPUTED : PYTHON_LOOKUP_OK;
    if (!python_read(&slot, *value + text->shift, sizeof slot) || !python_read(&member, (unsigned long)slot.d_member, sizeof member) ||
        (member.type != Py_T_OBJECT_EX && member.type != Py_T_OBJECT) ||
        !python_read(value, object + member.offset, sizeof *value))
        return PYTHON_LOOKUP_UNREADABLE;
    return *value ? PYTHON_LOOKUP_OK : PYTHON_LOOKUP_ABSENT;
}
