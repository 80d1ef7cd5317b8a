/*
 * Interpreters: the CPythons of this machine, their own markers, and whether the shim supports
 * them.  None of them is run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INTERPRETER_H
#define INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "elf_file.h"

struct interpreter {
    char *path;           /* the program or library that was found */
    char *code;           /* the file with CPython's code: that or its libpython */
    struct elf_file file; /* of code */
    dev_t dev;            /* of code */
    ino_t ino;
};

/* Fills in *found for the program or library at path.  False, and *why is the reason, if the file
 * can't be read as elf_read() does, its libpython isn't found, or it is neither a CPython nor has
 * markers of provider python. */
bool interpreter_open(const char *path, struct interpreter *found, const char **why);

/* Finds the CPythons of this machine, each once, and returns their number: where the tapset looks,
 * in PATH, pyenv's and those in /opt; and the PyPys in PATH, which unsupported_reason() names. */
size_t interpreters_find(struct interpreter **found);

/* As unsafe_path(), for a program and what it loads when it starts: its libpython and library. */
const char *unsafe_python(const char *program);

/* What the interpreter's own marker of this number is worth, by native.list: "live", "partly",
 * "fires", "dead"; "-" if it is absent, "?" if the version is unknown. */
const char *native_marker_state(const struct interpreter *python, unsigned marker);

/* Whether the tapset looks for markers in the file at path, an absolute one. */
bool tapset_searches(const char *path);

/* Its version as its files' names have it, "3.11" or "3.14t"; of another Python its name, "PyPy";
 * NULL: unknown. */
char *short_version(const struct elf_file *file);

/* Why the shim does not support this CPython; NULL if it does. */
const char *unsupported_reason(const struct elf_file *file);

#endif
