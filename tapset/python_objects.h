/*
 * Python objects of the most frequent kinds as text.  A part of python_objects.stp.in, which
 * includes it behind python_text.h.
 *
 * SPDX-License-Identifier: MIT
 */

/* ---- objects; each says whether it could be read */

/* Include/cpython/unicodeobject.h: PyASCIIObject, PyCompactUnicodeObject and PyUnicodeObject, and what they
 * were to 3.11, with a wstr.  The characters follow the first or the second, or are where data points. */
struct PyASCIIObject {
    struct PyObject_head object;
    u64 length, hash;
    u32 state, padding;
};
struct PyCompactUnicodeObject {
    struct PyASCIIObject ascii;
    u64 utf8_length, utf8;
};
struct PyUnicodeObject {
    struct PyCompactUnicodeObject compact;
    u64 data;
};
struct PyASCIIObject_3_11 {
    struct PyASCIIObject ascii;
    u64 wstr;
};
struct PyCompactUnicodeObject_3_11 {
    struct PyASCIIObject_3_11 ascii;
    u64 utf8_length, utf8, wstr_length;
};
struct PyUnicodeObject_3_11 {
    struct PyCompactUnicodeObject_3_11 compact;
    u64 data;
};

/* Of the state: how many bytes a character has (1, 2 or 4), and flags; bit fields, which begin at the other end where the
 * highest byte of a word is the first. */
enum {
    PYTHON_STR_KIND_MASK = 7,
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    PYTHON_STR_KIND_SHIFT = 27,
    PYTHON_STR_COMPACT = 1 << 26,
    PYTHON_STR_ASCII = 1 << 25,
    PYTHON_STR_READY = 1 << 24, /* to 3.11 */
#else
    PYTHON_STR_KIND_SHIFT = 2,
    PYTHON_STR_COMPACT = 1 << 5,
    PYTHON_STR_ASCII = 1 << 6,
    PYTHON_STR_READY = 1 << 7, /* to 3.11 */
#endif
    PYTHON_STR_SHIFT = 6, /* all of them in a free-threaded build, where the first two bits have a byte */
};

/* The state, of a free-threaded build, as it is in others. */
static u32 python_str_state(u32 state)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return state << PYTHON_STR_SHIFT;
#else
    return state >> PYTHON_STR_SHIFT;
#endif
}

/* The characters of a str, and their number and size. */
static int python_find_characters(struct python_bytes *bytes, u64 *count, unsigned *kind,
                                  unsigned long object, const struct python_type *type)
{
    struct PyASCIIObject str;
    u64 size = type->basicsize - type->shift;
    int old = size == sizeof(struct PyUnicodeObject_3_11);
    object += type->shift;
    if ((!old && size != sizeof(struct PyUnicodeObject)) || !python_read(&str, object, sizeof str))
        return 0;
    if (type->shift)
        str.state = python_str_state(str.state);
    if (old && !(str.state & PYTHON_STR_READY))
        return 0;
    *kind = str.state >> PYTHON_STR_KIND_SHIFT & PYTHON_STR_KIND_MASK;
    if (*kind != 1 && *kind != 2 && *kind != 4)
        return 0;
    if (!(str.state & PYTHON_STR_COMPACT)) /* of a derived type */
        bytes->at = python_word(object + (old ? offsetof(struct PyUnicodeObject_3_11, data) :
                                                offsetof(struct PyUnicodeObject, data)));
    else if (str.state & PYTHON_STR_ASCII)
        bytes->at = object + (old ? sizeof(struct PyASCIIObject_3_11) : sizeof(struct PyASCIIObject));
    else
        bytes->at = object + (old ? sizeof(struct PyCompactUnicodeObject_3_11) : sizeof(struct PyCompactUnicodeObject));
    *count = str.length;
    bytes->end = bytes->at + *count * *kind;
    return 1;
}

