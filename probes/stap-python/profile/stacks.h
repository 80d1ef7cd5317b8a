/*
 * A profile in memory: folded text and pprof files are read into it, and all writers read it.
 *
 * The stacks are a tree, in which each name and each stack stands once.  A profile has two sides,
 * whose values can be compared: side 0 alone, or 0 before and 1 after.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROFILE_STACKS_H
#define PROFILE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIDES = 2, VALUES = 4 };

/* A stack is its outer stack and one name more. */
struct stack {
    uint32_t outer;         /* the number of the stack around it, which is smaller than its own */
    uint32_t name;          /* the number of its innermost name */
    uint32_t depth;         /* the number of its names */
    uint64_t own[VALUES];   /* of the sides, or of memory */
    uint64_t total[VALUES]; /* own, and those of all stacks that begin with it: profile_sum() */
};

/* Open addressing: numbers from 1 on, 0 where there is none. */
struct numbers {
    uint32_t *slots;
    size_t size, used;
};

struct profile {
    char **names; /* any bytes but newline and NUL */
    size_t name_count;
    struct stack *stacks; /* stacks[0] has no names, and the totals of all */
    size_t stack_count;
    const char *unit; /* of the values */
    /* What a line of folded text ends with: 1 value; or VALUES, with one side, of `pyheap -G
     * record=1`: the bytes and blocks in use, and those that were allocated. */
    unsigned values;
    unsigned rate;          /* samples a second, or bytes between samples of memory; 0: unknown */
    uint64_t begin, length; /* nanoseconds since 1970, and nanoseconds; 0: unknown */
    struct numbers name_numbers, stack_numbers;
};

/* An empty profile of samples. */
struct profile *profile_new(void);

/* The number of a name. */
uint32_t profile_name(struct profile *profile, const char *name, size_t length);

/* The number of the stack outer with this name inside. */
uint32_t profile_stack(struct profile *profile, uint32_t outer, uint32_t name);

/* Adds to the own value of a stack.  False if the sum of all would exceed 2^53 - 1, up to which
 * JavaScript counts. */
bool profile_add(struct profile *profile, uint32_t stack, int side, uint64_t value);

/* Adds lines "name;name;name VALUE", the outermost name first.  The reason why the text is not such
 * lines, or NULL: all was added.  A line "# RATE BEGIN LENGTH" of `pyprof -G record=1` and pyheap's
 * sets these fields. */
const char *profile_read_folded(struct profile *profile, int side, const char *text, size_t length);

/* Reads a file: pprof if it is gzipped, else folded text.  Exits with an error line if it is
 * neither, empty or truncated; command begins that line. */
void profile_read(struct profile *profile, int side, const char *command, const char *path);

/* Fills in the totals. */
void profile_sum(struct profile *profile);

/* A function's values: a recursive one counts once in a stack. */
struct function {
    uint32_t name;
    uint64_t own[SIDES], total[SIDES];
};

/* The functions in the order of their names' numbers, one for each name; after profile_sum(). */
struct function *profile_functions(const struct profile *profile);

/* The profile with each stack inside out, so that stacks with the same innermost name are one. */
struct profile *profile_reversed(const struct profile *profile);

/* ---------------------------------------------------------------- names */

enum name_kind {
    PYTHON_FUNCTION, /* "f (x.py)", "f (x.py:3)", "f (x.py:3) [jit]" */
    C_FUNCTION,      /* "[libc.so.6] read", "[libc.so.6]", "[python3.13]" */
    KERNEL_FUNCTION, /* "vfs_read_[k]" */
    COLLECTION,      /* "<GC>" */
    CAUSE,           /* "[futex]", "[unknown]", "[GIL]": why there is no function */
    OTHER_NAME, /* a program, "python3", "python3 (12)", "python3 (12/13)", or any other text */
    NAME_KINDS
};

struct name_parts {
    enum name_kind kind;
    char *function; /* without file and library, unless there is nothing else; never NULL */
    char *file;     /* or library; NULL: none */
    unsigned line;  /* 0: none */
};

struct name_parts name_parts(const char *name);

/* A name of a program with its ids, as in the root of `pyprof -G record=1`: "python3 (12/13)". */
struct program_ids {
    char *program; /* NULL: the name is not of this form */
    unsigned pid, tid;
};

struct program_ids program_ids(const char *name);

#endif
