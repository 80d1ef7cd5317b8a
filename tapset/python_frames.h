/*
 * Frames: the page with their layout, their lines and names.  A part of python_objects.stp.in,
 * which includes it behind python_floats.h.
 *
 * SPDX-License-Identifier: MIT
 */

/* ---- frames */

/* Whether the process has published its layout. */
static int python_read_layout(struct offsets_page *layout)
{
    return !python_is_narrow() &&
           ((python_read(layout, (unsigned long)OFFSETS_ADDRESS, sizeof *layout) && layout->magic == OFFSETS_MAGIC) ||
            (python_read(layout, (unsigned long)OFFSETS_LOW_ADDRESS, sizeof *layout) && layout->magic == OFFSETS_MAGIC));
}

/* A varint of six bits a byte, the lowest first. */
static u32 python_varint(struct python_bytes *bytes)
{
    u32 value = 0;
    int shift, byte;
    for (shift = 0; shift < 32; shift += 6) {
        byte = python_byte(bytes);
        if (byte < 0)
            break;
        value |= (u32)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int python_signed_varint(struct python_bytes *bytes)
{
    u32 value = python_varint(bytes);
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* The line of the instruction at that offset, in bytes, by a table that begins with this line;
 * -1 if it has none. */
static int python_line_of(int lines, struct python_bytes *table, int line, int offset)
{
    int at = 0, first = python_byte(table), no_line = 0;
    if (offset < 0) /* the frame has not begun */
        return line;
    while (first >= 0) {
        if (lines == LINES_LNOTAB) { /* Objects/codeobject.c, PyCode_Addr2Line() */
            at += first;
            if (at > offset)
                return line;
            line += (signed char)python_byte(table); /* if that fails, so does the next one */
        } else if (lines == LINES_LINETABLE) { /* advance() */
            int delta = (signed char)python_byte(table);
            no_line = delta == -128;
            if (!no_line)
                line += delta;
            at += first;
            if (at > offset)
                return no_line ? -1 : line;
        } else { /* get_line_delta(), in advance() */
            int form = first >> 3 & 15;
            at += ((first & 7) + 1) * 2;
            if (form == 13 || form == 14)
                line += python_signed_varint(table);
            else if (form >= 10 && form <= 12)
                line += form - 10;
            if (at > offset)
                return form == 15 ? -1 : line;
            do /* the first byte of an entry has its highest bit set */
                first = python_byte(table);
            while (first >= 0 && !(first & 128));
            continue;
        }
        first = python_byte(table);
    }
    /* 3.9 and before: the last line has no end */
    return lines == LINES_LNOTAB && !table->failed ? line : -1;
}

/* At most so many bytes of line tables are read for one stack, and so many frames: the traced process
 * controls them, and a probe must end soon. */
enum { PYTHON_TABLES = 128 * 1024, PYTHON_STACK = 1000 };

/* What the line of a frame follows from. */
struct python_code_position {
    int first_line, offset;    /* of the def; of the instruction, in bytes */
    unsigned long table, size; /* the line table */
};

/* The first of the instructions in which the frame stands: the code's own, or the copy that its thread has of them; 0: it
 * can't be read. */
static unsigned long python_first_instr(const struct offsets_page *layout, unsigned long frame, unsigned long code)
{
    unsigned long table;
    u64 count;
    u32 copy;
    if (!layout->co_tlbc)
        return code + layout->co_code_adaptive;
    table = python_word(code + layout->co_tlbc);
    if (!table || !python_read(&count, table, sizeof count) || !python_read(&copy, frame + layout->frame_tlbc_index, sizeof copy) ||
        copy >= count)
        return 0;
    return python_word(table + sizeof count + copy * sizeof(u64));
}

/* 0 if some of it can't be read; first_line may be known then. */
static int python_frame_position(const struct offsets_page *layout, unsigned long frame, unsigned long code,
                              struct python_code_position *place)
{
    unsigned long object = python_word(code + layout->co_linetable);
    place->size = python_word(object + layout->ob_base_offset + offsetof(struct PyVarObject_head, size));
    place->table = object + layout->ob_base_offset + sizeof(struct PyBytesObject);
    place->first_line = 0;
    if (!python_read(&place->first_line, code + layout->co_firstlineno, sizeof place->first_line))
        return 0;
    if (layout->lines == LINES_LOCATIONS) {
        unsigned long at = python_word(frame + layout->frame_instr_ptr), first = python_first_instr(layout, frame, code);
        if (!at || !first)
            return 0;
        place->offset = at - first;
    } else {
        if (!python_read(&place->offset, frame + layout->frame_instr_ptr, sizeof place->offset))
            return 0;
        if (layout->lines == LINES_LINETABLE && place->offset > 0)
            place->offset *= 2;
    }
    return object != 0;
}

/* The line of a place, and how much of the table was read for it; 0 if it can't be had: *line is that of the
 * def then. */
static int python_place_line(const struct offsets_page *layout, const struct python_code_position *place, int *line,
                             unsigned long *used, unsigned long *budget)
{
    struct python_bytes table = {0};
    int found;
    table.at = place->table;
    table.end = place->table + min(place->size, *budget);
    table.failed = place->size > *budget; /* the table is longer */
    found = python_line_of(layout->lines, &table, place->first_line, place->offset);
    *used = table.at - place->table;
    *budget -= *used;
    *line = found < 0 ? place->first_line : found;
    return found >= 0;
}

/* The current line of a frame; 0 if it can't be had: *line is that of the def then. */
static int python_frame_line(const struct offsets_page *layout, unsigned long frame,
                             unsigned long code, int *line, unsigned long *budget)
{
    struct python_code_position place;
    unsigned long used;
    if (python_frame_position(layout, frame, code, &place))
        return python_place_line(layout, &place, line, &used, budget);
    *line = place.first_line;
    return 0;
}

/* A str that an object points to. */
static void python_put_attribute(struct python_text *text, unsigned long object)
{
    struct python_type type;
    if (!python_read_type(&type, object, text->shift) || !(type.flags & PYTHON_UNICODE) ||
        !python_put_str(text, object, &type, 0, PYTHON_CHARACTERS))
        python_puts(text, "<unknown>");
}
