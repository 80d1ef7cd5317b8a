/*
 * The Python interpreters of this machine: their native markers, whether the shim supports them,
 * and by which .pth or .start file they load it.  None of them is run.
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

/* ---------------------------------------------------------------- native.list */

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

struct interpreter {
    char *path;           /* the program or library that was found */
    char *code;           /* the file with CPython's code: path's, or its libpython */
    struct elf_file file; /* of code */
    dev_t dev;            /* of code */
    ino_t ino;
};

/* Fills in *found for the program or library at path.  False, and the reason in *why, if elf_read()
 * fails, its libpython isn't found, or it is neither a CPython nor has markers of provider python.
 */
bool interpreter_open(const char *path, struct interpreter *found, const char **why);

/* Finds the CPythons of this machine, each once, and returns their number.  Searches the paths of
 * native.list, PATH, pyenv's versions and /opt.  Also finds the PyPys in PATH, for which
 * unsupported_reason() is not NULL. */
size_t interpreters_find(struct interpreter **found);

/* As unsafe_file(), for a program and what it loads at its start, if it is a CPython: libpython and
 * its other libraries, pyvenv.cfg, the standard library. */
const char *unsafe_python(const char *program);

/* The state of a native marker of the interpreter, by native.list: "live", "partly", "fires" or
 * "dead"; "-" if the marker is absent, "?" if the version is unknown. */
const char *native_marker_state(const struct interpreter *python, unsigned marker);

/* Whether the tapset searches the file at path, an absolute one, for markers. */
bool tapset_searches(const char *path);

/* The version as in names of files, "3.11" or "3.14t"; another Python's name, "PyPy"; NULL if
 * unknown. */
char *short_version(const struct elf_file *file);

/* The reason why the shim does not support this CPython; NULL if it does. */
const char *unsupported_reason(const struct elf_file *file);

/* ---------------------------------------------------------------- pyenv */

/* The interpreter that a pyenv shim starts: a script with Python's name in $PYENV_ROOT/shims.  The
 * version is that of PYENV_VERSION, of .python-version in this directory or the nearest above, or
 * of pyenv's file `version`; for "system" the first in PATH that is not pyenv's.  path itself if it
 * is not a pyenv shim; NULL, and the reason in *why, if the version does not have the program. */
const char *pyenv_program(const char *path, const char **why);

/* ---------------------------------------------------------------- site packages */

/*
 * A .pth file in site-packages, of `stap-python enable` or of a package, makes an interpreter load
 * the shim at each start, and from 3.15 on the .start file beside it.  A virtual environment has
 * site-packages of its own, and uses those of its base interpreter only if its pyvenv.cfg says so.
 */

/* The .pth or .start file by which the interpreter at path loads the shim; NULL if there is none,
 * the link leads to no shim, or path is not an interpreter. */
char *pth_of(const char *path);

/* That file of the base interpreter, if the interpreter at path belongs to a virtual environment
 * without system site-packages, which does not load the shim; else NULL. */
char *pth_of_base_only(const char *path);

/* ---------------------------------------------------------------- other python */

/* Warns if one of the first words (NULL-terminated) is PyPy, or a script that PyPy runs: the shim
 * does nothing in it. */
void warn_of_other_python(char **words);

/* As warn_of_other_python(), for a command line of the shell. */
void warn_of_other_python_in(const char *command);

#endif
