/*
 * SPDX-License-Identifier: MIT
 */

#include "lib/elf.h"

#include "lib/files.h"
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NOTE_TYPE_SDT = 3,        /* <sys/sdt.h> */
    FILE_MAX = 1 << 30,       /* bytes; CPython has tens of millions */
    READ_MAX = 128 << 20,     /* bytes of a file that are read; of CPython some millions */
    SYMBOLS_MAX = 2 << 20,    /* of a table */
    OPERANDS_MAX = 256,       /* bytes; the shim's have some 50 */
    DYNAMIC_MAX = 1 << 16,    /* entries */
    CONSTANTS_MAX = 64 << 20, /* bytes */
};

const char *marker_name(unsigned number)
{
    _Static_assert(sizeof marker_names / sizeof *marker_names <= MARKERS_MAX, "bits of a word");
    return number < sizeof marker_names / sizeof *marker_names ? marker_names[number] : NULL;
}

/* ---------------------------------------------------------------- sections within a budget */

/* Headers may refer to any part of the file any number of times, and the file may be another
 * user's, sparse, and as large as that likes.  The budget, the file's size or READ_MAX, bounds what
 * is read, and the memory for that. */
static struct {
    uint64_t left; /* bytes that may still be read */
    char *read;    /* for each section, whether it has been read */
} budget;

/* Whether the file has so many sections or segments that their number is not in its header: libelf
 * takes memory for each, with a file of 1 GB two gigabytes.  CPython has some 40 and 15. */
static bool has_countless_parts(int fd)
{
    union {
        unsigned char ident[EI_NIDENT];
        Elf32_Ehdr narrow;
        Elf64_Ehdr wide;
    } head = {0};
    ssize_t got = pread(fd, &head, sizeof head, 0);
    if (got > 0 && head.ident[EI_CLASS] == ELFCLASS64)
        return (head.wide.e_shoff && !head.wide.e_shnum) || head.wide.e_phnum == PN_XNUM;
    return got > 0 &&
           ((head.narrow.e_shoff && !head.narrow.e_shnum) || head.narrow.e_phnum == PN_XNUM);
}

/* The caller closes the result with close_elf().  NULL, and the reason in *why, on failure. */
static Elf *open_elf(const char *path, int *fd, const char **why)
{
    struct stat status;
    size_t sections;
    *fd = open_regular(path, &status);
    *why = errno == EINVAL ? "not a regular file" : strerror(errno);
    if (*fd < 0)
        return NULL;
    *why = status.st_size > FILE_MAX ? "larger than 1 GB" : "not an ELF file";
    elf_version(EV_CURRENT);
    /* ELF_C_READ, not mmap(): the file may be truncated while it is read. */
    Elf *elf = status.st_size > FILE_MAX || has_countless_parts(*fd)
                   ? NULL
                   : elf_begin(*fd, ELF_C_READ, NULL);
    budget.left = status.st_size < READ_MAX ? (uint64_t)status.st_size : READ_MAX;
    if (elf && elf_kind(elf) == ELF_K_ELF && elf_getshdrnum(elf, &sections) == 0 &&
        (budget.read = calloc(sections + 1, 1)))
        return elf;
    elf_end(elf);
    close(*fd);
    return NULL;
}

static void close_elf(Elf *elf, int fd)
{
    free(budget.read);
    elf_end(elf);
    close(fd);
}

/* Also fills in *header.  NULL if the section has no data, or the budget is spent. */
static Elf_Data *data_of(Elf_Scn *section, GElf_Shdr *header)
{
    if (!gelf_getshdr(section, header) || header->sh_type == SHT_NOBITS)
        return NULL;
    char *read = &budget.read[elf_ndxscn(section)];
    if (!*read && header->sh_size > budget.left)
        return NULL;
    budget.left -= *read ? 0 : header->sh_size;
    *read = 1;
    Elf_Data *data = elf_getdata(section, NULL);
    return data && data->d_buf ? data : NULL;
}

static Elf_Scn *first_section(Elf *elf, unsigned type, GElf_Shdr *header)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
        if (gelf_getshdr(section, header) && header->sh_type == type)
            return section;
    return NULL;
}

