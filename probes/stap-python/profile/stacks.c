/*
 * SPDX-License-Identifier: MIT
 */

#include "profile/stacks.h"

#include "lib/files.h"
#include "lib/util.h"
#include "profile/pprof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS = 16 };
static const uint64_t LARGEST = (1ULL << 53) - 1;

/* ---------------------------------------------------------------- tree */

/* Makes room for one more element, by doubling. */
static void *with_room(void *array, size_t count, size_t size)
{
    if (count & (count - 1) || (count && count < 16))
        return array;
    array = reallocarray(array, count ? 2 * count : 16, size);
    if (!array || count >= UINT32_MAX / 2)
        abort();
    return array;
}

static uint64_t hash_of(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash ^ hash >> 32;
}

static uint64_t hash_of_name(const struct profile *profile, uint32_t number)
{
    return hash_of(profile->names[number], strlen(profile->names[number]));
}

static uint64_t hash_of_stack(const struct profile *profile, uint32_t number)
{
    const struct stack *stack = &profile->stacks[number];
    return hash_of((uint32_t[]){stack->outer, stack->name}, 2 * sizeof(uint32_t));
}

/* Makes room for one more number, so that a third of the slots is free. */
static void grow(const struct profile *profile, struct numbers *numbers,
                 uint64_t (*hash_of_number)(const struct profile *, uint32_t))
{
    if (numbers->size && numbers->used * 3 < numbers->size * 2)
        return;
    struct numbers old = *numbers;
    numbers->size = old.size ? 2 * old.size : 1024;
    numbers->slots = calloc(numbers->size, sizeof *numbers->slots);
    if (!numbers->slots)
        abort();
    for (size_t i = 0; i < old.size; i++) {
        if (!old.slots[i])
            continue;
        size_t at = hash_of_number(profile, old.slots[i] - 1) & (numbers->size - 1);
        while (numbers->slots[at])
            at = (at + 1) & (numbers->size - 1);
        numbers->slots[at] = old.slots[i];
    }
    free(old.slots);
}

struct profile *profile_new(void)
{
    struct profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        abort();
    profile->unit = "samples";
    profile->values = 1;
    profile->stacks = with_room(NULL, 0, sizeof *profile->stacks);
    profile->stacks[profile->stack_count++] = (struct stack){0};
    return profile;
}

uint32_t profile_name(struct profile *profile, const char *name, size_t length)
{
    struct numbers *numbers = &profile->name_numbers;
    grow(profile, numbers, hash_of_name);
    size_t at = hash_of(name, length) & (numbers->size - 1);
    for (; numbers->slots[at]; at = (at + 1) & (numbers->size - 1)) {
        const char *known = profile->names[numbers->slots[at] - 1];
        if (strncmp(known, name, length) == 0 && !known[length])
            return numbers->slots[at] - 1;
    }
    profile->names = with_room(profile->names, profile->name_count, sizeof *profile->names);
    char *copy = strndup(name, length);
    if (!copy)
        abort();
    profile->names[profile->name_count++] = copy;
    numbers->slots[at] = (uint32_t)profile->name_count;
    numbers->used++;
    return (uint32_t)profile->name_count - 1;
}

uint32_t profile_stack(struct profile *profile, uint32_t outer, uint32_t name)
{
    struct numbers *numbers = &profile->stack_numbers;
    grow(profile, numbers, hash_of_stack);
    size_t at = hash_of((uint32_t[]){outer, name}, 2 * sizeof(uint32_t)) & (numbers->size - 1);
    for (; numbers->slots[at]; at = (at + 1) & (numbers->size - 1)) {
        const struct stack *known = &profile->stacks[numbers->slots[at] - 1];
        if (known->outer == outer && known->name == name)
            return numbers->slots[at] - 1;
    }
    profile->stacks = with_room(profile->stacks, profile->stack_count, sizeof *profile->stacks);
    profile->stacks[profile->stack_count++] =
        (struct stack){.outer = outer, .name = name, .depth = profile->stacks[outer].depth + 1};
    numbers->slots[at] = (uint32_t)profile->stack_count;
    numbers->used++;
    return (uint32_t)profile->stack_count - 1;
}

bool profile_add(struct profile *profile, uint32_t stack, int side, uint64_t value)
{
    uint64_t *all = &profile->stacks[0].total[side];
    if (value > LARGEST - *all)
        return false;
    *all += value;
    profile->stacks[stack].own[side] += value;
    return true;
}

