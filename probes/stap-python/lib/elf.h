/*
 * The names of the markers, for stap-python.
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

/*
 * ELF files, by libelf: the markers in their SystemTap notes, and which CPython they contain.
 *
 * No file is trusted: reading ends in time and memory that its size bounds, whatever it contains.
 */

enum { MARKERS_MAX = 32 };

struct elf_file {
    bool wide;         /* 64 bits */
    unsigned machine;  /* e_machine */
    bool is_static;    /* a program without a dynamic linker */
    bool is_musl;      /* its dynamic linker is musl's */
    bool is_cpython;   /* contains CPython's code: Py_GetVersion */
    bool is_exported;  /* and exports it */
    const char *other; /* another Python whose code it contains or needs, "PyPy", or NULL */
    bool free_threaded;
    int minor;        /* of version 3.minor; -1: unknown */
    char *version;    /* "3.15.0rc1"; NULL: not known as exactly */
    char *libpython;  /* the soname of the libpython that it needs, or NULL */
    char *runpath;    /* where the dynamic linker looks for that first, or NULL */
    unsigned markers; /* the markers of provider python in its notes: bit N is marker_name(N) */
    unsigned entries; /* how many notes of that provider */
};

/* Reads the file at path into *file.  False, and *why is the reason, if that is not a regular file
 * of at most 1 GB, not ELF, damaged, or can't be opened. */
bool elf_read(const char *path, struct elf_file *file, const char **why);

/* The address, within the file's own addresses, of the function or object of that name which the
 * file at path exports; 0 if it exports none, or can't be read. */
unsigned long elf_symbol(const char *path, const char *name);

/* Whether the file at path exports or needs a function or object of that name. */
bool elf_names(const char *path, const char *name);

/* The address for which the start of a mapping of the file at path is linked: of the mapping at
 * this offset of the file, of code or of any segment.  -1: no segment is mapped there, or the file
 * can't be read. */
long elf_mapping_to_address(const char *path, unsigned long offset, bool is_code);

/* The name of the provider's marker of this number, from 0; NULL behind the last. */
const char *marker_name(unsigned number);

#endif
