/*
 * native.list, for stap-python.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIB_INTERPRETERS_H
#define LIB_INTERPRETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "generated/native_list.h"
#include "lib/elf.h"

/* ---------------------------------------------------------------- native table */

#define NATIVE(kind, marker, first, last) {#kind, #marker, first, last},
static const struct {
    const char *kind, *marker;
    int first, last;
} native[] = {NATIVE_LIST(NATIVE)};
#undef NATIVE

#define PATH(glob) glob,
static const char *const native_paths[] = {NATIVE_PATHS(PATH)};
#undef PATH

/* ---------------------------------------------------------------- interpreter */

/*
 * Interpreters: the CPythons of this machine, their own markers, and whether the shim supports
 * them.  None of them is run.
 */

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

/* ---------------------------------------------------------------- pyenv */

/*
 * pyenv's shims: scripts of Python's name in $PYENV_ROOT/shims, which start the interpreter of the
 * version that pyenv's own files choose.  None of them is run.
 */

/* The interpreter that the program at path starts if that is a shim of pyenv's: of the version that
 * PYENV_VERSION names, the file .python-version of this directory or one above, or pyenv's own file
 * version; for "system" the next in PATH.  path itself if it is not such a shim; NULL, and *why is
 * the reason, if that version does not have the program. */
const char *pyenv_program(const char *path, const char **why);

/* ---------------------------------------------------------------- site packages */

/*
 * Which .pth file in its site-packages makes an interpreter load the shim at each start: that of
 * `stap-python enable` or of a package.  A virtual environment has site-packages of its own, and
 * those of its base interpreter only if its pyvenv.cfg says so.
 */

/* The .pth file by which the interpreter at path loads the shim at each start; NULL if there is
 * none, its link leads to no shim, or path is not an interpreter. */
char *pth_of(const char *path);

/* The .pth file of its base interpreter, if the interpreter at path is that of a virtual
 * environment without system site-packages, which therefore does not load the shim; else NULL. */
char *pth_of_base_only(const char *path);

/* ---------------------------------------------------------------- other python */

/*
 * Commands that start another Python than CPython, which the shim does nothing in.
 */

/* Says on stderr if one of the first of these words, which end with NULL, is a program that is or
 * is run by PyPy: nothing will be seen of it. */
void warn_of_other_python(char **words);

/* The same for a command line of the shell. */
void warn_of_other_python_in(const char *command);

#endif
