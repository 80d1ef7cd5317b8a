/*
 * Python objects of more kinds as text.  A part of python_objects.stp.in, which includes it behind
 * python_attributes.h.  No code of the program runs: an object's text is what the repr() of the built-in types
 * makes of it.
 *
 * SPDX-License-Identifier: MIT
 */

/* ---- the text of objects */

/* module.Class, or Class of a built-in one. */
static void python_put_class(struct python_text *text, unsigned long address, const struct python_type *type)
{
    unsigned long module, name = text->layout->ht_qualname ? python_word(address + text->layout->ht_qualname) : 0;
    if (type->flags & PYTHON_HEAP && name) {
        if (python_dict_item(text, python_word(address + text->shift + PYTHON_TP_DICT), "__module__", 10, &module) == PYTHON_LOOKUP_OK &&
            !python_is_named(text, module, "builtins", 8)) {
            python_put_attribute(text, module);
            python_puts(text, ".");
        }
        python_put_attribute(text, name);
    } else
        python_put_type_name(text, type, 0);
}

/* Its last part: what is behind the last dot of a static type's name, or a heap type's own name. */
static void python_put_class_name(struct python_text *text, unsigned long address, const struct python_type *type)
{
    if (type->flags & PYTHON_HEAP && text->layout->ht_qualname)
        python_put_attribute(text, python_word(address + text->layout->ht_qualname));
    else
        python_put_type_name(text, type, 1);
}

/* A comma before all items but the first; whether there may be another one. */
static int python_put_separator(struct python_text *text, int index)
{
    if (index)
        python_puts(text, ", ");
    if (index < PYTHON_ITEMS)
        return 1;
    python_puts(text, "...");
    return 0;
}

static int python_put_dict(struct python_text *text, unsigned long object, int depth)
{
    struct python_dict_iter walk;
    unsigned long key, value;
    int count = 0, more = 0;
    if (!python_dict_iter_init(&walk, text->layout, object))
        return 0;
    python_puts(text, "{");
    while (!text->full && (more = python_dict_iter_next(&walk, text, &key, &value)) > 0) {
        if (depth == PYTHON_DEPTH) {
            python_puts(text, "...");
            break;
        }
        if (!python_put_separator(text, count++))
            break;
        python_put_object(text, key, depth + 1);
        python_puts(text, ": ");
        python_put_object(text, value, depth + 1);
    }
    if (more < 0)
        python_puts(text, count ? ", <unknown>" : "<unknown>");
    python_puts(text, "}");
    return 1;
}

/* Include/cpython/setobject.h: PySetObject. */
struct PySetObject {
    struct PyObject_head object;
    u64 fill, used, mask, table;
};

static int python_put_set(struct python_text *text, unsigned long object, int frozen, int depth)
{
    struct PySetObject set;
    u64 entry[2], i;
    int count = 0;
    if (!python_read(&set, object + text->shift, sizeof set))
        return 0;
    if (!set.used) {
        python_puts(text, frozen ? "frozenset()" : "set()");
        return 1;
    }
    python_puts(text, frozen ? "frozenset({" : "{");
    for (i = 0; i <= set.mask && !text->full; i++) {
        if (!python_use_budget(text) || !python_read(entry, set.table + i * sizeof entry, sizeof entry)) {
            python_puts(text, "<unknown>");
            break;
        }
        if (!entry[0] || entry[1] == ~0ULL) /* free, or deleted: no hash is -1 */
            continue;
        if (depth == PYTHON_DEPTH) {
            python_puts(text, "...");
            break;
        }
        if (!python_put_separator(text, count++))
            break;
        python_put_object(text, entry[0], depth + 1);
    }
    python_puts(text, frozen ? "})" : "}");
    return 1;
}

/* Include/cpython/bytearrayobject.h: PyByteArrayObject. */
struct PyByteArrayObject {
    struct PyVarObject_head head;
    u64 allocated, bytes, start;
};