/* The section of this number, if its last byte is a NUL, so that its strings end; else NULL. */
static Elf_Data *strings_of(Elf *elf, size_t number)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_getscn(elf, number);
    Elf_Data *data = section ? data_of(section, &header) : NULL;
    return data && data->d_size && !((char *)data->d_buf)[data->d_size - 1] ? data : NULL;
}

static const char *string_at(const Elf_Data *strings, uint64_t at)
{
    return strings && at < strings->d_size ? (char *)strings->d_buf + at : NULL;
}

/* ---------------------------------------------------------------- notes */

static void read_descriptor(struct elf_file *file, const char *bytes, size_t size)
{
    size_t link = 3 * (file->wide ? 8 : 4);
    if (size <= link || bytes[size - 1] != '\0')
        return;
    const char *provider = bytes + link;
    const char *name = provider + strlen(provider) + 1;
    if (name >= bytes + size || strcmp(provider, "python") != 0)
        return;
    file->entries++;
    const char *operands = name + strlen(name) + 1;
    if (strcmp(name, "function__summary") == 0 && operands < bytes + size &&
        bytes + size - operands < OPERANDS_MAX) {
        const char *last = strrchr(operands, ' ');
        free(file->own_operand);
        file->own_operand = strdup(last ? last + 1 : operands);
    }
    for (unsigned i = 0; marker_name(i); i++)
        if (strcmp(marker_name(i), name) == 0)
            file->markers |= 1u << i;
}

static void read_notes(struct elf_file *file, Elf_Data *data)
{
    GElf_Nhdr note;
    size_t name, bytes, at = 0;
    while ((at = gelf_getnote(data, at, &note, &name, &bytes)) > 0)
        if (note.n_type == NOTE_TYPE_SDT && note.n_namesz == sizeof "stapsdt" &&
            memcmp((char *)data->d_buf + name, "stapsdt", sizeof "stapsdt") == 0)
            read_descriptor(file, (char *)data->d_buf + bytes, note.n_descsz);
}

/* ---------------------------------------------------------------- symbols */

/* needed: also finds an undefined symbol, which another file defines. */
static bool find_any_symbol(Elf *elf, unsigned table, const char *name, bool needed,
                            GElf_Sym *symbol)
{
    GElf_Shdr header;
    Elf_Scn *section = first_section(elf, table, &header);
    Elf_Data *data = section ? data_of(section, &header) : NULL;
    Elf_Data *strings = data ? strings_of(elf, header.sh_link) : NULL;
    for (int i = 0; strings && i < SYMBOLS_MAX && gelf_getsym(data, i, symbol); i++) {
        const char *found = string_at(strings, symbol->st_name);
        if (found && (needed || symbol->st_shndx != SHN_UNDEF) && strcmp(found, name) == 0)
            return true;
    }
    return false;
}

static bool find_symbol(Elf *elf, unsigned table, const char *name, GElf_Sym *symbol)
{
    return find_any_symbol(elf, table, name, false, symbol);
}

bool elf_names(const char *path, const char *name)
{
    int fd;
    const char *why;
    GElf_Sym symbol = {0};
    Elf *elf = open_elf(path, &fd, &why);
    bool found = elf && find_any_symbol(elf, SHT_DYNSYM, name, true, &symbol);
    if (elf)
        close_elf(elf, fd);
    return found;
}

unsigned long elf_symbol(const char *path, const char *name)
{
    int fd;
    const char *why;
    GElf_Sym symbol = {0};
    Elf *elf = open_elf(path, &fd, &why);
    if (!elf)
        return 0;
    bool found = find_symbol(elf, SHT_DYNSYM, name, &symbol);
    close_elf(elf, fd);
    return found ? symbol.st_value : 0;
}

/* Finds the segment that has the byte at this address. */
static bool find_segment(Elf *elf, GElf_Addr at, GElf_Phdr *segment)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, segment); i++) {
        if (segment->p_type == PT_LOAD && at >= segment->p_vaddr &&
            at - segment->p_vaddr < segment->p_filesz)
            return true;
    }
    return false;
}

