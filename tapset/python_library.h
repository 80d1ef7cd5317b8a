/*
 * Objects of the standard library's classes as text, which modules in C have, or whose attributes tell all.  A part of
 * python_objects.stp.in, which includes it behind python_values.h.
 *
 * SPDX-License-Identifier: MIT
 */

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

/* Include/datetime.h: behind the hash whether there is a zone, year, month, day, hour, minute, second, microsecond, fold,
 * and the zone, as far as the type has them. */
struct PyDateTime_DateTime {
    struct PyObject_head object;
    u64 hash;
    u8 has_zone, bytes[15];
};

static int python_put_datetime(struct python_text *text, unsigned long object, const char *name, int has_date, int has_time,
                               int depth)
{
    struct PyDateTime_DateTime datetime;
    const u8 *at = datetime.bytes;
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
    if (has_date && has_time && *at) /* in a time it is behind the zone */
        python_puts(text, ", fold=1");
    if (has_time && datetime.has_zone) {
        python_puts(text, ", tzinfo=");
        python_put_object(text, python_word(object + (has_date ? 40 : 32)), depth + 1);
    }
    if (!has_date && *at)
        python_puts(text, ", fold=1");
    python_puts(text, ")");
    return 1;
}

/* Include/datetime.h, PyDateTime_Delta: days, seconds and microseconds behind the hash. */
enum { PYTHON_TIMEDELTA = sizeof(struct PyObject_head) + sizeof(s64) };

/* From 3.7 on with their names, those that are not 0. */
static int python_put_timedelta(struct python_text *text, unsigned long object)
{
    static const char *const names[] = {"days=", "seconds=", "microseconds="};
    int old = strncmp(text->layout->version, "3.6.", 4) == 0, most = 3, count = 0, i;
    int part[3];
    if (!python_read(part, object + text->shift + PYTHON_TIMEDELTA, sizeof part))
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

/* Modules/_datetimemodule.c, PyDateTime_TimeZone: a timedelta, and a name or NULL; only UTC has no offset and no name. */
static int python_put_timezone(struct python_text *text, unsigned long object, int depth)
{
    u64 part[2];
    int offset[3];
    if (!python_read(part, object + text->shift + sizeof(struct PyObject_head), sizeof part) ||
        !python_read(offset, part[0] + text->shift + PYTHON_TIMEDELTA, sizeof offset))
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

/* Modules/_decimal: behind the hash libmpdec's mpd_t, whose words have 19 digits each, the lowest first. */
struct PyDecObject {
    struct PyObject_head object;
    u64 hash;
    u8 flags, padding[7];
    s64 exponent, digits, length, allocated;
    u64 data;
};
enum {
    PYTHON_DECIMAL_NEGATIVE = 1,
    PYTHON_DECIMAL_INFINITE = 2,
    PYTHON_DECIMAL_NAN = 4,
    PYTHON_DECIMAL_SIGNALS = 8,
    PYTHON_DECIMAL_WORDS = 4, /* a longer one is not written out */
    PYTHON_DECIMAL_WORD = 19,
};

/* The digits of its coefficient, without leading zeros; how many, -1 if it can't be read. */
static int python_decimal_digits(char *digits, const struct PyDecObject *decimal)
{
    u64 word[PYTHON_DECIMAL_WORDS];
    int count = 0, i, j;
    if (decimal->length < 0 || decimal->length > PYTHON_DECIMAL_WORDS ||
        !python_read(word, decimal->data, decimal->length * sizeof *word))
        return -1;
    for (i = decimal->length - 1; i >= 0; i--) {
        char part[PYTHON_DECIMAL_WORD];
        for (j = PYTHON_DECIMAL_WORD - 1; j >= 0; j--) {
            part[j] = '0' + word[i] % 10;
            word[i] /= 10;
        }
        for (j = 0; j < PYTHON_DECIMAL_WORD; j++)
            if (count || part[j] != '0' || (i == 0 && j == PYTHON_DECIMAL_WORD - 1))
                digits[count++] = part[j];
    }
    return count;
}

/* "to-scientific-string" of the General Decimal Arithmetic, which is str() of a Decimal. */
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
    char digits[PYTHON_DECIMAL_WORDS * PYTHON_DECIMAL_WORD];
    struct PyDecObject decimal;
    int count, flags;
    if (!python_read(&decimal, object + text->shift, sizeof decimal))
        return 0;
    flags = decimal.flags;
    count = python_decimal_digits(digits, &decimal);
    if (count < 0 || (!count && !(flags & ~PYTHON_DECIMAL_NEGATIVE & 15)))
        return 0;
    python_puts(text, flags & PYTHON_DECIMAL_NEGATIVE ? "Decimal('-" : "Decimal('");
    if (flags & PYTHON_DECIMAL_INFINITE)
        python_puts(text, "Infinity");
    else if (flags & (PYTHON_DECIMAL_NAN | PYTHON_DECIMAL_SIGNALS)) {
        python_puts(text, flags & PYTHON_DECIMAL_SIGNALS ? "sNaN" : "NaN");
        python_put(text, digits, count);
    } else
        python_put_scientific(text, digits, count, decimal.exponent);
    python_puts(text, "')");
    return 1;
}

/* UUID('8-4-4-4-12 digits'), of its attribute int. */
static int python_put_uuid(struct python_text *text, unsigned long object, unsigned long address)
{
    unsigned long module, number;
    struct python_type type;
    u32 digits[5] = {0};
    u64 count;
    int negative, i;
    if (python_class_attribute(text, address, "__module__", 10, &module) != PYTHON_LOOKUP_OK || !python_is_named(text, module, "uuid", 4) ||
        python_attribute(text, object, "int", 3, &number) != PYTHON_LOOKUP_OK || !python_read_type(&type, number, text->shift) ||
        !(type.flags & PYTHON_LONG) || !python_int_head(number, &type, &count, &negative) || negative || count > 5 ||
        !python_read(digits, number + text->shift + sizeof(struct PyVarObject_head), count * sizeof *digits))
        return 0;
    python_puts(text, "UUID('");
    for (i = 31; i >= 0; i--) {
        int bit = 4 * i, at = bit / PYTHON_INT_DIGIT, shift = bit % PYTHON_INT_DIGIT;
        u64 two = digits[at] | (at < 4 ? (u64)digits[at + 1] << PYTHON_INT_DIGIT : 0);
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
    return python_read_type(&type, object, shift) && type.flags & PYTHON_UNICODE;
}

/* The qualified name of a generator, a coroutine or the like; 0: it is none.  Include/cpython/genobject.h: among the
 * first words, in another place in most versions, are the name and the qualified name. */
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

/* Whether it is known; name: the type's in C, whichever way its module has made it. */
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