static int python_put_bytearray(struct python_text *text, unsigned long object)
{
    struct PyByteArrayObject array;
    if (!python_read(&array, object + text->shift, sizeof array))
        return 0;
    python_puts(text, "bytearray(");
    python_put_raw_bytes(text, array.start, array.head.size, PYTHON_CHARACTERS);
    python_puts(text, ")");
    return 1;
}

/* Whether it is an int of at most 64 bits, or a bool. */
static int python_int_of(unsigned long object, s64 *value, unsigned shift)
{
    struct python_type type;
    u32 digits[3] = {0};
    u64 count, whole;
    int negative;
    if (!python_read_type(&type, object, shift) || !(type.flags & PYTHON_LONG) || !python_int_head(object, &type, &count, &negative) ||
        count > 3 || !python_read(digits, object + shift + sizeof(struct PyVarObject_head), count * sizeof *digits))
        return 0;
    whole = (u64)digits[0] | (u64)digits[1] << PYTHON_INT_DIGIT | (u64)digits[2] << 2 * PYTHON_INT_DIGIT;
    if (digits[2] >= 8)
        return 0;
    *value = negative ? -(s64)whole : (s64)whole;
    return 1;
}

/* The three objects of a range or slice, which are behind its head; of a range without a step of 1. */
static int python_put_fields(struct python_text *text, unsigned long object, const char *name, int is_range, int depth)
{
    u64 field[3];
    s64 step;
    int i, count;
    if (!python_read(field, object + text->shift + sizeof(struct PyObject_head), sizeof field))
        return 0;
    count = is_range && python_int_of(field[2], &step, text->shift) && step == 1 ? 2 : 3;
    python_puts(text, name);
    python_puts(text, "(");
    for (i = 0; i < count; i++) {
        if (i)
            python_puts(text, ", ");
        python_put_object(text, field[i], depth + 1);
    }
    python_puts(text, ")");
    return 1;
}

/* Include/cpython/complexobject.h: two doubles. */
static int python_put_complex(struct python_text *text, unsigned long object)
{
    u64 part[2];
    if (!python_read(part, object + text->shift + sizeof(struct PyObject_head), sizeof part))
        return 0;
    if (part[0]) {
        python_puts(text, "(");
        python_put_double(text, part[0], 0);
        if (!(part[1] >> 63) || (part[1] >> 52 & 0x7ff) == 0x7ff)
            if (!(part[1] >> 63 && (part[1] & ((1ULL << 52) - 1)) == 0))
                python_puts(text, "+");
    }
    python_put_double(text, part[1], 0);
    python_puts(text, part[0] ? "j)" : "j");
    return 1;
}

/* (a, b) or (a), with no comma as there is in a tuple of one; whether it is a tuple. */
static int python_put_call(struct python_text *text, unsigned long tuple, int depth)
{
    struct python_type type;
    unsigned long items;
    u64 count;
    if (!python_read_type(&type, tuple, text->shift) || !(type.flags & PYTHON_TUPLE) ||
        !python_find_items(text->layout, tuple, &items, &count))
        return 0;
    if (count != 1) {
        python_put_object(text, tuple, depth);
        return 1;
    }
    python_puts(text, "(");
    python_put_object(text, python_word(items), depth);
    python_puts(text, ")");
    return 1;
}

/* Name(args): Include/cpython/pyerrors.h, PyBaseExceptionObject: the dict and a tuple. */
static void python_put_exception(struct python_text *text, unsigned long object, unsigned long address,
                                const struct python_type *type, int depth)
{
    python_put_class_name(text, address, type);
    if (!python_put_call(text, python_word(object + text->shift + sizeof(struct PyObject_head) + sizeof(u64)), depth + 1))
        python_puts(text, "(<unknown>)");
}

/* <enum.Name: value> */
static int python_put_member(struct python_text *text, unsigned long object, unsigned long address,
                             const struct python_type *type, int depth)
{
    unsigned long name, value;
    if (python_attribute(text, object, "_name_", 6, &name) != PYTHON_LOOKUP_OK ||
        python_attribute(text, object, "_value_", 7, &value) != PYTHON_LOOKUP_OK)
        return 0;
    python_puts(text, "<");
    python_put_class_name(text, address, type);
    python_puts(text, ".");
    python_put_attribute(text, name);
    python_puts(text, ": ");
    python_put_object(text, value, depth + 1);
    python_puts(text, ">");
    return 1;
}

