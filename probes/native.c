/*
 * Reads the SystemTap notes (.note.stapsdt) of the interpreter's ELF file.  Called once, by
 * arm.c, when somebody first probes.  Whatever the file holds, nothing outside it is read.
 *
 * SPDX-License-Identifier: MIT
 */
#include "native.h"

#include "arm.h"
#include "debug.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "native_list.h"

enum { NOTE_TYPE_SDT = 3 }; /* <sys/sdt.h> */

struct file {
    const char *bytes;
    size_t size;
};

/* The bytes from offset on, or NULL where the file has fewer. */
static const void *part(const struct file *file, size_t offset, size_t size)
{
    if (offset > file->size || size > file->size - offset)
        return NULL;
    return file->bytes + offset;
}

/* The bit of a marker that is live in this version; 0 for others. */
static unsigned live_bit(const char *name)
{
    for (size_t i = 0; i < sizeof live / sizeof *live; i++)
        if (strcmp(marker_info[live[i].marker].name, name) == 0 && py.minor >= live[i].first &&
            py.minor <= live[i].last)
            return 1u << live[i].marker;
    return 0;
}

/* One note's descriptor: three addresses, then provider, marker and arguments, each with its NUL.
 */
static unsigned marker_of_note(const char *bytes, size_t size)
{
    size_t addresses = 3 * sizeof(ElfW(Addr));
    if (size <= addresses || bytes[size - 1] != '\0')
        return 0;
    const char *provider = bytes + addresses;
    const char *name = provider + strlen(provider) + 1;
    return name < bytes + size && strcmp(provider, "python") == 0 ? live_bit(name) : 0;
}

static size_t padded(size_t size)
{
    return (size + 3) & ~(size_t)3;
}

static unsigned markers_of_section(const struct file *file, const ElfW(Shdr) * section)
{
    unsigned markers = 0;
    struct file notes = {part(file, section->sh_offset, section->sh_size), section->sh_size};
    const ElfW(Nhdr) * note;
    size_t at = 0;
    while (notes.bytes && (note = part(&notes, at, sizeof *note))) {
        size_t name_at = at + sizeof *note;
        size_t bytes_at = name_at + padded(note->n_namesz);
        const char *name = part(&notes, name_at, note->n_namesz);
        const char *bytes = part(&notes, bytes_at, note->n_descsz);
        if (!name || !bytes)
            break;
        if (note->n_type == NOTE_TYPE_SDT && note->n_namesz == sizeof "stapsdt" &&
            memcmp(name, "stapsdt", sizeof "stapsdt") == 0)
            markers |= marker_of_note(bytes, note->n_descsz);
        at = bytes_at + padded(note->n_descsz);
    }
    return markers;
}

static unsigned markers_of_file(const struct file *file)
{
    const ElfW(Ehdr) *header = part(file, 0, sizeof *header);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header->e_shentsize != sizeof(ElfW(Shdr)) || header->e_shoff % sizeof(void *) != 0)
        return 0;
    unsigned markers = 0;
    for (size_t i = 0; i < header->e_shnum; i++) {
        const ElfW(Shdr) *section =
            part(file, header->e_shoff + i * sizeof *section, sizeof *section);
        if (section && section->sh_type == SHT_NOTE && section->sh_offset % 4 == 0)
            markers |= markers_of_section(file, section);
    }
    return markers;
}

static unsigned markers_of_path(const char *path)
{
    unsigned markers = 0;
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            markers = markers_of_file(&(struct file){bytes, size});
            munmap(bytes, size);
        }
    }
    close(fd);
    return markers;
}

/* The file with the interpreter's code, without symbolic links: libpython, or the program. */
static bool interpreter_path(char path[PATH_MAX])
{
    Dl_info info;
    if (!dladdr((void *)py.Py_GetVersion, &info) || !info.dli_fname)
        return false;
    /* For the program itself dli_fname is what it was called by. */
    const char *slash = strrchr(info.dli_fname, '/');
    bool is_library = strstr(slash ? slash : info.dli_fname, ".so") != NULL;
    return realpath(is_library ? info.dli_fname : "/proc/self/exe", path) != NULL;
}

static bool tapset_probes(const char *path)
{
    char glob[PATH_MAX];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *minor = strstr(paths[i], "%d");
        snprintf(glob, sizeof glob, "%.*s%d%s", (int)(minor - paths[i]), paths[i], py.minor,
                 minor + 2);
        if (fnmatch(glob, path, FNM_PATHNAME) == 0)
            return true;
    }
    return false;
}

unsigned native_markers(void)
{
    char path[PATH_MAX];
    if (!interpreter_path(path) || !tapset_probes(path))
        return 0;
    unsigned markers = markers_of_path(path);
    debug_log("%s: its own markers %x are live", path, markers);
    return markers;
}
