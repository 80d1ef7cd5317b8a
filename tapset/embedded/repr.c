/*
 * Writes objects as repr() does, those of the standard library included.  Without text->layout (python_argstr()) only str,
 * bytes, int, bool, float, None, tuples and lists are written, other objects as the name of their type.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

static void python_put_class(struct python_text *text, unsigned long address, const struct python_type *type);
static int python_put_value(struct python_text *text, unsigned long object, const struct python_type *type, int depth);

/* Writes the type's tp_name; last: only the part behind the last dot. */
static void python_put_type_name(struct python_text *text, const struct python_type *type, int last)
{
    char name[64];
    long length = _stp_strncpy_from_user(name, (const char __user *)(unsigned long)type->name,
                                         sizeof name);
    long i, start = 0;
    if (length <= 0)
        python_puts(text, "unknown");
    length = strnlen(name, clamp_t(long, length, 0, sizeof name));
    for (i = 0; last && i < length; i++)
        if (name[i] == '.')
            start = i + 1;
    for (i = start; i < length; i++)
        python_put_character(text, (unsigned char)name[i] < 0x80 ? name[i] : '?', 0);
}

static void python_put_type(struct python_text *text, unsigned long object, const struct python_type *type)
{
    python_puts(text, "<");
    if (text->layout)
        python_put_class(text, python_word(object + text->shift + offsetof(struct PyObject_head, ob_type)), type);
    else
        python_put_type_name(text, type, 0);
    python_puts(text, ">");
}

/* A tuple's items follow its head; behind a list's head is their address (Include/cpython/tupleobject.h,
 * listobject.h). */
static int python_put_items(struct python_text *text, unsigned long object,
                            struct python_type *type, int is_tuple, int depth)
{
    unsigned long items;
    u64 count, i;
    if (!python_find_base(type, is_tuple ? Py_TPFLAGS_TUPLE_SUBCLASS : Py_TPFLAGS_LIST_SUBCLASS) ||
        !python_read(&count, object + type->shift + offsetof(struct PyVarObject_head, ob_size), sizeof count))
        return 0;
    items = is_tuple ? object + type->basicsize : python_word(object + type->shift + sizeof(struct PyVarObject_head));
    python_puts(text, is_tuple ? "(" : "[");
    if (depth == PYTHON_DEPTH && count)
        python_puts(text, "...");
    else
        for (i = 0; i < count && !text->full; i++) {
            if (i)
                python_puts(text, ", ");
            if (i == PYTHON_ITEMS) {
                python_puts(text, "...");
                break;
            }
            python_put_object(text, python_word(items + sizeof(u64) * i), depth + 1);
        }
    if (is_tuple && count == 1)
        python_puts(text, ",");
    python_puts(text, is_tuple ? ")" : "]");
    return 1;
}

/* Writes what repr() returns; "<unknown>" for NULL, which a tuple has among its items while it is made. */
static void python_put_object(struct python_text *text, unsigned long object, int depth)
{
    struct python_type type;
    u64 flags;
    int known;
    if (!python_read_type(&type, object, text->shift)) {
        python_puts(text, "<unknown>");
        return;
    }
    flags = type.flags;
    if (text->layout && python_put_value(text, object, &type, depth))
        return;
    if (flags & Py_TPFLAGS_UNICODE_SUBCLASS)
        known = python_put_str(text, object, &type, '\'', PYTHON_CHARACTERS);
    else if (flags & Py_TPFLAGS_LONG_SUBCLASS)
        known = python_put_int(text, object, &type, python_type_is_bool(&type));
    else if (flags & Py_TPFLAGS_BYTES_SUBCLASS)
        known = python_put_bytes(text, object, &type, PYTHON_CHARACTERS);
    else if (flags & (Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS))
        known = python_put_items(text, object, &type, (flags & Py_TPFLAGS_TUPLE_SUBCLASS) != 0, depth);
    else if (python_type_is(&type, "NoneType")) {
        python_puts(text, "None");
        known = 1;
    } else
        known = python_type_is(&type, "float") && python_put_float(text, object);
    if (!known)
        python_put_type(text, object, &type);
}

/* ---------------------------------------------------------------- built-in types and instances of classes */

