/*
 * Reads the memory of the process in which the probe runs, and the types of its objects; writes text for the probe.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* ---------------------------------------------------------------- memory of the process */

/* False unless all bytes can be read.  Works in an interrupt, too, where SystemTap's own functions don't read.  Inline:
 * the kernel checks the destination unless the size is a constant (CONFIG_HARDENED_USERCOPY). */
static __always_inline int python_read(void *to, unsigned long from, unsigned long size)
{
    unsigned long left;
    if (size > TASK_SIZE || from > TASK_SIZE - size)
        return 0;
    pagefault_disable();
    left = __copy_from_user_inatomic(to, (const void __user *)from, size);
    pagefault_enable();
    return left == 0;
}

/* Whether the process has 32 bits: the tapset knows the objects of 64-bit processes only. */
static int python_is_narrow(void)
{
    return (u64)TASK_SIZE <= 1ULL << 32;
}

/* Reads words at offsets of at most 16 bits, and a byte unless it is NULL; false unless all can be read.  The kernel
 * opens the process's memory once for all of them, because to open it takes longer than to read them. */
static int python_read_words(u64 *words, const unsigned *offsets, int count, unsigned long from, u8 *byte, unsigned byte_offset)
{
    int i;
    if (python_is_narrow())
        return 0;
#ifdef user_read_access_begin
    enum { PYTHON_SPAN = U16_MAX + sizeof *words };
    if (from > TASK_SIZE - PYTHON_SPAN)
        return 0;
    pagefault_disable();
    if (!user_read_access_begin((const void __user *)from, PYTHON_SPAN))
        goto closed;
    for (i = 0; i < count; i++)
        unsafe_get_user(words[i], (const u64 __user *)(from + offsets[i]), failed);
    if (byte)
        unsafe_get_user(*byte, (const u8 __user *)(from + byte_offset), failed);
    user_read_access_end();
    pagefault_enable();
    return 1;
failed:
    user_read_access_end();
closed:
    pagefault_enable();
    return 0;
#else
    for (i = 0; i < count; i++)
        if (!python_read(&words[i], from + offsets[i], sizeof *words))
            return 0;
    return !byte || python_read(byte, from + byte_offset, 1);
#endif
}

/* 0: unreadable.  python_read_words() is faster than a copy. */
static unsigned long python_word(unsigned long at)
{
    static const unsigned here[] = {0};
    u64 word;
    return python_read_words(&word, here, 1, at, NULL, 0) ? word : 0;
}

/* The u32 at the address from which the word was read. */
static u32 python_low_u32(u64 word)
{
    u32 half;
    memcpy(&half, &word, sizeof half);
    return half;
}

/* The bits of the first bytes of a word, as memory has them: 1 to 8. */
static __always_inline u64 python_first_bytes(unsigned count)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return ~0ULL << (64 - 8 * count);
#else
    return ~0ULL >> (64 - 8 * count);
#endif
}

/* The next byte; -1: the end, or unreadable. */
static int python_byte(struct python_bytes *bytes)
{
    if (bytes->used == bytes->have) {
        /* not beyond the page: the next one may be unreadable */
        unsigned long left = bytes->end - bytes->at;
        unsigned long page = PAGE_SIZE - (bytes->at & (PAGE_SIZE - 1));
        bytes->have = min3(left, page, (unsigned long)sizeof bytes->piece);
        bytes->used = 0;
        if (bytes->have == 0 || !python_read(bytes->piece, bytes->at, bytes->have)) {
            bytes->failed |= bytes->have != 0;
            bytes->have = 0;
            bytes->end = bytes->at;
            return -1;
        }
        bytes->at += bytes->have;
    }
    return bytes->piece[bytes->used++];
}

/* ---------------------------------------------------------------- types */

/* Reads ob_base_offset of the offsets page; false: the page is not at this address. */
static int python_ob_base_offset_at(unsigned long address, u16 *shift)
{
    static const unsigned offsets[] = {offsetof(struct offsets_page, magic), offsetof(struct offsets_page, ob_base_offset)};
    u64 words[2];
    if (!python_read_words(words, offsets, 2, address, NULL, 0))
        return 0;
    memcpy(shift, &words[1], sizeof *shift);
    return python_low_u32(words[0]) == OFFSETS_MAGIC;
}

