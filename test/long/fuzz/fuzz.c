/*
 * See fuzz.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ASan's (sanitizer/allocator_interface.h) */
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                              void (*)(const volatile void *));

static __thread bool inside;
static bool leaving;
static jmp_buf way_out;
static int left_with;
/* More than any of them prints. */
static char said[1 << 20], complained[1 << 16];

/* ---------------------------------------------------------------- what it has allocated */

/* A table of addresses by their hashes. */
enum { PLACES = 1 << 20 };
static const volatile void *allocated[PLACES];
static const char gone;
/* The places that were taken, some perhaps twice. */
static size_t taken[PLACES], taken_count;

static size_t place_of(const volatile void *address)
{
    return ((uintptr_t)address >> 4) * 2654435761U % PLACES;
}

static void on_malloc(const volatile void *address, size_t size)
{
    (void)size;
    if (!inside || !address)
        return;
    size_t at = place_of(address);
    while (allocated[at] && allocated[at] != &gone && taken_count < PLACES)
        at = (at + 1) % PLACES;
    if (taken_count == PLACES)
        return;
    allocated[at] = address;
    taken[taken_count++] = at;
}

static void on_free(const volatile void *address)
{
    if (!inside || !address)
        return;
    size_t at = place_of(address);
    while (allocated[at] && allocated[at] != address)
        at = (at + 1) % PLACES;
    if (allocated[at])
        allocated[at] = &gone;
}

static void free_all(void)
{
    while (taken_count > 0) {
        size_t at = taken[--taken_count];
        if (allocated[at] && allocated[at] != &gone)
            free((void *)allocated[at]);
        allocated[at] = NULL;
    }
}

/* ---------------------------------------------------------------- running */

void __real_exit(int status) __attribute__((noreturn));
void __wrap_exit(int status) __attribute__((noreturn));

void __wrap_exit(int status)
{
    if (leaving)
        fuzz_leave(status);
    __real_exit(status);
}

int __real_atexit(void (*function)(void));
int __wrap_atexit(void (*function)(void));

/* What a run registers would be called long after it, and libc's list of it be freed with the run's
 * memory. */
int __wrap_atexit(void (*function)(void))
{
    return leaving ? 0 : __real_atexit(function);
}

void fuzz_leave(int status)
{
    left_with = status;
    longjmp(way_out, 1);
}

void (*fuzz_after_exit)(void);

int fuzz_run(void (*function)(void))
{
    static FILE *out, *err;
    FILE *real_out = stdout, *real_err = stderr;
    if (!out) {
        out = fmemopen(said, sizeof said, "w");
        err = fmemopen(complained, sizeof complained, "w");
        fuzz_check(out && err, "no memory");
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
        /* What libc allocates once is to stay. */
        stdout = out;
        stderr = err;
        if (setjmp(way_out) == 0) {
            leaving = true;
            function();
        } else if (fuzz_after_exit) {
            fuzz_after_exit();
        }
    }
    rewind(out);
    rewind(err);
    stdout = out;
    stderr = err;
    left_with = -1;
    if (setjmp(way_out) == 0) {
        inside = leaving = true;
        function();
    } else if (fuzz_after_exit) {
        fuzz_after_exit();
    }
    inside = leaving = false;
    fflush(out);
    fflush(err);
    /* fmemopen() ends it where it was written to. */
    said[ftell(out)] = complained[ftell(err)] = '\0';
    stdout = real_out;
    stderr = real_err;
    free_all();
    return left_with;
}

const char *fuzz_said(void)
{
    return said;
}

const char *fuzz_complained(void)
{
    return complained;
}

static void check_plain(const char *text, const char *what)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        fuzz_check((*c >= 0x20 || *c == '\n') && *c != 0x7f &&
                       (*c != 0xc2 || c[1] < 0x80 || c[1] >= 0xa0),
                   what);
}

void fuzz_check_said(int status)
{
    const char *end = strchr(complained, '\n');
    check_plain(said, "a control character on stdout");
    check_plain(complained, "a control character on stderr");
    fuzz_check(status <= 0 || (end && !end[1]), "not one line of complaint");
}

/* ---------------------------------------------------------------- the rest */

const char *fuzz_folder(void)
{
    const char *folder = getenv("FUZZ_FOLDER");
    fuzz_check(folder && *folder, "FUZZ_FOLDER: a folder to write in, as test/long/fuzz/run makes");
    return folder;
}

void fuzz_check(int holds, const char *what)
{
    if (holds)
        return;
    dprintf(2, "fuzz: %s\nstdout: %s\nstderr: %s\n", what, said, complained);
    abort();
}

char *fuzz_part(const uint8_t **data, size_t *size, size_t *length)
{
    if (!*data)
        return NULL;
    const uint8_t *end = *size ? memchr(*data, 0xff, *size) : NULL;
    *length = end ? (size_t)(end - *data) : *size;
    char *part = malloc(*length + 1);
    fuzz_check(part != NULL, "no memory");
    memcpy(part, *data, *length);
    part[*length] = '\0';
    *size -= end ? *length + 1 : *length;
    *data = end ? end + 1 : NULL;
    return part;
}
