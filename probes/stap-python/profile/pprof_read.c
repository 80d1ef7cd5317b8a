/*
 * Reads pprof's files.  Their numbers, texts and lengths may be wrong in any way.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/util.h"
#include "profile/pprof.h"
#include "profile/pprof_fields.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---------------------------------------------------------------- messages */

struct span {
    const unsigned char *data, *end;
};

struct field {
    unsigned number;
    enum wire wire;
    uint64_t value;   /* of a number */
    struct span span; /* of bytes */
};

/* Reads a number of at most ten bytes. */
static bool read_varint(struct span *span, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && span->data < span->end; shift += 7) {
        unsigned char byte = *span->data++;
        *value |= (uint64_t)(byte & 0x7f) << (shift < 64 ? shift : 63);
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_span(struct span *span, uint64_t length, struct span *read)
{
    if (length > (uint64_t)(span->end - span->data))
        return false;
    *read = (struct span){span->data, span->data + length};
    span->data += length;
    return true;
}

/* Reads the next field.  False at the end of the span, and with *damaged if the field is wrong. */
static bool next_field(struct span *span, struct field *field, bool *damaged)
{
    uint64_t key, length = 0;
    struct span unused;
    bool is_whole = true;
    if (span->data == span->end)
        return false;
    if (!read_varint(span, &key)) {
        *damaged = true;
        return false;
    }
    *field = (struct field){.number = key >> 3 > 1000 ? 1000 : (unsigned)(key >> 3),
                            .wire = (enum wire)(key & 7)};
    switch (field->wire) {
    case WIRE_NUMBER:
        is_whole = read_varint(span, &field->value);
        break;
    case WIRE_BYTES:
        is_whole = read_varint(span, &length) && read_span(span, length, &field->span);
        break;
    case WIRE_64_BITS:
        is_whole = read_span(span, 8, &unused);
        break;
    case WIRE_32_BITS:
        is_whole = read_span(span, 4, &unused);
        break;
    default:
        is_whole = false;
    }
    *damaged |= !is_whole;
    return is_whole;
}

/* A list of numbers, {0} at first. */
struct list {
    uint64_t *all;
    size_t count, room;
};

static void add(struct list *list, uint64_t value)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->all = reallocarray(list->all, list->room, sizeof *list->all);
        if (!list->all)
            abort();
    }
    list->all[list->count++] = value;
}

/* Adds a repeated field's value, or its values if they are packed. */
static void add_values(struct list *list, struct field *field, bool *damaged)
{
    uint64_t value;
    if (field->wire == WIRE_NUMBER)
        add(list, field->value);
    while (field->wire == WIRE_BYTES && !*damaged && field->span.data < field->span.end)
        if (read_varint(&field->span, &value))
            add(list, value);
        else
            *damaged = true;
}

/* ---------------------------------------------------------------- tables */

/* A mapping, a function, or a location. */
struct entry {
    uint64_t id;
    uint64_t name, file; /* numbers of texts; of a mapping: its file */
    uint64_t mapping, address;
    struct span message; /* of a location */
};

struct table {
    struct entry *all;
    size_t count, room;
};

struct reader {
    struct profile *profile;
    int side;
    char **strings;
    size_t string_count, string_room;
    struct table mappings, functions, locations;
    struct list types; /* the texts' numbers */
    uint64_t default_type;
    size_t which; /* of a sample's values */
    const char *wrong;
};

static const char damaged_file[] = "this pprof profile is damaged";

static void *with_room(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 64;
    array = reallocarray(array, *room, size);
    if (!array)
        abort();
    return array;
}

/* Names have no semicolon, newline or NUL: folded text can't tell them. */
static void add_string(struct reader *reader, struct span span)
{
    char *text = malloc((size_t)(span.end - span.data) + 1), *at = text;
    if (!text)
        abort();
    for (; span.data < span.end; span.data++)
        *at++ = (char)(*span.data == ';'                          ? ':'
                       : *span.data == '\n' || *span.data == '\0' ? '?'
                                                                  : *span.data);
    *at = '\0';
    reader->strings = with_room(reader->strings, reader->string_count, &reader->string_room,
                                sizeof *reader->strings);
    reader->strings[reader->string_count++] = text;
}

static const char *string_at(struct reader *reader, uint64_t number)
{
    if (number < reader->string_count)
        return reader->strings[number];
    reader->wrong = damaged_file;
    return "";
}