/* Name(field=item, ...) of a tuple whose class has _fields. */
static int python_put_named_tuple(struct python_text *text, unsigned long object, unsigned long address,
                                  const struct python_type *type, unsigned long fields, int depth)
{
    unsigned long items, names;
    u64 count, named, i;
    if (!python_find_items(text->layout, object, &items, &count) ||
        !python_find_items(text->layout, fields, &names, &named) || count != named)
        return 0;
    python_put_class_name(text, address, type);
    python_puts(text, "(");
    for (i = 0; i < count && !text->full && python_put_separator(text, i); i++) {
        python_put_attribute(text, python_word(names + i * sizeof(u64)));
        python_puts(text, "=");
        python_put_object(text, python_word(items + i * sizeof(u64)), depth + 1);
    }
    python_puts(text, ")");
    return 1;
}

/* The characters of a str, as far as they are ASCII and have room, with a NUL; the length. */
static int python_copy_name(char *to, int room, unsigned long object, unsigned shift)
{
    struct python_text text = {.start = to, .at = to, .end = to + room - 1, .shift = shift};
    struct python_type type;
    *to = '\0';
    if (!python_read_type(&type, object, shift) || !(type.flags & PYTHON_UNICODE) || !python_put_str(&text, object, &type, 0, room))
        return 0;
    *text.at = '\0';
    return text.full ? 0 : text.at - to;
}

/* Name(field=value, ...): the fields by __dataclass_fields__ of its class, as far as the object has them. */
static int python_put_dataclass(struct python_text *text, unsigned long object, unsigned long address,
                                const struct python_type *type, unsigned long fields, int depth)
{
    struct python_dict_iter walk;
    unsigned long key, field, value;
    char name[64];
    int count = 0, length;
    if (!python_dict_iter_init(&walk, text->layout, fields))
        return 0;
    python_put_class_name(text, address, type);
    python_puts(text, "(");
    while (!text->full && python_dict_iter_next(&walk, text, &key, &field) > 0) {
        length = python_copy_name(name, sizeof name, key, text->shift);
        if (!length || python_attribute(text, object, name, length, &value) != PYTHON_LOOKUP_OK)
            continue;
        if (!python_put_separator(text, count++))
            break;
        python_puts(text, name);
        python_puts(text, "=");
        python_put_object(text, value, depth + 1);
    }
    python_puts(text, ")");
    return 1;
}

/* <function f at 0x7f...> */
static void python_put_named(struct python_text *text, const char *kind, unsigned long name, unsigned long object)
{
    char buffer[32];
    python_puts(text, "<");
    python_puts(text, kind);
    python_puts(text, " ");
    python_put_attribute(text, name);
    python_put(text, buffer, scnprintf(buffer, sizeof buffer, " at 0x%lx>", object));
}

/* Include/cpython/classobject.h: PyMethodObject: the function, and its self. */
static int python_put_method(struct python_text *text, unsigned long object, int depth)
{
    unsigned long function = python_word(object + text->shift + sizeof(struct PyObject_head));
    unsigned long self = python_word(object + text->shift + sizeof(struct PyObject_head) + sizeof(u64));
    struct python_type type;
    if (!text->layout->func_qualname || !python_read_type(&type, function, text->shift) || !python_type_is(&type, "function"))
        return 0;
    python_puts(text, "<bound method ");
    python_put_attribute(text, python_word(function + text->layout->func_qualname));
    python_puts(text, " of ");
    python_put_object(text, self, depth + 1);
    python_puts(text, ">");
    return 1;
}

/* Objects/moduleobject.c: the dict is behind the head. */
static int python_put_module_object(struct python_text *text, unsigned long object)
{
    unsigned long name, file, dict = python_word(object + text->shift + sizeof(struct PyObject_head));
    if (python_dict_item(text, dict, "__name__", 8, &name) != PYTHON_LOOKUP_OK)
        return 0;
    python_puts(text, "<module ");
    python_put_object(text, name, 0);
    if (python_dict_item(text, dict, "__file__", 8, &file) == PYTHON_LOOKUP_OK) {
        python_puts(text, " from ");
        python_put_object(text, file, 0);
    }
    python_puts(text, ">");
    return 1;
}

