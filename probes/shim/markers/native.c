/*
 * Finds the semaphores of the interpreter's native markers by the SystemTap notes (.note.stapsdt)
 * of its ELF file.  The file is not trusted: nothing is read beyond its end, and no semaphore
 * outside the writable memory of the object that was loaded from it.  Any thread; the file is read
 * once, under pthread_once().
 *
 * SPDX-License-Identifier: MIT
 */

#include "generated/native_list.h"
#include "markers/enabled.h"
#include "markers/markers.h"
#include "os/process.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    NOTE_TYPE_SDT = 3, /* <sys/sdt.h> */
    PART_MAX = 1 << 20,
};

typedef const volatile unsigned short *semaphore;

/* By marker; NULL: the interpreter does not have the marker, or it does not silence the shim's. The
 * semaphores are unmapped with the interpreter. */
static semaphore semaphores[MARKERS];

/* ---------------------------------------------------------------- the loaded object */

struct object {
    ElfW(Addr) bias; /* the difference between a load-time and a link-time address */
    const char *path;
    const ElfW(Phdr) * headers;
    size_t count;
};

/* Whether one loaded segment with these flags contains the bytes at the link-time address. */
static bool has(const struct object *object, ElfW(Addr) address, size_t size, unsigned flags)
{
    for (const ElfW(Phdr) *segment = object->headers; segment < object->headers + object->count;
         segment++)
        if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags &&
            address >= segment->p_vaddr && size <= segment->p_memsz &&
            address - segment->p_vaddr <= segment->p_memsz - size)
            return true;
    return false;
}

/* For dl_iterate_phdr(): stops at the object with the interpreter's code, libpython or program. */
static int is_interpreter(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct object *object = data;
    *object =
        (struct object){info->dlpi_addr, info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe",
                        info->dlpi_phdr, info->dlpi_phnum};
    return has(object, (ElfW(Addr))py.Py_GetVersion - object->bias, 1, PF_X);
}

/* ---------------------------------------------------------------- the object's file */

struct file {
    const char *bytes; /* memory of the file's size */
    size_t size;
    const int *fd; /* note_part() reads from this; NULL: all bytes are there already */
};

/* The bytes from offset on; NULL: the file has fewer, or they can't be read.  By pread(), not by
 * mapping the file: pages of a mapped file are gone when it is truncated. */
static const void *note_part(const struct file *file, size_t offset, size_t size)
{
    if (offset > file->size || size > file->size - offset)
        return NULL;
    const char *bytes = file->bytes + offset;
    if (file->fd &&
        (size > PART_MAX || pread(*file->fd, (char *)bytes, size, (off_t)offset) != (ssize_t)size))
        return NULL;
    return bytes;
}

/* The ELF header; NULL: the object was not loaded from this file, as another file may have its path
 * by now.  Compares program headers and note segments, which have the build ID. */
static const ElfW(Ehdr) * header_of(const struct file *file, const struct object *object)
{
    const ElfW(Ehdr) *header = note_part(file, 0, sizeof *header);
    size_t size = object->count * sizeof *object->headers;
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof *object->headers || header->e_phnum != object->count ||
        header->e_shentsize != sizeof(ElfW(Shdr)) || header->e_shoff % sizeof(void *) != 0)
        return NULL;
    const void *headers = note_part(file, header->e_phoff, size);
    if (!headers || memcmp(headers, object->headers, size) != 0)
        return NULL;
    for (const ElfW(Phdr) *segment = object->headers; segment < object->headers + object->count;
         segment++) {
        if (segment->p_type != PT_NOTE || !has(object, segment->p_vaddr, segment->p_filesz, PF_R))
            continue;
        const void *notes = note_part(file, segment->p_offset, segment->p_filesz);
        if (!notes || memcmp(notes, (void *)(object->bias + segment->p_vaddr), segment->p_filesz))
            return NULL;
    }
    return header;
}

static const ElfW(Shdr) *
    section_of(const struct file *file, const ElfW(Ehdr) * header, size_t index)
{
    const ElfW(Shdr) *section = NULL;
    if (index < header->e_shnum)
        section = note_part(file, header->e_shoff + index * sizeof *section, sizeof *section);
    return section;
}

/* The address of .stapsdt.base; 0: there is none. */
static ElfW(Addr) base_of(const struct file *file, const ElfW(Ehdr) * header)
{
    static const char base[] = ".stapsdt.base";
    const ElfW(Shdr) *names = section_of(file, header, header->e_shstrndx);
    for (size_t i = 0; names && i < header->e_shnum; i++) {
        const ElfW(Shdr) *section = section_of(file, header, i);
        const char *name =
            section ? note_part(file, names->sh_offset + section->sh_name, sizeof base) : NULL;
        if (name && memcmp(name, base, sizeof base) == 0)
            return section->sh_addr;
    }
    return 0;
}

/* ---------------------------------------------------------------- the file's notes */

/* Whether the shim is silent for a marker of this kind while it is probed in the interpreter's own
 * file. */
enum { SILENCES_live = true, SILENCES_partly = false, SILENCES_fires = true };

