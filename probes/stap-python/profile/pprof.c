/*
 * Writes pprof's files.
 *
 * SPDX-License-Identifier: MIT
 */

#include "profile/pprof.h"

#include "lib/util.h"
#include "profile/pprof_fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const uint64_t SECOND = 1000000000;

/* ---------------------------------------------------------------- messages */

struct message {
    unsigned char *data;
    size_t length, room;
};

static void put(struct message *message, const void *data, size_t length)
{
    if (message->room - message->length < length) {
        message->room = 2 * message->room + length;
        message->data = realloc(message->data, message->room);
        if (!message->data)
            abort();
    }
    if (length)
        memcpy(message->data + message->length, data, length);
    message->length += length;
}

static void put_varint(struct message *message, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    put(message, bytes, count);
}

static void put_number(struct message *message, unsigned field, uint64_t value)
{
    put_varint(message, field << 3 | WIRE_NUMBER);
    put_varint(message, value);
}

static void put_bytes(struct message *message, unsigned field, const void *data, size_t length)
{
    put_varint(message, field << 3 | WIRE_BYTES);
    put_varint(message, length);
    put(message, data, length);
}

/* Puts the part into the message, and empties the part. */
static void put_part(struct message *message, unsigned field, struct message *part)
{
    put_bytes(message, field, part->data, part->length);
    part->length = 0;
}

/* ---------------------------------------------------------------- profile */

struct writer {
    const struct profile *profile;
    struct message all, part, inner;
    /* Tables of texts, whose numbers are those of strings, and from 1 on those of functions and
     * mappings. */
    struct profile *strings, *functions, *mappings;
    bool of_samples, of_memory; /* neither: the values are microseconds */
};

/* Of the values of memory.  Go's runtime/pprof/protomem.go has these names, the last one first. */
static const struct {
    const char *type, *unit;
} memory_types[VALUES] = {{"inuse_space", "bytes"},
                          {"inuse_objects", "count"},
                          {"alloc_space", "bytes"},
                          {"alloc_objects", "count"}};

static uint32_t number_in(struct profile *table, const char *text)
{
    return profile_name(table, text, strlen(text));
}

static void put_string(struct writer *writer, struct message *message, unsigned field,
                       const char *text)
{
    put_number(message, field, number_in(writer->strings, text));
}

static void put_type(struct writer *writer, unsigned field, const char *type, const char *unit)
{
    put_string(writer, &writer->part, TYPE_TYPE, type);
    put_string(writer, &writer->part, TYPE_UNIT, unit);
    put_part(&writer->all, field, &writer->part);
}

static void put_mapping(struct writer *writer, uint32_t number)
{
    put_number(&writer->part, MAPPING_ID, number + 1);
    put_string(writer, &writer->part, MAPPING_FILE, writer->mappings->names[number]);
    /* Else pprof looks for the file, to find names in it. */
    put_number(&writer->part, MAPPING_HAS_FUNCTIONS, 1);
    put_number(&writer->part, MAPPING_HAS_FILES, 1);
    put_number(&writer->part, MAPPING_HAS_LINES, 1);
    put_part(&writer->all, PROFILE_MAPPING, &writer->part);
}

/* The mapping of a name: the program's is the first. */
static uint32_t mapping_of(struct writer *writer, const struct name_parts *parts)
{
    if (parts->kind == KERNEL_FUNCTION)
        return number_in(writer->mappings, KERNEL_MAPPING);
    return parts->kind == C_FUNCTION ? number_in(writer->mappings, parts->file) : 0;
}

/* A location for each name, and its function if that is new. */
static void put_location(struct writer *writer, uint32_t name)
{
    struct name_parts parts = name_parts(writer->profile->names[name]);
    const char *file = parts.file ? parts.file : "";
    uint32_t functions = (uint32_t)writer->functions->name_count;
    uint32_t function = number_in(writer->functions, format("%s\n%s", parts.function, file));
    put_number(&writer->inner, LINE_FUNCTION, function + 1);
    put_number(&writer->inner, LINE_LINE, parts.line);
    put_number(&writer->part, LOCATION_ID, name + 1);
    put_number(&writer->part, LOCATION_MAPPING, mapping_of(writer, &parts) + 1);
    put_part(&writer->part, LOCATION_LINE, &writer->inner);
    put_part(&writer->all, PROFILE_LOCATION, &writer->part);
    if (function < functions)
        return;
    put_number(&writer->part, FUNCTION_ID, function + 1);
    put_string(writer, &writer->part, FUNCTION_NAME, parts.function);
    put_string(writer, &writer->part, FUNCTION_FILE, file);
    put_part(&writer->all, PROFILE_FUNCTION, &writer->part);
}

static void put_label(struct writer *writer, const char *key, const char *text, uint64_t number)
{
    put_string(writer, &writer->inner, LABEL_KEY, key);
    if (text)
        put_string(writer, &writer->inner, LABEL_STRING, text);
    else
        put_number(&writer->inner, LABEL_NUMBER, number);
    put_part(&writer->part, SAMPLE_LABEL, &writer->inner);
}

/* The program that a stack of more than one name begins with; NULL: none. */
static const char *program_name(const struct profile *profile, const struct stack *stack)
{
    if (stack->depth < 2)
        return NULL;
    while (stack->depth > 1)
        stack = &profile->stacks[stack->outer];
    const char *name = profile->names[stack->name];
    return name_parts(name).kind == OTHER_NAME ? name : NULL;
}

