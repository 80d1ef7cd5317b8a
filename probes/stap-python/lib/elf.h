/*
 * ELF files, by libelf: the markers in their SystemTap notes, and which CPython they contain.
 *
 * No file is trusted: its size bounds the time and memory of reading it, whatever it contains.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIB_ELF_H
#define LIB_ELF_H

#include <stdbool.h>

#include "generated/markers_list.h"

/* ---------------------------------------------------------------- marker names */

#define NAME(name, ...) #name,
static const char *const marker_names[] = {MARKERS_LIST(NAME)};
#undef NAME

/* ---------------------------------------------------------------- elf file */

enum { MARKERS_MAX = 32 };

struct elf_file {
    bool wide;         /* 64-bit */
    unsigned machine;  /* e_machine */
    bool is_static;    /* a program without a dynamic linker */
    bool is_musl;      /* its dynamic linker is musl's */
    bool is_cpython;   /* contains CPython's code: Py_GetVersion */
    bool is_exported;  /* exports Py_GetVersion */
    const char *other; /* the other Python that it contains or needs, "PyPy"; or NULL */
    bool free_threaded;
    int minor;         /* of version 3.minor; -1: unknown */
    char *version;     /* "3.15.0rc1"; NULL: micro version unknown */
    char *libpython;   /* the soname of the libpython that it needs, or NULL */
    char *runpath;     /* where the dynamic linker searches for libpython first, or NULL */
    unsigned markers;  /* the markers of provider python in its notes: bit N is marker_name(N) */
    unsigned entries;  /* the number of notes of provider python */
    char *own_operand; /* where function__summary has its last argument ("-8@8(%rsp)"), or NULL */
};

/* Reads the file at path into *file.  False, and the reason in *why, if it can't be opened, is not
 * a regular file of at most 1 GB, not ELF, or damaged. */
bool elf_read(const char *path, struct elf_file *file, const char **why);

/* The link-time address of the function or object name, if the file at path exports it; 0 if it
 * does not, or can't be read. */
unsigned long elf_symbol(const char *path, const char *name);

/* Whether the file at path exports or needs a function or object of this name. */
bool elf_names(const char *path, const char *name);

/* The link-time address of the start of a mapping of the file at path, which begins at this offset
 * of the file.  is_code: the mapping is executable.  -1: no segment is mapped there, or the file
 * can't be read. */
long elf_mapping_to_address(const char *path, unsigned long offset, bool is_code);

/* The name of the marker with this number, from 0; NULL after the last. */
const char *marker_name(unsigned number);

#endif