void profile_sum(struct profile *profile)
{
    struct stack *stacks = profile->stacks;
    for (int side = 0; side < VALUES; side++) {
        for (size_t i = 0; i < profile->stack_count; i++)
            stacks[i].total[side] = stacks[i].own[side];
        for (size_t i = profile->stack_count - 1; i > 0; i--)
            stacks[stacks[i].outer].total[side] += stacks[i].total[side];
    }
}

static bool is_recursive(const struct stack *stacks, uint32_t stack)
{
    for (uint32_t outer = stacks[stack].outer; outer; outer = stacks[outer].outer)
        if (stacks[outer].name == stacks[stack].name)
            return true;
    return false;
}

struct function *profile_functions(const struct profile *profile)
{
    const struct stack *stacks = profile->stacks;
    struct function *functions = calloc(profile->name_count + 1, sizeof *functions);
    if (!functions)
        abort();
    for (uint32_t i = 0; i < profile->name_count; i++)
        functions[i].name = i;
    for (uint32_t i = 1; i < profile->stack_count; i++) {
        struct function *function = &functions[stacks[i].name];
        bool counts = !is_recursive(stacks, i);
        for (int side = 0; side < SIDES; side++) {
            function->own[side] += stacks[i].own[side];
            function->total[side] += counts ? stacks[i].total[side] : 0;
        }
    }
    return functions;
}

struct profile *profile_reversed(const struct profile *profile)
{
    struct profile *reversed = profile_new();
    reversed->unit = profile->unit;
    reversed->rate = profile->rate;
    reversed->begin = profile->begin;
    reversed->length = profile->length;
    for (uint32_t i = 1; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        uint32_t made = 0;
        if (!stack->own[0] && !stack->own[1])
            continue;
        for (; stack->depth; stack = &profile->stacks[stack->outer]) {
            const char *name = profile->names[stack->name];
            made = profile_stack(reversed, made, profile_name(reversed, name, strlen(name)));
        }
        for (int side = 0; side < SIDES; side++)
            profile_add(reversed, made, side, profile->stacks[i].own[side]);
    }
    profile_sum(reversed);
    return reversed;
}

/* ---------------------------------------------------------------- folded text */

/* The number of one to 16 digits that ends at end and begins after a blank; *begin: that blank.
 * False: there is none. */
static bool number_before(const char *line, const char *end, const char **begin, uint64_t *value)
{
    const char *at = end;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (at == end || end - at > DIGITS || at == line || at[-1] != ' ')
        return false;
    *begin = at - 1;
    for (*value = 0; at < end; at++)
        *value = *value * 10 + (uint64_t)(*at - '0');
    return true;
}

/* "# RATE BEGIN LENGTH": no stack has this form, as each has a name behind the program's. */
static bool read_head(struct profile *profile, const char *line, size_t length)
{
    char *text = strndup(line, length), rest;
    unsigned long long begin, taken;
    unsigned rate;
    bool is_head = text && strspn(text, "# 0123456789") == length &&
                   sscanf(text, "# %u %llu %llu%c", &rate, &begin, &taken, &rest) == 3;
    free(text);
    if (!is_head)
        return false;
    profile->rate = rate;
    profile->begin = begin;
    profile->length = taken;
    return true;
}

const char *profile_read_folded(struct profile *profile, int side, const char *text, size_t length)
{
    const char *end = text + length, *after;
    uint64_t values[VALUES];
    if (memchr(text, '\0', length))
        return "neither folded stacks nor a gzipped pprof profile";
    for (size_t number = 1; text < end; number++) {
        const char *line = text, *newline = memchr(text, '\n', (size_t)(end - text));
        if (!newline)
            return "the last line has no end: the file is truncated";
        text = newline + 1;
        if (newline == line || read_head(profile, line, (size_t)(newline - line)))
            continue;
        after = newline;
        for (unsigned i = profile->values; i-- > 0;)
            if (!number_before(line, after, &after, &values[i]))
                return format("neither folded stacks nor a gzipped pprof profile: line %zu does "
                              "not end with a blank and a number",
                              number);
        uint32_t stack = 0;
        for (const char *name = line, *behind; name <= after; name = behind + 1) {
            behind = memchr(name, ';', (size_t)(after - name));
            behind = behind ? behind : after;
            stack =
                profile_stack(profile, stack, profile_name(profile, name, (size_t)(behind - name)));
        }
        for (unsigned i = 0; i < profile->values; i++)
            if (!profile_add(profile, stack, side + (int)i, values[i]))
                return format("line %zu: the sum of all is beyond 2^53", number);
    }
    return NULL;
}