static const struct {
    enum marker marker;
    bool silences;
    int first, last; /* minor versions in which it fires */
} native[] = {
#define NATIVE(kind, marker, first, last) {MARKER_##marker, SILENCES_##kind, first, last},
    NATIVE_LIST(NATIVE)
#undef NATIVE
};

/* The marker of this name, if in this CPython it silences the shim's; else MARKERS. */
static enum marker silencing(const char *name)
{
    for (size_t i = 0; i < sizeof native / sizeof *native; i++)
        if (strcmp(marker_info[native[i].marker].name, name) == 0 && native[i].silences &&
            py.minor >= native[i].first && py.minor <= native[i].last)
            return native[i].marker;
    return MARKERS;
}

/* Reads the descriptor of a note: three addresses, then provider, marker and arguments, each with a
 * NUL.  If prelink has moved the file after the notes were written, their addresses are off by as
 * much as .stapsdt.base has moved.  All sites of a marker share one semaphore. */
static void read_descriptor(const struct object *object, ElfW(Addr) base, const char *bytes,
                            size_t size)
{
    struct {
        ElfW(Addr) location, base, semaphore;
    } link;
    if (size <= sizeof link || bytes[size - 1] != '\0')
        return;
    memcpy(&link, bytes, sizeof link);
    const char *provider = bytes + sizeof link;
    const char *name = provider + strlen(provider) + 1;
    if (link.semaphore == 0 || name >= bytes + size || strcmp(provider, "python") != 0)
        return;
    if (base && link.base)
        link.semaphore += base - link.base;
    enum marker marker = silencing(name);
    if (marker != MARKERS && link.semaphore % sizeof(unsigned short) == 0 &&
        has(object, link.semaphore, sizeof(unsigned short), PF_R | PF_W))
        semaphores[marker] = (semaphore)(object->bias + link.semaphore);
}

static size_t padded(size_t size)
{
    return (size + 3) & ~(size_t)3;
}

static void read_section(const struct file *file, const ElfW(Shdr) * section,
                         const struct object *object, ElfW(Addr) base)
{
    struct file notes = {note_part(file, section->sh_offset, section->sh_size), section->sh_size,
                         NULL};
    const ElfW(Nhdr) * note;
    size_t at = 0;
    while (notes.bytes && (note = note_part(&notes, at, sizeof *note))) {
        size_t name_at = at + sizeof *note;
        size_t bytes_at = name_at + padded(note->n_namesz);
        const char *name = note_part(&notes, name_at, note->n_namesz);
        const char *bytes = note_part(&notes, bytes_at, note->n_descsz);
        if (!name || !bytes)
            break;
        if (note->n_type == NOTE_TYPE_SDT && note->n_namesz == sizeof "stapsdt" &&
            memcmp(name, "stapsdt", sizeof "stapsdt") == 0)
            read_descriptor(object, base, bytes, note->n_descsz);
        at = bytes_at + padded(note->n_descsz);
    }
}

/* False: the object was not loaded from this file. */
static bool read_file(const struct file *file, const struct object *object)
{
    const ElfW(Ehdr) *header = header_of(file, object);
    if (!header)
        return false;
    ElfW(Addr) base = base_of(file, header);
    for (size_t i = 0; i < header->e_shnum; i++) {
        const ElfW(Shdr) *section = section_of(file, header, i);
        if (section && section->sh_type == SHT_NOTE && section->sh_offset % 4 == 0)
            read_section(file, section, object, base);
    }
    return true;
}

static bool read_path(const struct object *object)
{
    bool done = false;
    /* A relative path may name another file by now, perhaps one that blocks open(). */
    if (object->path[0] != '/')
        return false;
    int fd = open(object->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    off_t end = lseek(fd, 0, SEEK_END); /* -1: a pipe; of a folder it may be too great for mmap() */
    if (end > 0) {
        size_t size = (size_t)end;
        void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (bytes != MAP_FAILED) {
            done = read_file(&(struct file){bytes, size, &fd}, object);
            munmap(bytes, size);
        }
    }
    close(fd);
    return done;
}

/* ---------------------------------------------------------------- probed markers */

static void log_found(const char *path, bool read)
{
    if (!debug_on)
        return;
    char resolved[PATH_MAX], names[256] = "";
    size_t length = 0;
    for (int i = 0; i < MARKERS; i++)
        if (semaphores[i] && length < sizeof names)
            length +=
                (size_t)snprintf(names + length, sizeof names - length, " %s", marker_info[i].name);
    if (realpath(path, resolved))
        path = resolved;
    if (read)
        debug_log("%s: its own markers that silence the shim's:%s", path, *names ? names : " none");
    else
        debug_log("%s: not the file that runs here: its own markers are not known", path);
}

static void find(void)
{
    struct object object;
    if (dl_iterate_phdr(is_interpreter, &object))
        log_found(object.path, read_path(&object));
}

unsigned native_enabled(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    unsigned probed = 0;
    for (int i = 0; i < MARKERS; i++)
        if (semaphores[i] && *semaphores[i])
            probed |= 1u << i;
    return probed;
}
