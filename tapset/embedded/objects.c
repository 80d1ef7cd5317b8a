/*
 * Writes str, bytes, int and float objects as repr() does.  The functions return false if the object can't be read.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* ---------------------------------------------------------------- str and bytes */

/* The state of a str in a free-threaded build, converted to that of other builds. */
static u32 python_str_state(u32 state)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return state << UNICODE_NOGIL_SHIFT;
#else
    return state >> UNICODE_NOGIL_SHIFT;
#endif
}

/* Finds the characters of a str: *count of them, *kind bytes each.  False: unreadable, or *type is not str itself. */
static int python_find_characters(struct python_bytes *bytes, u64 *count, unsigned *kind,
                                  unsigned long object, const struct python_type *type)
{
    static const unsigned offsets[] = {offsetof(struct PyASCIIObject, length), offsetof(struct PyASCIIObject, state)};
    u64 words[2], size = type->basicsize - type->shift;
    int old = size == sizeof(struct PyUnicodeObject_36);
    u32 state;
    object += type->shift;
    if ((!old && size != sizeof(struct PyUnicodeObject_312)) || !python_read_words(words, offsets, 2, object, NULL, 0))
        return 0;
    state = python_low_u32(words[1]);
    if (type->shift)
        state = python_str_state(state);
    if (old && !(state & UNICODE_READY))
        return 0;
    *kind = state >> UNICODE_KIND_SHIFT & UNICODE_KIND_MASK;
    if (*kind != 1 && *kind != 2 && *kind != 4)
        return 0;
    if (!(state & UNICODE_COMPACT)) /* an object of a derived type */
        bytes->at = python_word(object + (old ? offsetof(struct PyUnicodeObject_36, data) :
                                                offsetof(struct PyUnicodeObject_312, data)));
    else if (state & UNICODE_ASCII)
        bytes->at = object + (old ? sizeof(struct PyASCIIObject_36) : sizeof(struct PyASCIIObject));
    else
        bytes->at = object + (old ? sizeof(struct PyCompactUnicodeObject_36) : sizeof(struct PyCompactUnicodeObject_312));
    *count = words[0];
    bytes->end = bytes->at + *count * *kind;
    return 1;
}

/* The next character of a str.  kind: the bytes of each.  -1: it can't be read. */
static s64 python_next_character(struct python_bytes *bytes, unsigned kind)
{
    u32 character = 0;
    unsigned at;
    for (at = 0; at < kind; at++) {
        int byte = python_byte(bytes);
        if (byte < 0)
            return -1;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        character = character << 8 | (u32)byte;
#else
        character |= (u32)byte << (8 * at);
#endif
    }
    return character;
}

/* The quote that repr() uses: " if the first characters have a ' and no ", else '. */
static char python_quote(struct python_bytes bytes, u64 count, unsigned kind)
{
    char quote = '\'';
    u64 i;
    for (i = 0; i < count; i++) {
        s64 character = python_next_character(&bytes, kind);
        if (character == '"')
            return '\'';
        if (character == '\'')
            quote = '"';
    }
    return quote;
}

/* The highest bits of those bytes of a word that are no printable ASCII character, or are the quote or a backslash: exact
 * up to the lowest of them. */
static __always_inline u64 python_not_plain(u64 word, char quote)
{
    const u64 ones = ~0ULL / 255;
    u64 delete = word ^ 0x7f * ones, backslash = word ^ '\\' * ones, quoted = word ^ quote * ones;
    return (word | ((word - ' ' * ones) & ~word) | ((delete - ones) & ~delete) | ((backslash - ones) & ~backslash) |
            ((quoted - ones) & ~quoted)) & ones << 7;
}

/* Writes characters of one byte, eight at a time, until some are not plain, can't be read or have no room.  Returns their
 * number. */
static unsigned python_put_plain(struct python_text *text, struct python_bytes *bytes, unsigned count, char quote)
{
    static const unsigned offsets[] = {0, 8, 16, 24, 32, 40, 48, 56};
    u64 words[ARRAY_SIZE(offsets)];
    unsigned done, size;
    for (done = 0; done < count && text->end - text->at >= 8; done += size) {
        unsigned at = done / 8 % ARRAY_SIZE(offsets);
        if (!at && !python_read_words(words, offsets, min_t(unsigned, DIV_ROUND_UP(count - done, 8), ARRAY_SIZE(offsets)), bytes->at, NULL, 0))
            break;
        size = min(count - done, 8U);
        words[at] = (words[at] & python_first_bytes(size)) | (~0ULL / 255 * ' ' & ~python_first_bytes(size));
        if (python_not_plain(words[at], quote))
            break;
        memcpy(text->at, &words[at], 8);
        text->at += size;
        bytes->at += size;
    }
    return done;
}