/* By how many bytes the head of each object is longer in this process (offsets_page.ob_base_offset): 0 except in a
 * free-threaded build with the shim. */
static unsigned python_ob_base_offset(void)
{
    u16 shift;
    return python_ob_base_offset_at((unsigned long)OFFSETS_ADDRESS, &shift) ||
                   python_ob_base_offset_at((unsigned long)OFFSETS_LOW_ADDRESS, &shift) ?
               shift :
               0;
}

/* The N of CPython 3.N; 0: unknown.  Inline: it is not called while the process's memory is open. */
static __always_inline int python_minor(const struct offsets_page *layout)
{
    const char *at = layout->version + 2;
    int minor = 0, digits;
    if (layout->version[0] != '3' || layout->version[1] != '.')
        return 0;
    for (digits = 0; digits < 2 && *at >= '0' && *at <= '9'; digits++)
        minor = 10 * minor + *at++ - '0';
    return minor;
}

static int python_read_type_at(struct python_type *type, unsigned long address, unsigned shift)
{
    static const unsigned offsets[] = {offsetof(struct PyTypeObject, tp_name), offsetof(struct PyTypeObject, tp_basicsize), offsetof(struct PyTypeObject, tp_itemsize), offsetof(struct PyTypeObject, tp_flags), offsetof(struct PyTypeObject, tp_base)};
    type->shift = shift;
    return address && python_read_words((u64 *)type, offsets, ARRAY_SIZE(offsets), address + shift, NULL, 0);
}

static int python_read_type(struct python_type *type, unsigned long object, unsigned shift)
{
    return python_read_type_at(type, python_word(object + shift + offsetof(struct PyObject_head, ob_type)), shift);
}

/* Replaces *type by the built-in type that introduces the flag: a base, or *type itself. */
static int python_find_base(struct python_type *type, u64 flag)
{
    int levels;
    for (levels = 0; levels < 64; levels++) {
        struct python_type base;
        if (!python_read_type_at(&base, type->base, type->shift))
            return 0;
        if (!(base.flags & flag))
            return 1;
        *type = base;
    }
    return 0;
}

/* python_ob_base_offset() for a process without the shim: with the right offset, the type of the object's type is
 * `type`, which is its own type. */
static unsigned python_ob_base_offset_of(unsigned long object)
{
    static const unsigned shifts[] = {0, 16};
    unsigned long type;
    int i;
    for (i = 0; i < (int)ARRAY_SIZE(shifts); i++) {
        unsigned at = shifts[i] + offsetof(struct PyObject_head, ob_type);
        type = python_word(python_word(object + at) + at);
        if (type && python_word(type + at) == type)
            return shifts[i];
    }
    return 0;
}

/* Whether *type is the static type of this name. */
static int python_type_is(const struct python_type *type, const char *name)
{
    char known[24] = "";
    int size = strlen(name) + 1; /* callers' names fit into known */
    return !(type->flags & Py_TPFLAGS_HEAPTYPE) && python_read(known, type->name, size) && memcmp(known, name, size) == 0;
}

/* Whether *type is bool: by its name or, where the name is not in memory, as the static type derived from int. */
static int python_type_is_bool(const struct python_type *type)
{
    struct python_type base;
    char known[5];
    if (type->flags & Py_TPFLAGS_HEAPTYPE)
        return 0;
    if (python_read(known, type->name, sizeof known))
        return memcmp(known, "bool", sizeof known) == 0;
    return python_read_type_at(&base, type->base, type->shift) && base.flags & Py_TPFLAGS_LONG_SUBCLASS;
}

/* ---------------------------------------------------------------- text */