/* What is beyond the format's signed numbers is the greatest of these. */
static uint64_t nanoseconds(uint64_t samples, uint64_t rate)
{
    if (samples / rate >= INT64_MAX / SECOND)
        return INT64_MAX;
    return samples / rate * SECOND + samples % rate * SECOND / rate;
}

static void put_values(struct writer *writer, const struct stack *stack)
{
    uint64_t samples = stack->own[0], rate = writer->profile->rate;
    for (unsigned i = VALUES; writer->of_memory && i-- > 0;)
        put_varint(&writer->inner, stack->own[i]);
    if (writer->of_samples)
        put_varint(&writer->inner, samples);
    if (rate && !writer->of_memory)
        put_varint(&writer->inner, nanoseconds(samples, rate));
    put_part(&writer->part, SAMPLE_VALUE, &writer->inner);
}

static void put_sample(struct writer *writer, const struct stack *stack)
{
    const struct profile *profile = writer->profile;
    const char *root = program_name(profile, stack);
    for (const struct stack *at = stack; at->depth > (root ? 1 : 0);
         at = &profile->stacks[at->outer])
        put_varint(&writer->inner, at->name + 1);
    put_part(&writer->part, SAMPLE_LOCATION, &writer->inner);
    put_values(writer, stack);
    if (root) {
        struct program_ids ids = program_ids(root);
        put_label(writer, "program", ids.program ? ids.program : root, 0);
        if (ids.program) {
            put_label(writer, "pid", NULL, ids.pid);
            if (!writer->of_memory)
                put_label(writer, "tid", NULL, ids.tid);
        }
    }
    put_part(&writer->all, PROFILE_SAMPLE, &writer->part);
}

/* The name of the program that the first stack is of, for the first mapping. */
static const char *first_program(const struct profile *profile)
{
    for (size_t i = 1; i < profile->stack_count; i++) {
        const char *root = program_name(profile, &profile->stacks[i]);
        if (root)
            return program_ids(root).program ? program_ids(root).program : root;
    }
    return "python";
}

static void put_profile(struct writer *writer)
{
    const struct profile *profile = writer->profile;
    number_in(writer->strings, "");
    number_in(writer->mappings, first_program(profile));
    const char *type = writer->of_memory ? "space" : writer->of_samples ? "cpu" : "wall";
    for (unsigned i = VALUES; writer->of_memory && i-- > 0;)
        put_type(writer, PROFILE_SAMPLE_TYPE, memory_types[i].type, memory_types[i].unit);
    if (writer->of_samples)
        put_type(writer, PROFILE_SAMPLE_TYPE, "samples", "count");
    if (profile->rate && !writer->of_memory)
        put_type(writer, PROFILE_SAMPLE_TYPE, type, "nanoseconds");
    for (size_t i = 1; i < profile->stack_count; i++)
        if (profile->stacks[i].own[profile->values - 1])
            put_sample(writer, &profile->stacks[i]);
    for (uint32_t i = 0; i < profile->name_count; i++)
        put_location(writer, i);
    for (uint32_t i = 0; i < writer->mappings->name_count; i++)
        put_mapping(writer, i);
    if (profile->begin)
        put_number(&writer->all, PROFILE_TIME, profile->begin);
    if (profile->length)
        put_number(&writer->all, PROFILE_DURATION, profile->length);
    if (profile->rate) {
        put_type(writer, PROFILE_PERIOD_TYPE, type, writer->of_memory ? "bytes" : "nanoseconds");
        put_number(&writer->all, PROFILE_PERIOD,
                   writer->of_memory ? profile->rate : SECOND / profile->rate);
    }
    if (writer->of_memory)
        put_string(writer, &writer->all, PROFILE_DEFAULT_TYPE, memory_types[0].type);
    for (size_t i = 0; i < writer->strings->name_count; i++) {
        /* The format's texts are UTF-8: other bytes are \xNN. */
        const char *text = printable(writer->strings->names[i]);
        put_bytes(&writer->all, PROFILE_STRING, text, strlen(text));
    }
}

void profile_write_pprof(const struct profile *profile, FILE *output)
{
    struct writer writer = {.profile = profile,
                            .of_samples = strcmp(profile->unit, "samples") == 0,
                            .of_memory = profile->values == VALUES,
                            .strings = profile_new(),
                            .functions = profile_new(),
                            .mappings = profile_new()};
    put_profile(&writer);
    z_stream stream = {0};
    /* 15 + 16: the largest window, and gzip's head in place of zlib's. */
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY))
        abort();
    size_t room = deflateBound(&stream, writer.all.length);
    unsigned char *packed = malloc(room);
    if (!packed || writer.all.length > UINT32_MAX || room > UINT32_MAX)
        abort();
    stream.next_in = writer.all.data;
    stream.avail_in = (unsigned)writer.all.length;
    stream.next_out = packed;
    stream.avail_out = (unsigned)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    fwrite(packed, 1, stream.total_out, output);
    deflateEnd(&stream);
    free(packed);
    free(writer.all.data);
    free(writer.part.data);
    free(writer.inner.data);
}