/* Writes at most so many characters, then dots.  quote: not 0 to quote the text as repr() does.  base: the type is str. */
static int python_put_characters(struct python_text *text, unsigned long object, const struct python_type *base, char quote,
                                 unsigned most)
{
    struct python_bytes bytes = {0};
    const char *end = text->print == PYTHON_PRINT_JSON ? text->start : text->end; /* where characters are written as they are */
    unsigned kind, i;
    u64 count;
    if (!python_find_characters(&bytes, &count, &kind, object, base))
        return 0;
    if (quote) {
        quote = python_quote(bytes, min_t(u64, count, most), kind);
        python_put(text, &quote, 1);
    }
    i = kind == 1 && !text->full && end == text->end ? python_put_plain(text, &bytes, min_t(u64, count, most), quote) : 0;
    for (; i < count; i++) {
        s64 character = i == most ? -1 : python_next_character(&bytes, kind);
        if (character < 0) {
            python_puts(text, i == most ? "..." : "<unknown>");
            break;
        }
        if (character >= ' ' && character <= '~' && character != '\\' && character != quote && text->at < end && !text->full)
            *text->at++ = character;
        else
            python_put_character(text, character, quote);
    }
    if (quote)
        python_put(text, &quote, 1);
    return 1;
}

static int python_put_str(struct python_text *text, unsigned long object, struct python_type *type, char quote, unsigned most)
{
    return python_find_base(type, Py_TPFLAGS_UNICODE_SUBCLASS) && python_put_characters(text, object, type, quote, most);
}

/* Makes text->str_base the built-in base of the type at the address; false: no type of a str. */
static int python_find_str_base(struct python_text *text, unsigned long address)
{
    struct python_type type;
    if (address && address == text->str_type)
        return 1;
    if (!python_read_type_at(&type, address, text->shift) || !(type.flags & Py_TPFLAGS_UNICODE_SUBCLASS) ||
        !python_find_base(&type, Py_TPFLAGS_UNICODE_SUBCLASS))
        return 0;
    text->str_type = address;
    text->str_base = type;
    return 1;
}

/* The same as python_put_str(), without quotes, for any object: false if it is no str. */
static int python_put_plain_str(struct python_text *text, unsigned long object, unsigned most)
{
    return python_find_str_base(text, python_type_address(object, text->shift)) &&
           python_put_characters(text, object, &text->str_base, 0, most);
}

/* Writes b'...'.  most: how many of the bytes are written before dots. */
static void python_put_raw_bytes(struct python_text *text, unsigned long at, u64 length, unsigned most)
{
    struct python_bytes bytes = {.at = at, .end = at + length};
    char quote = python_quote(bytes, min_t(u64, length, most), 1);
    unsigned i;
    python_puts(text, "b");
    python_put(text, &quote, 1);
    for (i = 0; i < length; i++) {
        char escaped[8];
        int byte = i == most ? -1 : python_byte(&bytes);
        if (byte < 0) {
            python_puts(text, i == most ? "..." : "<unknown>");
            break;
        }
        if (byte < 0x80)
            python_put_character(text, byte, quote);
        else
            python_put(text, escaped, scnprintf(escaped, sizeof escaped, "\\x%02x", byte));
    }
    python_put(text, &quote, 1);
}

static int python_put_bytes(struct python_text *text, unsigned long object,
                            struct python_type *type, unsigned most)
{
    u64 length;
    if (!python_find_base(type, Py_TPFLAGS_BYTES_SUBCLASS) ||
        !python_read(&length, object + type->shift + offsetof(struct PyVarObject_head, ob_size), sizeof length))
        return 0;
    /* the type's size counts the NUL at the end */
    python_put_raw_bytes(text, object + type->basicsize - 1, length, most);
    return 1;
}