/* ---------------------------------------------------------------- file */

/* All bytes of the file at path. */
static char *whole_file(const char *command, const char *path, size_t *length)
{
    struct stat status;
    int fd = open_regular(path, &status);
    char *data = fd < 0 ? NULL : malloc((size_t)status.st_size + 1);
    ssize_t got = data ? 0 : -1;
    *length = 0;
    while (data && *length < (size_t)status.st_size &&
           (got = read(fd, data + *length, (size_t)status.st_size - *length)) > 0)
        *length += (size_t)got;
    if (got < 0)
        die(FAILED, "%s: cannot read %s: %s", command, path,
            errno == EINVAL ? "not a regular file" : strerror(errno));
    close(fd);
    return data;
}

void profile_read(struct profile *profile, int side, const char *command, const char *path)
{
    size_t length;
    const char *data = whole_file(command, path, &length);
    const char *wrong = is_gzipped(data, length) ? profile_read_pprof(profile, side, data, length)
                                                 : profile_read_folded(profile, side, data, length);
    /* The last value is not 0 where another one isn't: what is in use was allocated. */
    if (!wrong && !profile->stacks[0].total[side + (int)profile->values - 1])
        wrong = length ? "there are no samples in it" : "the file is empty";
    if (wrong)
        die(FAILED, "%s: %s: %s", command, path, wrong);
}

/* ---------------------------------------------------------------- names */

/* Reads ":LINE" at the end of a text, and takes it away. */
static unsigned take_line(char *text)
{
    char *colon = strrchr(text, ':');
    if (!colon || !colon[1] || strlen(colon + 1) > 9 || colon[1 + strspn(colon + 1, "0123456789")])
        return 0;
    *colon = '\0';
    return (unsigned)strtoul(colon + 1, NULL, 10);
}

struct program_ids program_ids(const char *name)
{
    struct program_ids ids = {NULL, 0, 0};
    const char *begin = strrchr(name, '(');
    int length = 0;
    if (!begin || begin == name || begin[-1] != ' ' ||
        sscanf(begin, "(%9u/%9u)%n", &ids.pid, &ids.tid, &length) != 2 || !length || begin[length])
        return (struct program_ids){NULL, 0, 0};
    ids.program = format("%.*s", (int)(begin - 1 - name), name);
    return ids;
}

static bool is_library(const char *text)
{
    return strstr(text, ".so") || strncmp(text, "python", 6) == 0;
}

/* "[FILE] NAME" or "[FILE]". */
static struct name_parts bracketed_parts(char *text)
{
    char *end = strchr(text, ']');
    if (!end || (end[1] && end[1] != ' '))
        return (struct name_parts){OTHER_NAME, text, NULL, 0};
    char *file = format("%.*s", (int)(end - text - 1), text + 1);
    if (end[1])
        return (struct name_parts){C_FUNCTION, end + 2, file, 0};
    if (is_library(file))
        return (struct name_parts){C_FUNCTION, text, file, 0};
    return (struct name_parts){CAUSE, text, NULL, 0};
}

struct name_parts name_parts(const char *name)
{
    static const char kernel[] = "_[k]", jit[] = " [jit]";
    char *text = format("%s", name);
    size_t length = strlen(text);
    if (strcmp(text, "<GC>") == 0)
        return (struct name_parts){COLLECTION, text, NULL, 0};
    if (*text == '[')
        return bracketed_parts(text);
    if (ends_with(text, kernel)) {
        text[length - strlen(kernel)] = '\0';
        return (struct name_parts){KERNEL_FUNCTION, text, NULL, 0};
    }
    if (ends_with(text, jit))
        text[length -= strlen(jit)] = '\0';
    char *file = strstr(text, " (");
    if (!file || text[length - 1] != ')')
        return (struct name_parts){OTHER_NAME, format("%s", name), NULL, 0};
    /* "python3 (12)" has an id in the place of the file. */
    if (!file[2 + strspn(file + 2, "0123456789/)")])
        return (struct name_parts){OTHER_NAME, format("%s", name), NULL, 0};
    text[length - 1] = '\0';
    *file = '\0';
    unsigned line = take_line(file + 2);
    return (struct name_parts){PYTHON_FUNCTION, text, file + 2, line};
}
