/*
 * Floats as text, and objects of any of the kinds before.  A part of python_objects.stp.in, which
 * includes it behind python_objects.h.
 *
 * SPDX-License-Identifier: MIT
 */

/* ---- floats: the fewest digits that no other double is nearer to (Steele and White, 1990), in whole numbers,
 * as the kernel has no others */

enum { PYTHON_LIMBS = 38, PYTHON_DIGITS = 17 };
struct python_bigint {
    u32 limb[PYTHON_LIMBS]; /* the lowest first */
    int used;
};

static void python_bigint_set(struct python_bigint *whole, u64 value, int shift)
{
    int i, limb = shift / 32;
    memset(whole, 0, sizeof *whole);
    for (i = 0; i < 3 && limb + i < PYTHON_LIMBS; i++)
        whole->limb[limb + i] = i == 0 ? (u32)(value << shift % 32) :
                                i == 1 ? (u32)(value >> (32 - shift % 32)) :
                                shift % 32 ? (u32)(value >> 32 >> (32 - shift % 32)) : 0;
    whole->used = min(limb + 3, (int)PYTHON_LIMBS);
}

static void python_multiply(struct python_bigint *whole, u32 by)
{
    u64 carry = 0;
    int i;
    for (i = 0; i < whole->used; i++) {
        carry += (u64)whole->limb[i] * by;
        whole->limb[i] = (u32)carry;
        carry >>= 32;
    }
    if (carry && whole->used < PYTHON_LIMBS)
        whole->limb[whole->used++] = (u32)carry;
}

/* Of a + b against c, b may be NULL: negative, 0 or positive. */
static int python_bigint_compare(const struct python_bigint *a, const struct python_bigint *b, const struct python_bigint *c)
{
    u64 carry = 0;
    s64 borrow = 0;
    int i, differs = 0, most = max(max(a->used, c->used), b ? b->used : 0);
    for (i = 0; i < most; i++) {
        s64 difference;
        carry += (u64)a->limb[i] + (b ? b->limb[i] : 0);
        difference = (s64)(u32)carry - c->limb[i] - borrow;
        carry >>= 32;
        borrow = difference < 0;
        differs |= (u32)difference != 0;
    }
    if ((u64)borrow > carry)
        return -1;
    return carry > (u64)borrow || differs;
}

static void python_subtract(struct python_bigint *from, const struct python_bigint *whole)
{
    s64 borrow = 0;
    int i;
    for (i = 0; i < max(from->used, whole->used); i++) {
        s64 difference = (s64)from->limb[i] - whole->limb[i] - borrow;
        from->limb[i] = (u32)difference;
        borrow = difference < 0;
    }
    from->used = max(from->used, whole->used);
}

/* The digits of mantissa * 2**exponent, which is 0.DIGITS * 10**point; how many there are. */
static int python_shortest(char *digits, int *point, u64 mantissa, int exponent)
{
    struct python_bigint rest, unit, low, high; /* the distance to the doubles below and above */
    int at_power = mantissa == 1ULL << 52 && exponent > -1074; /* the one below is half as far */
    int even = !(mantissa & 1), count = 0, scale, digit, is_low, is_high;
    python_bigint_set(&rest, mantissa, max(exponent, 0) + 1 + at_power);
    python_bigint_set(&unit, 1, max(-exponent, 0) + 1 + at_power);
    python_bigint_set(&low, 1, max(exponent, 0));
    python_bigint_set(&high, 1, max(exponent, 0) + at_power);
    /* at most one too small */
    scale = (exponent + fls64(mantissa) - 1) * 1233 / 4096 - (exponent + fls64(mantissa) - 1 < 0);
    *point = scale;
    for (; scale > 0; scale--)
        python_multiply(&unit, 10);
    for (; scale < 0; scale++) {
        python_multiply(&rest, 10);
        python_multiply(&low, 10);
        python_multiply(&high, 10);
    }
    while (python_bigint_compare(&rest, &high, &unit) >= !even) {
        python_multiply(&unit, 10);
        ++*point;
    }
    do {
        python_multiply(&rest, 10);
        python_multiply(&low, 10);
        python_multiply(&high, 10);
        for (digit = 0; digit < 9 && python_bigint_compare(&rest, NULL, &unit) >= 0; digit++)
            python_subtract(&rest, &unit);
        is_low = python_bigint_compare(&rest, NULL, &low) < even;
        is_high = python_bigint_compare(&rest, &high, &unit) >= !even;
        if (is_high && (!is_low || python_bigint_compare(&rest, &rest, &unit) >= !(digit & 1)))
            digit++;
        digits[count++] = '0' + digit;
    } while (!is_low && !is_high && count < PYTHON_DIGITS);
    return count;
}

