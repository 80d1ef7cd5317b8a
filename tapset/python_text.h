/*
 * Where text is written, and how: characters escaped, numbers, no more than there is room for.  A
 * part of python_objects.stp.in, which includes it behind python_memory.h.
 *
 * SPDX-License-Identifier: MIT
 */

/* ---- text */

/* Where text is written: to a string of limited length, or through a small buffer to the output. */
struct python_text {
    char *start, *at, *end; /* there is room for a NUL at the end */
    int print;              /* to the output */
    int full;               /* something had no room, and nothing more is taken */
    int reserve;            /* so many bytes after the end are for the last word */
    unsigned shift;         /* python_ob_base_offset() */

    /* For values (python_values.h); NULL and 0 otherwise. */
    const struct offsets_page *layout;
    int effort; /* so many more objects, entries and items are looked at */
    int raw;    /* characters are not escaped */
    /* The type of the last name that was compared, and the built-in one that it is derived from. */
    unsigned long name_type;
    struct python_type name_base;
};

/* Begins a string of SystemTap's. */
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

/* All of the bytes, or none of them. */
static void python_put(struct python_text *text, const char *bytes, int count)
{
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

/* The last word, for which room is reserved. */
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

/* A character as in Python's repr(): what could be a terminal's control character is escaped. */
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
    else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        count = scnprintf(bytes, sizeof bytes, "\\x%02x", c);
    else if (c < 0x80) {
        bytes[0] = c;
        count = 1;
    } else if (c < 0x800) {
        bytes[0] = 0xc0 | c >> 6;
        bytes[1] = 0x80 | (c & 0x3f);
        count = 2;
    } else if (c >= 0xd800 && c < 0xe000) /* half of a surrogate pair: not a character */
        count = scnprintf(bytes, sizeof bytes, "\\u%04x", c);
    else if (c > 0x10ffff) /* nor is this */
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