long elf_mapping_to_address(const char *path, unsigned long offset, bool is_code)
{
    int fd;
    const char *why;
    Elf *elf = open_elf(path, &fd, &why);
    if (!elf)
        return -1;
    size_t count = 0;
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    GElf_Phdr segment;
    bool found = false;
    elf_getphdrnum(elf, &count);
    /* The kernel maps whole pages, and two segments may share one in the file (lld; GNU ld for
     * pages of 64 KB). */
    for (size_t i = 0; !found && i < count && gelf_getphdr(elf, (int)i, &segment); i++)
        found = segment.p_type == PT_LOAD && (!is_code || segment.p_flags & PF_X) &&
                offset >= (segment.p_offset & ~(page - 1)) &&
                offset < segment.p_offset + segment.p_filesz;
    close_elf(elf, fd);
    return found ? (long)(segment.p_vaddr + offset - segment.p_offset) : -1;
}

/* ---------------------------------------------------------------- CPython's version */

static int plausible(int minor)
{
    return minor >= 0 && minor < 100 ? minor : -1;
}

/* The minor version in "3.14.7"; -1: unknown. */
static int minor_of(const char *version)
{
    int minor;
    return version && sscanf(version, "3.%d", &minor) == 1 ? plausible(minor) : -1;
}

/* By Py_Version, which 3.11 and later export: "3.14.7", "3.15.0rc1"; NULL: unknown. */
static char *version_by_symbol(Elf *elf, const struct elf_file *file)
{
    GElf_Sym symbol;
    GElf_Phdr segment;
    if (!find_symbol(elf, SHT_DYNSYM, "Py_Version", &symbol) ||
        !find_segment(elf, symbol.st_value, &segment))
        return NULL;
    Elf_Data *data =
        elf_getdata_rawchunk(elf, (int64_t)(segment.p_offset + symbol.st_value - segment.p_vaddr),
                             file->wide ? 8 : 4, file->wide ? ELF_T_XWORD : ELF_T_WORD);
    if (!data || !data->d_buf)
        return NULL;
    /* As PY_VERSION_HEX: bytes for major, minor and micro, 4 bits each for level and serial. */
    unsigned long value = file->wide ? *(uint64_t *)data->d_buf : *(uint32_t *)data->d_buf;
    unsigned level = value >> 4 & 0xf;
    if (value >> 24 != 3)
        return NULL;
    char *release = format("3.%d.%d", (int)(value >> 16 & 0xff), (int)(value >> 8 & 0xff));
    return level == 0xf ? release
                        : format("%s%s%d", release,
                                 level == 0xa   ? "a"
                                 : level == 0xb ? "b"
                                                : "rc",
                                 (int)(value & 0xf));
}

/* By the file's name: python3.11, libpython3.6m.so.1.0 and so on. */
static int minor_by_name(const char *path)
{
    int minor;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (strncmp(name, "lib", 3) == 0)
        name += 3;
    return sscanf(name, "python3.%2d", &minor) == 1 ? plausible(minor) : -1;
}

/* By a string such as "3.10.13" among its constants; NULL: unknown. */
static char *version_by_text(const char *bytes, size_t size)
{
    for (const char *at = bytes, *end = bytes + size; end - at > 8; at++) {
        at = memchr(at, '\0', (size_t)(end - at - 8));
        if (!at)
            break;
        int minor, micro, length = 0;
        char text[16] = "";
        memcpy(text, at + 1, (size_t)(end - at - 1) < 15 ? (size_t)(end - at - 1) : 15);
        if (memcmp(text, "3.", 2) == 0 &&
            sscanf(text, "3.%2d.%2d%n", &minor, &micro, &length) == 2 &&
            strspn(text + length, "abrc+0123456789") == strlen(text + length))
            return strdup(text);
    }
    return NULL;
}

/* The section .rodata, or NULL. */
static Elf_Data *constants_of(Elf *elf)
{
    size_t number;
    GElf_Shdr header;
    Elf_Data *names = elf_getshdrstrndx(elf, &number) == 0 ? strings_of(elf, number) : NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        const char *name = gelf_getshdr(section, &header) ? string_at(names, header.sh_name) : NULL;
        if (name && header.sh_type == SHT_PROGBITS && strcmp(name, ".rodata") == 0)
            return data_of(section, &header);
    }
    return NULL;
}