/* Writes module.Class, or Class of a built-in type. */
static void python_put_class(struct python_text *text, unsigned long address, const struct python_type *type)
{
    unsigned long module, name = text->layout->ht_qualname ? python_word(address + text->layout->ht_qualname) : 0;
    if (type->flags & Py_TPFLAGS_HEAPTYPE && name) {
        if (python_dict_item(text, python_word(address + text->shift + offsetof(struct PyTypeObject, tp_dict)), "__module__", 10, &module) == PYTHON_LOOKUP_OK &&
            !python_is_named(text, module, "builtins", 8)) {
            python_put_attribute(text, module);
            python_puts(text, ".");
        }
        python_put_attribute(text, name);
    } else
        python_put_type_name(text, type, 0);
}

/* Writes a class without its module: tp_name behind the last dot, or the qualified name of a heap type. */
static void python_put_class_name(struct python_text *text, unsigned long address, const struct python_type *type)
{
    if (type->flags & Py_TPFLAGS_HEAPTYPE && text->layout->ht_qualname)
        python_put_attribute(text, python_word(address + text->layout->ht_qualname));
    else
        python_put_type_name(text, type, 1);
}

/* Writes a comma before all items but the first; false: too many items, and dots are written. */
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
    for (i = 0; i <= (u64)set.mask && !text->full; i++) {
        if (!python_use_budget(text) || !python_read(entry, (unsigned long)set.table + i * sizeof entry, sizeof entry)) {
            python_puts(text, "<unknown>");
            break;
        }
        if (!entry[0] || entry[1] == ~0ULL) /* free or deleted: no key has the hash -1 */
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

static int python_put_bytearray(struct python_text *text, unsigned long object)
{
    struct PyByteArrayObject array;
    if (!python_read(&array, object + text->shift, sizeof array))
        return 0;
    python_puts(text, "bytearray(");
    python_put_raw_bytes(text, (unsigned long)array.ob_start, array.head.ob_size, PYTHON_CHARACTERS);
    python_puts(text, ")");
    return 1;
}

/* False unless the object is an int or a bool, of at most 63 bits and a sign. */
static int python_int_of(unsigned long object, s64 *value, unsigned shift)
{
    struct python_type type;
    u32 digits[3] = {0};
    u64 count, whole;
    int negative;
    if (!python_read_type(&type, object, shift) || !(type.flags & Py_TPFLAGS_LONG_SUBCLASS) || !python_int_head(object, &type, &count, &negative) ||
        count > 3 || !python_read(digits, object + shift + sizeof(struct PyVarObject_head), count * sizeof *digits))
        return 0;
    whole = (u64)digits[0] | (u64)digits[1] << PyLong_SHIFT | (u64)digits[2] << 2 * PyLong_SHIFT;
    if (digits[2] >= 8)
        return 0;
    *value = negative ? -(s64)whole : (s64)whole;
    return 1;
}

/* Writes the three objects behind the head of a range or slice, but not a range's step of 1. */
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

/* A complex is two doubles behind the head (Include/cpython/complexobject.h). */
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

/* Writes a tuple as the arguments of a call: (a), not (a,).  False: not a tuple. */
static int python_put_call(struct python_text *text, unsigned long tuple, int depth)
{
    struct python_type type;
    unsigned long items;
    u64 count;
    if (!python_read_type(&type, tuple, text->shift) || !(type.flags & Py_TPFLAGS_TUPLE_SUBCLASS) ||
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

/* Writes Name(args).  An exception has its dict and its args behind the head (Include/cpython/pyerrors.h). */
static void python_put_exception(struct python_text *text, unsigned long object, unsigned long address,
                                const struct python_type *type, int depth)
{
    python_put_class_name(text, address, type);
    if (!python_put_call(text, python_word(object + text->shift + sizeof(struct PyObject_head) + sizeof(u64)), depth + 1))
        python_puts(text, "(<unknown>)");
}

/* Writes a member of an enum: <Class.NAME: value>. */
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

/* Writes a namedtuple: Name(field=item, ...).  fields: _fields of its class. */
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

/* Copies a str with a NUL; returns its length in bytes; 0: not a str, or no room. */
static int python_copy_name(char *to, int room, unsigned long object, unsigned shift)
{
    struct python_text text = {.start = to, .at = to, .end = to + room - 1, .shift = shift};
    *to = '\0';
    if (!python_put_plain_str(&text, object, room))
        return 0;
    *text.at = '\0';
    return text.full ? 0 : text.at - to;
}

/* Writes a dataclass: Name(field=value, ...).  fields: __dataclass_fields__ of its class; those without a value in the
 * object are left out. */
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

/* Writes <KIND NAME at 0x7f...>. */
static void python_put_named(struct python_text *text, const char *kind, unsigned long name, unsigned long object)
{
    char buffer[32];
    python_puts(text, "<");
    python_puts(text, kind);
    python_puts(text, " ");
    python_put_attribute(text, name);
    python_put(text, buffer, scnprintf(buffer, sizeof buffer, " at 0x%lx>", object));
}

/* A method has its function and self behind the head (Include/cpython/classobject.h). */
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

/* A module has its dict behind the head (Objects/moduleobject.c). */
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

/* Writes an instance of a heap type: a member of an enum, a namedtuple or a dataclass; false: another class. */
static int python_put_instance(struct python_text *text, unsigned long object, unsigned long address,
                               const struct python_type *type, int depth)
{
    struct python_type meta;
    unsigned long fields;
    if (python_read_type(&meta, address, text->shift) && meta.flags & Py_TPFLAGS_HEAPTYPE) {
        char name[16] = "";
        if (python_read(name, meta.name, 9) && (strncmp(name, "EnumMeta", 9) == 0 || strncmp(name, "EnumType", 9) == 0) &&
            python_put_member(text, object, address, type, depth))
            return 1;
    }
    if (type->flags & Py_TPFLAGS_TUPLE_SUBCLASS)
        return python_class_attribute(text, address, "_fields", 7, &fields) == PYTHON_LOOKUP_OK &&
               python_put_named_tuple(text, object, address, type, fields, depth);
    return python_class_attribute(text, address, "__dataclass_fields__", 20, &fields) == PYTHON_LOOKUP_OK &&
           python_put_dataclass(text, object, address, type, fields, depth);
}

static int python_put_library_value(struct python_text *text, unsigned long object, unsigned long address,
                                    const char *name, int depth);

/* Writes objects that need text->layout.  False: python_put_object() writes the object by its built-in base, or as
 * <type>. */
static int python_put_value(struct python_text *text, unsigned long object, const struct python_type *type, int depth)
{
    unsigned long address = python_type_address(object, text->shift);
    char name[24];
    if (depth > PYTHON_DEPTH || !python_use_budget(text)) {
        python_puts(text, "...");
        return 1;
    }
    if (type->flags & Py_TPFLAGS_BASE_EXC_SUBCLASS) {
        python_put_exception(text, object, address, type, depth);
        return 1;
    }
    if (type->flags & Py_TPFLAGS_TYPE_SUBCLASS) {
        struct python_type class;
        if (!python_read_type_at(&class, object, text->shift))
            return 0;
        python_puts(text, "<class '");
        python_put_class(text, object, &class);
        python_puts(text, "'>");
        return 1;
    }
    if (type->flags & Py_TPFLAGS_HEAPTYPE && python_put_instance(text, object, address, type, depth))
        return 1;
    if (type->flags & (Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS))
        return 0;
    if (type->flags & Py_TPFLAGS_DICT_SUBCLASS)
        return python_put_dict(text, object, depth);
    if (_stp_strncpy_from_user(name, (const char __user *)(unsigned long)type->name, sizeof name) <= 0)
        return 0;
    name[sizeof name - 1] = '\0';
    if (python_put_library_value(text, object, address, name, depth))
        return 1;
    if (type->flags & Py_TPFLAGS_HEAPTYPE)
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

/* ---------------------------------------------------------------- the standard library's classes */

static void python_put_numbers(struct python_text *text, const u32 *numbers, int count)
{
    int i;
    for (i = 0; i < count; i++) {
        if (i)
            python_puts(text, ", ");
        python_put_number(text, 0, numbers[i]);
    }
}

static u32 python_big_endian(const u8 *bytes, int count)
{
    u32 value = 0;
    while (count-- > 0)
        value = value << 8 | *bytes++;
    return value;
}

static int python_put_datetime(struct python_text *text, unsigned long object, const char *name, int has_date, int has_time,
                               int depth)
{
    struct PyDateTime_DateTime datetime;
    const u8 *at = datetime.data;
    u32 number[7];
    int count = 0;
    object += text->shift;
    if (!python_read(&datetime, object, sizeof datetime))
        return 0;
    if (has_date) {
        number[count++] = python_big_endian(at, 2);
        number[count++] = at[2];
        number[count++] = at[3];
        at += 4;
    }
    if (has_time) {
        u32 microsecond = python_big_endian(at + 3, 3);
        number[count++] = at[0];
        number[count++] = at[1];
        if (at[2] || microsecond)
            number[count++] = at[2];
        if (microsecond)
            number[count++] = microsecond;
        at += 6;
    }
    python_puts(text, name);
    python_puts(text, "(");
    python_put_numbers(text, number, count);
    if (has_date && has_time && *at) /* repr() of a time has fold behind tzinfo */
        python_puts(text, ", fold=1");
    if (has_time && datetime.hastzinfo) {
        python_puts(text, ", tzinfo=");
        python_put_object(text, python_word(object + (has_date ? offsetof(struct PyDateTime_DateTime, tzinfo) : offsetof(struct PyDateTime_Time, tzinfo))), depth + 1);
    }
    if (!has_date && *at)
        python_puts(text, ", fold=1");
    python_puts(text, ")");
    return 1;
}

/* Writes the parts that are not 0, with their names; in 3.6 all parts up to the last that is not 0, without names. */
static int python_put_timedelta(struct python_text *text, unsigned long object)
{
    static const char *const names[] = {"days=", "seconds=", "microseconds="};
    int old = python_minor(text->layout) == TIMEDELTA_NAMES_FIRST_MINOR - 1, most = 3, count = 0, i;
    int part[3];
    if (!python_read(part, object + text->shift + offsetof(struct PyDateTime_Delta, days), sizeof part))
        return 0;
    while (old && most > 1 && !part[most - 1])
        most--;
    python_puts(text, "datetime.timedelta(");
    for (i = 0; i < most; i++) {
        if (!old && !part[i])
            continue;
        if (count++)
            python_puts(text, ", ");
        if (!old)
            python_puts(text, names[i]);
        python_put_number(text, part[i] < 0, abs(part[i]));
    }
    python_puts(text, count ? ")" : "0)");
    return 1;
}

/* timezone.utc is the only timezone without an offset and a name. */
static int python_put_timezone(struct python_text *text, unsigned long object, int depth)
{
    u64 part[2];
    int offset[3];
    if (!python_read(part, object + text->shift + offsetof(struct PyDateTime_TimeZone, offset), sizeof part) ||
        !python_read(offset, part[0] + text->shift + offsetof(struct PyDateTime_Delta, days), sizeof offset))
        return 0;
    if (!part[1] && !offset[0] && !offset[1] && !offset[2]) {
        python_puts(text, "datetime.timezone.utc");
        return 1;
    }
    python_puts(text, "datetime.timezone(");
    python_put_object(text, part[0], depth + 1);
    if (part[1]) {
        python_puts(text, ", ");
        python_put_object(text, part[1], depth + 1);
    }
    python_puts(text, ")");
    return 1;
}

enum { PYTHON_DECIMAL_WORDS = 4 }; /* of 19 digits; a Decimal with more is written as its type */

/* Writes the digits of the coefficient without leading zeros; returns how many; -1: unreadable, or too many. */
static int python_decimal_digits(char *digits, const struct PyDecObject *decimal)
{
    u64 word[PYTHON_DECIMAL_WORDS];
    int count = 0, i, j;
    if (decimal->len < 0 || decimal->len > PYTHON_DECIMAL_WORDS ||
        !python_read(word, (unsigned long)decimal->data, decimal->len * sizeof *word))
        return -1;
    for (i = decimal->len - 1; i >= 0; i--) {
        char part[MPD_RDIGITS];
        for (j = MPD_RDIGITS - 1; j >= 0; j--) {
            part[j] = '0' + word[i] % 10;
            word[i] /= 10;
        }
        for (j = 0; j < MPD_RDIGITS; j++)
            if (count || part[j] != '0' || (i == 0 && j == MPD_RDIGITS - 1))
                digits[count++] = part[j];
    }
    return count;
}

/* Writes str() of a Decimal: "to-scientific-string" of the General Decimal Arithmetic Specification. */
static void python_put_scientific(struct python_text *text, const char *digits, int count, s64 exponent)
{
    s64 adjusted = exponent + count - 1, whole;
    if (exponent <= 0 && adjusted >= -6) {
        whole = max_t(s64, count + exponent, 0);
        if (whole)
            python_put(text, digits, whole);
        else
            python_puts(text, "0");
        if (!exponent)
            return;
        python_puts(text, ".");
        for (; count + exponent < 0; exponent++)
            python_puts(text, "0");
        python_put(text, digits + whole, count - whole);
        return;
    }
    python_put(text, digits, 1);
    if (count > 1) {
        python_puts(text, ".");
        python_put(text, digits + 1, count - 1);
    }
    python_puts(text, adjusted < 0 ? "E" : "E+");
    python_put_number(text, adjusted < 0, adjusted < 0 ? -adjusted : adjusted);
}

static int python_put_decimal(struct python_text *text, unsigned long object)
{
    char digits[PYTHON_DECIMAL_WORDS * MPD_RDIGITS];
    struct PyDecObject decimal;
    int count, flags;
    if (!python_read(&decimal, object + text->shift, sizeof decimal))
        return 0;
    flags = decimal.flags;
    count = python_decimal_digits(digits, &decimal);
    if (count < 0 || (!count && !(flags & ~MPD_NEG & 15)))
        return 0;
    python_puts(text, flags & MPD_NEG ? "Decimal('-" : "Decimal('");
    if (flags & MPD_INF)
        python_puts(text, "Infinity");
    else if (flags & (MPD_NAN | MPD_SNAN)) {
        python_puts(text, flags & MPD_SNAN ? "sNaN" : "NaN");
        python_put(text, digits, count);
    } else
        python_put_scientific(text, digits, count, decimal.exp);
    python_puts(text, "')");
    return 1;
}

/* Writes UUID('8-4-4-4-12 digits'), by its attribute int. */
static int python_put_uuid(struct python_text *text, unsigned long object, unsigned long address)
{
    unsigned long module, number;
    struct python_type type;
    u32 digits[5] = {0};
    u64 count;
    int negative, i;
    if (python_class_attribute(text, address, "__module__", 10, &module) != PYTHON_LOOKUP_OK || !python_is_named(text, module, "uuid", 4) ||
        python_attribute(text, object, "int", 3, &number) != PYTHON_LOOKUP_OK || !python_read_type(&type, number, text->shift) ||
        !(type.flags & Py_TPFLAGS_LONG_SUBCLASS) || !python_int_head(number, &type, &count, &negative) || negative || count > 5 ||
        !python_read(digits, number + text->shift + sizeof(struct PyVarObject_head), count * sizeof *digits))
        return 0;
    python_puts(text, "UUID('");
    for (i = 31; i >= 0; i--) {
        int bit = 4 * i, at = bit / PyLong_SHIFT, shift = bit % PyLong_SHIFT;
        u64 two = digits[at] | (at < 4 ? (u64)digits[at + 1] << PyLong_SHIFT : 0);
        python_put(text, &"0123456789abcdef"[two >> shift & 15], 1);
        if (i == 24 || i == 20 || i == 16 || i == 12)
            python_puts(text, "-");
    }
    python_puts(text, "')");
    return 1;
}

static int python_is_str(unsigned long object, unsigned shift)
{
    struct python_type type;
    return python_read_type(&type, object, shift) && type.flags & Py_TPFLAGS_UNICODE_SUBCLASS;
}

/* The qualified name of a generator, a coroutine or an asynchronous generator; 0: not found.  The name and the qualified
 * name are among the first words, at an offset that differs in most versions (Include/cpython/genobject.h). */
static unsigned long python_generator_name(unsigned long object, unsigned shift)
{
    unsigned long at = object + shift + sizeof(struct PyObject_head), end = at + 5 * sizeof(u64);
    while (at < end && !(python_is_str(python_word(at), shift) && python_is_str(python_word(at + sizeof(u64)), shift)))
        at += sizeof(u64);
    return at == end ? 0 : python_word(at + sizeof(u64));
}

static int python_put_generator(struct python_text *text, unsigned long object, const char *kind)
{
    unsigned long name = python_generator_name(object, text->shift);
    if (!name)
        return 0;
    python_put_named(text, kind, name, object);
    return 1;
}

/* name: tp_name of the type, be it static or a heap type.  False: another type. */
static int python_put_library_value(struct python_text *text, unsigned long object, unsigned long address,
                                    const char *name, int depth)
{
    if (!strcmp(name, "datetime.datetime"))
        return python_put_datetime(text, object, "datetime.datetime", 1, 1, depth);
    if (!strcmp(name, "datetime.date"))
        return python_put_datetime(text, object, "datetime.date", 1, 0, depth);
    if (!strcmp(name, "datetime.time"))
        return python_put_datetime(text, object, "datetime.time", 0, 1, depth);
    if (!strcmp(name, "datetime.timedelta"))
        return python_put_timedelta(text, object);
    if (!strcmp(name, "datetime.timezone"))
        return python_put_timezone(text, object, depth);
    if (!strcmp(name, "decimal.Decimal"))
        return python_put_decimal(text, object);
    if (!strcmp(name, "UUID"))
        return python_put_uuid(text, object, address);
    if (!strcmp(name, "generator"))
        return python_put_generator(text, object, "generator object");
    if (!strcmp(name, "coroutine"))
        return python_put_generator(text, object, "coroutine object");
    return !strcmp(name, "async_generator") && python_put_generator(text, object, "async_generator object");
}