/* As repr() has a double; dot: with ".0" behind a whole number. */
static void python_put_double(struct python_text *text, u64 bits, int dot)
{
    char digits[PYTHON_DIGITS + 1], buffer[48], *to = buffer;
    u64 mantissa = bits & ((1ULL << 52) - 1);
    int exponent = bits >> 52 & 0x7ff, point, count, i;
    if (exponent == 0x7ff) {
        python_puts(text, mantissa ? "nan" : bits >> 63 ? "-inf" : "inf");
        return;
    }
    if (bits >> 63)
        *to++ = '-';
    if (exponent == 0 && mantissa == 0) {
        *to++ = '0';
        count = point = 1; /* with its dot */
    } else {
        count = python_shortest(digits, &point, exponent ? mantissa | 1ULL << 52 : mantissa, exponent ? exponent - 1075 : -1074);
        if (point > 16 || point < -3) {
            *to++ = digits[0];
            if (count > 1)
                *to++ = '.';
            memcpy(to, digits + 1, count - 1);
            to += count - 1;
            point--;
            to += scnprintf(to, 8, "e%c%02d", point < 0 ? '-' : '+', point < 0 ? -point : point);
            dot = 0;
        } else {
            if (point <= 0)
                *to++ = '0', *to++ = '.';
            for (i = point; i < 0; i++)
                *to++ = '0';
            for (i = 0; i < max(count, point); i++) {
                if (i == point && i)
                    *to++ = '.';
                *to++ = i < count ? digits[i] : '0';
            }
        }
    }
    if (dot && count <= point)
        *to++ = '.', *to++ = '0';
    python_put(text, buffer, to - buffer);
}

/* Include/cpython/floatobject.h: a double after the head. */
static int python_put_float(struct python_text *text, unsigned long object)
{
    u64 bits;
    if (!python_read(&bits, object + text->shift + sizeof(struct PyObject_head), sizeof bits))
        return 0;
    python_put_double(text, bits, 1);
    return 1;
}

static void python_put_class(struct python_text *text, unsigned long address, const struct python_type *type);
static int python_put_value(struct python_text *text, unsigned long object, const struct python_type *type, int depth);

/* The name in C of a type; of its parts between dots all, or the last. */
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
        python_put_class(text, python_word(object + text->shift + offsetof(struct PyObject_head, type)), type);
    else
        python_put_type_name(text, type, 0);
    python_puts(text, ">");
}

enum { PYTHON_DEPTH = 4, PYTHON_ITEMS = 16, PYTHON_CHARACTERS = 256 };

static void python_put_object(struct python_text *text, unsigned long object, int depth);

/* Include/cpython/tupleobject.h, listobject.h: the items follow the head, or are where its next word points. */
static int python_put_items(struct python_text *text, unsigned long object,
                            struct python_type *type, int is_tuple, int depth)
{
    unsigned long items;
    u64 count, i;
    if (!python_find_base(type, is_tuple ? PYTHON_TUPLE : PYTHON_LIST) ||
        !python_read(&count, object + type->shift + offsetof(struct PyVarObject_head, size), sizeof count))
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

/* What repr() returns of an object; "<unknown>" for NULL, which a tuple has among its items while it is made. */
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
    if (flags & PYTHON_UNICODE)
        known = python_put_str(text, object, &type, '\'', PYTHON_CHARACTERS);
    else if (flags & PYTHON_LONG)
        known = python_put_int(text, object, &type, python_type_is_bool(&type));
    else if (flags & PYTHON_BYTES)
        known = python_put_bytes(text, object, &type, PYTHON_CHARACTERS);
    else if (flags & (PYTHON_TUPLE | PYTHON_LIST))
        known = python_put_items(text, object, &type, (flags & PYTHON_TUPLE) != 0, depth);
    else if (python_type_is(&type, "NoneType")) {
        python_puts(text, "None");
        known = 1;
    } else
        known = python_type_is(&type, "float") && python_put_float(text, object);
    if (!known)
        python_put_type(text, object, &type);
}