static void read_version(Elf *elf, const char *path, struct elf_file *file)
{
    static const char free_threaded[] = "free-threading build";
    Elf_Data *constants = constants_of(elf);
    size_t size = constants ? constants->d_size : 0;
    size = size < CONSTANTS_MAX ? size : CONSTANTS_MAX;
    file->free_threaded =
        constants && memmem(constants->d_buf, size, free_threaded, sizeof free_threaded - 1);
    file->version = version_by_symbol(elf, file);
    file->minor = minor_of(file->version);
    if (file->minor < 0)
        file->minor = minor_by_name(path);
    if (file->minor < 0 && constants)
        file->version = version_by_text(constants->d_buf, size);
    if (file->minor < 0)
        file->minor = minor_of(file->version);
}

/* ---------------------------------------------------------------- how it is linked */

static void read_dynamic(Elf *elf, struct elf_file *file)
{
    GElf_Shdr header;
    GElf_Dyn entry;
    Elf_Scn *section = first_section(elf, SHT_DYNAMIC, &header);
    Elf_Data *data = section ? data_of(section, &header) : NULL;
    Elf_Data *strings = data ? strings_of(elf, header.sh_link) : NULL;
    for (int i = 0; strings && i < DYNAMIC_MAX && gelf_getdyn(data, i, &entry); i++) {
        const char *text = string_at(strings, entry.d_un.d_val);
        if (entry.d_tag == DT_NULL)
            return;
        if (!text || strnlen(text, PATH_MAX) == PATH_MAX)
            continue;
        /* The dynamic linker ignores an RPATH beside a RUNPATH. */
        if (entry.d_tag == DT_RUNPATH || (entry.d_tag == DT_RPATH && !file->runpath))
            file->runpath = strdup(text);
        else if (entry.d_tag == DT_NEEDED && strncmp(text, "libpython3.", 11) == 0 &&
                 !strchr(text, '/'))
            file->libpython = file->libpython ? file->libpython : strdup(text);
        else if (entry.d_tag == DT_NEEDED && strncmp(text, "libpypy", 7) == 0)
            file->other = "PyPy";
        else if (entry.d_tag == DT_NEEDED && strncmp(text, "libc.musl", 9) == 0)
            file->is_musl = true;
    }
}

static void read_segments(Elf *elf, struct elf_file *file)
{
    size_t count = 0;
    bool interpreter = false, dynamic = false;
    GElf_Phdr segment;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &segment); i++) {
        dynamic |= segment.p_type == PT_DYNAMIC;
        if (segment.p_type != PT_INTERP || segment.p_filesz > 4096 || interpreter)
            continue;
        interpreter = true;
        Elf_Data *data =
            elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz, ELF_T_BYTE);
        if (data && data->d_buf && memmem(data->d_buf, data->d_size, "ld-musl", 7))
            file->is_musl = true;
    }
    file->is_static = !interpreter && !dynamic;
}

bool elf_read(const char *path, struct elf_file *file, const char **why)
{
    int fd;
    GElf_Ehdr elf_header;
    GElf_Shdr header;
    GElf_Sym symbol;
    *file = (struct elf_file){.minor = -1};
    Elf *elf = open_elf(path, &fd, why);
    if (!elf)
        return false;
    bool whole = gelf_getehdr(elf, &elf_header) != NULL;
    *why = "damaged ELF file";
    if (whole) {
        file->wide = gelf_getclass(elf) == ELFCLASS64;
        file->machine = elf_header.e_machine;
        read_segments(elf, file);
        read_dynamic(elf, file);
        for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
            Elf_Data *data;
            if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE &&
                (data = data_of(section, &header)))
                read_notes(file, data);
        }
        file->is_exported = find_symbol(elf, SHT_DYNSYM, "Py_GetVersion", &symbol);
        file->is_cpython =
            file->is_exported || find_symbol(elf, SHT_SYMTAB, "Py_GetVersion", &symbol);
        /* A PyPy program contains PyPy's code, or needs libpypy: read_dynamic(). */
        if (file->is_cpython)
            file->other = NULL;
        else if (find_symbol(elf, SHT_DYNSYM, "pypy_main_startup", &symbol))
            file->other = "PyPy";
        if (file->is_cpython || file->entries)
            read_version(elf, path, file);
    }
    close_elf(elf, fd);
    if (whole)
        *why = NULL;
    return whole;
}