/* ---------------------------------------------------------------- int */

/* Writes digits of 30 bits in decimal: divides by 10**9 repeatedly, which gives the lowest part first. */
static void python_put_bigint(struct python_text *text, int negative, u32 *digits, int count)
{
    char buffer[PYTHON_INT_MOST * 10], *at = buffer + sizeof buffer;
    int i, part;
    while (count && !digits[count - 1])
        count--;
    do {
        u64 rest = 0;
        for (i = count - 1; i >= 0; i--) {
            rest = rest << PyLong_SHIFT | digits[i];
            digits[i] = (u32)(rest / 1000000000);
            rest %= 1000000000;
        }
        while (count && !digits[count - 1])
            count--;
        for (part = 0; part < 9 && (count || rest || part == 0); part++) {
            *--at = '0' + rest % 10;
            rest /= 10;
        }
    } while (count);
    if (negative)
        *--at = '-';
    python_put(text, at, buffer + sizeof buffer - at);
}

/* Reads the sign of an int and the number of its digits, which follow struct PyVarObject_head; false: not an int. */
static int python_int_head(unsigned long object, struct python_type *type, u64 *count, int *negative)
{
    s64 size;
    if (!python_find_base(type, Py_TPFLAGS_LONG_SUBCLASS) || type->itemsize != sizeof(u32) ||
        !python_read(&size, object + type->shift + offsetof(struct PyVarObject_head, ob_size), sizeof size))
        return 0;
    if (type->flags & Py_TPFLAGS_STATIC_BUILTIN) {
        *negative = (size & SIGN_MASK) == SIGN_NEGATIVE;
        *count = (u64)size >> NON_SIZE_BITS;
    } else {
        *negative = size < 0;
        *count = *negative ? -size : size;
    }
    return 1;
}

static int python_put_int(struct python_text *text, unsigned long object, struct python_type *type,
                          int is_bool)
{
    u64 count;
    u32 digits[PYTHON_INT_MOST] = {0}, top = 0;
    int negative;
    if (!python_int_head(object, type, &count, &negative))
        return 0;
    object += type->shift + sizeof(struct PyVarObject_head);
    if (count && (!python_read(digits, object, min_t(u64, count, PYTHON_INT_MOST) * sizeof *digits) ||
                  !python_read(&top, object + (count - 1) * sizeof top, sizeof top)))
        return 0;
    if (is_bool)
        python_puts(text, digits[0] ? "True" : "False");
    else if (count > PYTHON_INT_MOST) {
        python_puts(text, "<int of ");
        python_put_number(text, 0, (count - 1) * PyLong_SHIFT + fls(top));
        python_puts(text, " bits>");
    } else
        python_put_bigint(text, negative, digits, count);
    return 1;
}

/* ---------------------------------------------------------------- float */

/* Writes the fewest digits to which no other double is nearer (Steele and White, 1990).  Uses integers, because the
 * kernel has no floating point. */

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

/* The sign of a + b - c; b may be NULL. */
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

/* Writes the shortest digits of mantissa * 2**exponent = 0.DIGITS * 10**point; returns how many. */
static int python_shortest(char *digits, int *point, u64 mantissa, int exponent)
{
    struct python_bigint rest, unit, low, high; /* low, high: half the distance to the doubles below and above */
    int at_power = mantissa == 1ULL << 52 && exponent > -1074; /* the double below is half as far */
    int even = !(mantissa & 1), count = 0, scale, digit, is_low, is_high;
    python_bigint_set(&rest, mantissa, max(exponent, 0) + 1 + at_power);
    python_bigint_set(&unit, 1, max(-exponent, 0) + 1 + at_power);
    python_bigint_set(&low, 1, max(exponent, 0));
    python_bigint_set(&high, 1, max(exponent, 0) + at_power);
    /* an estimate of *point, at most one too small */
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

/* Writes a double as repr() does; dot: with ".0" behind a whole number. */
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
        count = point = 1; /* as a whole number */
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

/* A float is a double behind the head (Include/cpython/floatobject.h). */
static int python_put_float(struct python_text *text, unsigned long object)
{
    u64 bits;
    if (!python_read(&bits, object + text->shift + sizeof(struct PyObject_head), sizeof bits))
        return 0;
    python_put_double(text, bits, 1);
    return 1;
}