/* Begins a string of SystemTap, with room for the word that python_put_last() will write. */
static void python_begin(struct python_text *text, char *string, const char *last)
{
    memset(text, 0, sizeof *text);
    text->reserve = strlen(last);
    text->shift = python_ob_base_offset();
    text->start = text->at = string;
    text->end = string + MAXSTRINGLEN - 1 - text->reserve;
}

static void python_flush(struct python_text *text)
{
    *text->at = '\0';
    _stp_print(text->start);
    text->at = text->start;
}

/* Writes bytes as they are within a string of JSON. */
static void python_put_json(struct python_text *text, const char *bytes, int count)
{
    enum { LONGEST = 6 };
    int i;
    for (i = 0; i < count; i++) {
        u8 byte = bytes[i];
        if (text->end - text->at < LONGEST)
            python_flush(text);
        if (byte < 0x20 || byte == 0x7f)
            text->at += scnprintf(text->at, LONGEST + 1, "\\u%04x", byte);
        else {
            if (byte == '"' || byte == '\\')
                *text->at++ = '\\';
            *text->at++ = byte;
        }
    }
}

/* Writes all of the bytes, or none of them. */
static void python_put(struct python_text *text, const char *bytes, int count)
{
    if (text->print == PYTHON_PRINT_JSON) {
        python_put_json(text, bytes, count);
        return;
    }
    if (text->print && text->end - text->at < count)
        python_flush(text);
    if (text->full || text->end - text->at < count) {
        text->full = 1;
        return;
    }
    memcpy(text->at, bytes, count);
    text->at += count;
}

static void python_puts(struct python_text *text, const char *string)
{
    python_put(text, string, strlen(string));
}

/* Begin and end a string of JSON, in a text that is printed. */
static void python_open_string(struct python_text *text)
{
    python_puts(text, "\"");
    text->print = PYTHON_PRINT_JSON;
    text->raw = 1;
}

static void python_close_string(struct python_text *text)
{
    text->print = PYTHON_PRINT;
    text->raw = 0;
    python_puts(text, "\"");
}

/* Writes the word for which python_begin() has reserved room. */
static void python_put_last(struct python_text *text, const char *string)
{
    text->full = 0;
    text->end += text->reserve;
    python_puts(text, string);
}

static void python_put_number(struct python_text *text, int negative, u64 value)
{
    char digits[24];
    python_put(text, digits, scnprintf(digits, sizeof digits, "%s%llu", negative ? "-" : "", value));
}

/* Writes a character as repr() does, with control characters escaped. */
static void python_put_character(struct python_text *text, u32 c, char quote)
{
    char bytes[12];
    int count;
    if (c < 0x80 && text->raw) {
        bytes[0] = c;
        count = 1;
    } else if (c == '\\' || (quote && c == quote))
        count = scnprintf(bytes, sizeof bytes, "\\%c", c);
    else if (c == '\n' || c == '\r' || c == '\t')
        count = scnprintf(bytes, sizeof bytes, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (is_control_character(c))
        count = scnprintf(bytes, sizeof bytes, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
    else if (c < 0x80) {
        bytes[0] = c;
        count = 1;
    } else if (c < 0x800) {
        bytes[0] = 0xc0 | c >> 6;
        bytes[1] = 0x80 | (c & 0x3f);
        count = 2;
    } else if (c >= 0xd800 && c < 0xe000) /* half of a surrogate pair */
        count = scnprintf(bytes, sizeof bytes, "\\u%04x", c);
    else if (c > 0x10ffff) /* beyond Unicode */
        count = scnprintf(bytes, sizeof bytes, "\\U%08x", c);
    else if (c < 0x10000) {
        bytes[0] = 0xe0 | c >> 12;
        bytes[1] = 0x80 | (c >> 6 & 0x3f);
        bytes[2] = 0x80 | (c & 0x3f);
        count = 3;
    } else {
        bytes[0] = 0xf0 | (c >> 18 & 0x07);
        bytes[1] = 0x80 | (c >> 12 & 0x3f);
        bytes[2] = 0x80 | (c >> 6 & 0x3f);
        bytes[3] = 0x80 | (c & 0x3f);
        count = 4;
    }
    python_put(text, bytes, count);
}