/* Objects of classes that a class statement made, and of some made by C in that way. */
static int python_put_instance(struct python_text *text, unsigned long object, unsigned long address,
                               const struct python_type *type, int depth)
{
    struct python_type meta;
    unsigned long fields;
    if (python_read_type(&meta, address, text->shift) && meta.flags & PYTHON_HEAP) {
        char name[16] = "";
        if (python_read(name, meta.name, 9) && (strncmp(name, "EnumMeta", 9) == 0 || strncmp(name, "EnumType", 9) == 0) &&
            python_put_member(text, object, address, type, depth))
            return 1;
    }
    if (type->flags & PYTHON_TUPLE)
        return python_class_attribute(text, address, "_fields", 7, &fields) == PYTHON_LOOKUP_OK &&
               python_put_named_tuple(text, object, address, type, fields, depth);
    return python_class_attribute(text, address, "__dataclass_fields__", 20, &fields) == PYTHON_LOOKUP_OK &&
           python_put_dataclass(text, object, address, type, fields, depth);
}

static int python_put_library_value(struct python_text *text, unsigned long object, unsigned long address,
                                    const char *name, int depth);

/* What python_argstr() writes as <type>, and what it writes as a base of its type; whether it is known. */
static int python_put_value(struct python_text *text, unsigned long object, const struct python_type *type, int depth)
{
    unsigned long address = python_type_address(object, text->shift);
    char name[24];
    if (depth > PYTHON_DEPTH || !python_use_budget(text)) {
        python_puts(text, "...");
        return 1;
    }
    if (type->flags & PYTHON_EXCEPTION) {
        python_put_exception(text, object, address, type, depth);
        return 1;
    }
    if (type->flags & PYTHON_TYPE_OBJECT) {
        struct python_type class;
        if (!python_read_type_at(&class, object, text->shift))
            return 0;
        python_puts(text, "<class '");
        python_put_class(text, object, &class);
        python_puts(text, "'>");
        return 1;
    }
    if (type->flags & PYTHON_HEAP && python_put_instance(text, object, address, type, depth))
        return 1;
    if (type->flags & (PYTHON_UNICODE | PYTHON_LONG | PYTHON_BYTES | PYTHON_TUPLE | PYTHON_LIST))
        return 0;
    if (type->flags & PYTHON_DICT)
        return python_put_dict(text, object, depth);
    if (_stp_strncpy_from_user(name, (const char __user *)(unsigned long)type->name, sizeof name) <= 0)
        return 0;
    name[sizeof name - 1] = '\0';
    if (python_put_library_value(text, object, address, name, depth))
        return 1;
    if (type->flags & PYTHON_HEAP)
        return 0;
    if (!strcmp(name, "set") || !strcmp(name, "frozenset"))
        return python_put_set(text, object, !strcmp(name, "frozenset"), depth);
    if (!strcmp(name, "bytearray"))
        return python_put_bytearray(text, object);
    if (!strcmp(name, "complex"))
        return python_put_complex(text, object);
    if (!strcmp(name, "range"))
        return python_put_fields(text, object, "range", 1, depth);
    if (!strcmp(name, "slice"))
        return python_put_fields(text, object, "slice", 0, depth);
    if (!strcmp(name, "method"))
        return python_put_method(text, object, depth);
    if (!strcmp(name, "module"))
        return python_put_module_object(text, object);
    if (!strcmp(name, "function") && text->layout->func_qualname)
        python_put_named(text, "function", python_word(object + text->layout->func_qualname), object);
    else if (!strcmp(name, "ellipsis"))
        python_puts(text, "Ellipsis");
    else if (!strcmp(name, "NotImplementedType"))
        python_puts(text, "NotImplemented");
    else
        return 0;
    return 1;
}