/* Reads the numbers of a mapping, a function or a location. */
static void add_entry(struct table *table, struct span span, unsigned kind, bool *damaged)
{
    struct entry entry = {.message = span};
    struct field field;
    while (next_field(&span, &field, damaged)) {
        /* the id is field 1 of all of them */
        if (field.number == LOCATION_ID)
            entry.id = field.value;
        else if (kind == PROFILE_MAPPING && field.number == MAPPING_FILE)
            entry.file = field.value;
        else if (kind == PROFILE_FUNCTION && field.number == FUNCTION_NAME)
            entry.name = field.value;
        else if (kind == PROFILE_FUNCTION && field.number == FUNCTION_FILE)
            entry.file = field.value;
        else if (kind == PROFILE_LOCATION && field.number == LOCATION_MAPPING)
            entry.mapping = field.value;
        else if (kind == PROFILE_LOCATION && field.number == LOCATION_ADDRESS)
            entry.address = field.value;
    }
    table->all = with_room(table->all, table->count, &table->room, sizeof *table->all);
    table->all[table->count++] = entry;
}

static int by_id(const void *left, const void *right)
{
    uint64_t one = ((const struct entry *)left)->id, other = ((const struct entry *)right)->id;
    return (one > other) - (one < other);
}

static void sort(struct table *table)
{
    if (table->count)
        qsort(table->all, table->count, sizeof *table->all, by_id);
}

static const struct entry *find(const struct table *table, uint64_t id)
{
    struct entry wanted = {.id = id};
    return table->count ? bsearch(&wanted, table->all, table->count, sizeof *table->all, by_id)
                        : NULL;
}

/* ---------------------------------------------------------------- samples */

/* The name of a function in folded text, as name_parts() reads it. */
static const char *name_of(struct reader *reader, const struct entry *function,
                           const struct entry *location)
{
    const struct entry *mapping = find(&reader->mappings, location->mapping);
    const char *binary = mapping ? string_at(reader, mapping->file) : "";
    if (!function)
        return *binary ? format("[%s] %#llx", binary, (unsigned long long)location->address)
                       : format("%#llx", (unsigned long long)location->address);
    const char *name = string_at(reader, function->name), *file = string_at(reader, function->file);
    if (strcmp(binary, KERNEL_MAPPING) == 0)
        return format("%s_[k]", name);
    if (!*file || *name == '[')
        return name;
    return strcmp(file, binary) == 0 ? format("[%s] %s", file, name)
                                     : format("%s (%s)", name, file);
}

/* Adds the location's functions to the stack: the last line is the outermost one. */
static uint32_t with_location(struct reader *reader, uint32_t stack, uint64_t id)
{
    const struct entry *location = find(&reader->locations, id);
    struct list functions = {0};
    struct field field, inner;
    bool damaged = !location;
    struct span span = location ? location->message : (struct span){NULL, NULL};
    while (next_field(&span, &field, &damaged))
        if (field.number == LOCATION_LINE && field.wire == WIRE_BYTES)
            while (next_field(&field.span, &inner, &damaged))
                if (inner.number == LINE_FUNCTION)
                    add(&functions, inner.value);
    for (size_t i = functions.count + (functions.count == 0); !damaged && i-- > 0;) {
        const struct entry *function =
            functions.count ? find(&reader->functions, functions.all[i]) : NULL;
        damaged = functions.count && !function;
        const char *name = damaged ? "" : name_of(reader, function, location);
        stack = profile_stack(reader->profile, stack,
                              profile_name(reader->profile, name, strlen(name)));
    }
    if (damaged)
        reader->wrong = damaged_file;
    free(functions.all);
    return stack;
}

/* The value of the label "program", or NULL. */
static const char *program_label(struct reader *reader, struct span span, bool *damaged)
{
    uint64_t key = 0, text = 0;
    struct field field;
    while (next_field(&span, &field, damaged))
        if (field.number == LABEL_KEY)
            key = field.value;
        else if (field.number == LABEL_STRING)
            text = field.value;
    return text && strcmp(string_at(reader, key), "program") == 0 ? string_at(reader, text) : NULL;
}

static void add_sample(struct reader *reader, struct span span)
{
    struct list locations = {0}, values = {0};
    const char *program = NULL, *found;
    struct field field;
    uint32_t stack = 0;
    bool damaged = false;
    while (next_field(&span, &field, &damaged)) {
        if (field.number == SAMPLE_LOCATION)
            add_values(&locations, &field, &damaged);
        else if (field.number == SAMPLE_VALUE)
            add_values(&values, &field, &damaged);
        else if (field.number == SAMPLE_LABEL && field.wire == WIRE_BYTES &&
                 (found = program_label(reader, field.span, &damaged)))
            program = found;
    }
    if (damaged || values.count != reader->types.count || !locations.count)
        reader->wrong = damaged_file;
    else if (values.all[reader->which] > INT64_MAX)
        reader->wrong = "it has negative values: it is a difference of profiles";
    else if (program)
        stack = profile_stack(reader->profile, 0,
                              profile_name(reader->profile, program, strlen(program)));
    for (size_t i = locations.count; !reader->wrong && i-- > 0;)
        stack = with_location(reader, stack, locations.all[i]);
    if (!reader->wrong &&
        !profile_add(reader->profile, stack, reader->side, values.all[reader->which]))
        reader->wrong = "the sum of all is beyond 2^53";
    free(locations.all);
    free(values.all);
}