/* As in repr(): " where there is a ' and no " among the first characters. */
static char python_quote(struct python_bytes bytes, u64 count, unsigned kind)
{
    char quote = '\'';
    u64 i;
    for (i = 0; i < count * kind; i++) {
        int byte = python_byte(&bytes);
        if (byte == '"')
            return '\'';
        if (byte == '\'')
            quote = '"';
    }
    return quote;
}

/* At most so many of them, then dots.  quote: whether it is quoted, as in repr(). */
static int python_put_str(struct python_text *text, unsigned long object, struct python_type *type,
                          char quote, unsigned most)
{
    struct python_bytes bytes = {0};
    unsigned kind, i;
    u64 count;
    if (!python_find_base(type, PYTHON_UNICODE) || !python_find_characters(&bytes, &count, &kind, object, type))
        return 0;
    if (quote) {
        quote = python_quote(bytes, min_t(u64, count, most), kind);
        python_put(text, &quote, 1);
    }
    for (i = 0; i < count; i++) {
        u32 character = 0;
        unsigned byte;
        if (i == most) {
            python_puts(text, "...");
            break;
        }
        for (byte = 0; byte < kind; byte++) {
            int next = python_byte(&bytes);
            if (next < 0) {
                python_puts(text, "<unknown>");
                goto end;
            }
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
            character = character << 8 | (u32)next;
#else
            character |= (u32)next << (8 * byte);
#endif
        }
        if (character >= ' ' && character <= '~' && character != '\\' && character != quote && text->at < text->end && !text->full)
            *text->at++ = character;
        else
            python_put_character(text, character, quote);
    }
end:
    if (quote)
        python_put(text, &quote, 1);
    return 1;
}

/* Include/cpython/bytesobject.h: PyBytesObject, as far as its bytes. */
struct PyBytesObject {
    struct PyVarObject_head head;
    u64 hash;
};

/* b'...' of so many bytes, cut after the most. */
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
    if (!python_find_base(type, PYTHON_BYTES) ||
        !python_read(&length, object + type->shift + offsetof(struct PyVarObject_head, size), sizeof length))
        return 0;
    /* the NUL at the end is in the size */
    python_put_raw_bytes(text, object + type->basicsize - 1, length, most);
    return 1;
}

/* Include/cpython/longintrepr.h: _PyLongValue, digits of 30 bits.  From 3.12 on the lowest bits of the size
 * are flags, two of them the sign. */
enum {
    PYTHON_INT_DIGIT = 30,
    PYTHON_INT_SIGN = 3,
    PYTHON_INT_NEGATIVE = 2,
    PYTHON_INT_FLAGS = 3, /* bits */
    PYTHON_INT_MOST = 20, /* digits: a longer one is not written out */
};

/* In decimal: by 10**9, the lowest part first. */
static void python_put_bigint(struct python_text *text, int negative, u32 *digits, int count)
{
    char buffer[PYTHON_INT_MOST * 10], *at = buffer + sizeof buffer;
    int i, part;
    while (count && !digits[count - 1])
        count--;
    do {
        u64 rest = 0;
        for (i = count - 1; i >= 0; i--) {
            rest = rest << PYTHON_INT_DIGIT | digits[i];
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

/* What an int has: the number of its digits, which are behind this; 0: it is not one. */
static int python_int_head(unsigned long object, struct python_type *type, u64 *count, int *negative)
{
    s64 size;
    if (!python_find_base(type, PYTHON_LONG) || type->itemsize != sizeof(u32) ||
        !python_read(&size, object + type->shift + offsetof(struct PyVarObject_head, size), sizeof size))
        return 0;
    if (type->flags & PYTHON_STATIC_BUILTIN) {
        *negative = (size & PYTHON_INT_SIGN) == PYTHON_INT_NEGATIVE;
        *count = (u64)size >> PYTHON_INT_FLAGS;
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
        python_put_number(text, 0, (count - 1) * PYTHON_INT_DIGIT + fls(top));
        python_puts(text, " bits>");
    } else
        python_put_bigint(text, negative, digits, count);
    return 1;
}