/* ---------------------------------------------------------------- file */

static void add_type(struct reader *reader, struct span span, bool *damaged)
{
    uint64_t type = 0;
    struct field field;
    while (next_field(&span, &field, damaged))
        if (field.number == TYPE_TYPE)
            type = field.value;
    add(&reader->types, type);
}

/* Reads all but the samples, which need the tables. */
static bool read_tables(struct reader *reader, struct span span)
{
    struct field field;
    bool damaged = false;
    while (next_field(&span, &field, &damaged)) {
        if (field.number == PROFILE_DEFAULT_TYPE)
            reader->default_type = field.value;
        if (field.wire != WIRE_BYTES)
            continue;
        if (field.number == PROFILE_STRING)
            add_string(reader, field.span);
        else if (field.number == PROFILE_SAMPLE_TYPE)
            add_type(reader, field.span, &damaged);
        else if (field.number == PROFILE_MAPPING)
            add_entry(&reader->mappings, field.span, field.number, &damaged);
        else if (field.number == PROFILE_LOCATION)
            add_entry(&reader->locations, field.span, field.number, &damaged);
        else if (field.number == PROFILE_FUNCTION)
            add_entry(&reader->functions, field.span, field.number, &damaged);
    }
    sort(&reader->mappings);
    sort(&reader->locations);
    sort(&reader->functions);
    return !damaged && reader->types.count && reader->string_count;
}

static void read_message(struct reader *reader, struct span span)
{
    struct span samples = span;
    struct field field;
    bool damaged = false;
    if (!read_tables(reader, span)) {
        reader->wrong = damaged_file;
        return;
    }
    reader->which = reader->types.count - 1;
    for (size_t i = 0; reader->default_type && i < reader->types.count; i++)
        if (reader->types.all[i] == reader->default_type)
            reader->which = i;
    while (!reader->wrong && next_field(&samples, &field, &damaged))
        if (field.number == PROFILE_SAMPLE && field.wire == WIRE_BYTES)
            add_sample(reader, field.span);
}

bool is_gzipped(const char *data, size_t length)
{
    return length >= 2 && (unsigned char)data[0] == 0x1f && (unsigned char)data[1] == 0x8b;
}

/* The unpacked bytes, of which there are *length; NULL and *wrong if they can't be had. */
static unsigned char *unpacked(const char *data, size_t length, size_t *unpacked_length,
                               const char **wrong)
{
    enum { FIRST = 1 << 20, MOST = 1 << 30 };
    size_t room = FIRST;
    unsigned char *result = malloc(room);
    z_stream stream = {.next_in = (unsigned char *)data, .avail_in = (unsigned)length};
    int state = Z_OK;
    if (!result || length > UINT32_MAX || inflateInit2(&stream, 15 + 16) != Z_OK)
        abort();
    while (state == Z_OK && stream.total_out < MOST) {
        if (stream.total_out == room) {
            room *= 2;
            result = realloc(result, room);
            if (!result)
                abort();
        }
        stream.next_out = result + stream.total_out;
        stream.avail_out = (unsigned)(room - stream.total_out);
        state = inflate(&stream, Z_NO_FLUSH);
    }
    *unpacked_length = stream.total_out;
    inflateEnd(&stream);
    if (state == Z_STREAM_END)
        return result;
    *wrong = state == Z_BUF_ERROR ? "this gzipped file is truncated"
             : state == Z_OK      ? "a pprof profile of more than 1 GB is not read"
                                  : "this gzipped file is damaged";
    free(result);
    return NULL;
}

const char *profile_read_pprof(struct profile *profile, int side, const char *data, size_t length)
{
    struct reader reader = {.profile = profile, .side = side};
    size_t bytes = 0;
    unsigned char *message = unpacked(data, length, &bytes, &reader.wrong);
    if (message)
        read_message(&reader, (struct span){message, message + bytes});
    for (size_t i = 0; i < reader.string_count; i++)
        free(reader.strings[i]);
    free(reader.strings);
    free(reader.mappings.all);
    free(reader.functions.all);
    free(reader.locations.all);
    free(reader.types.all);
    free(message);
    return reader.wrong;
}
