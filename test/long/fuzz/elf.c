/*
 * Fuzzes what stap-python reads of an ELF file: elf_read() and what builds on it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"
#include "lib/interpreters.h"
#include "lib/util.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int fd;
static char path[64];

static void look(void)
{
    struct elf_file file;
    struct interpreter python;
    const char *why = NULL;
    if (!elf_read(path, &file, &why)) {
        fuzz_check(why && *why, "a file is refused without a reason");
        return;
    }
    fuzz_check(file.minor >= -1 && file.minor < 100, "an impossible version");
    fuzz_check(!file.libpython || !strchr(file.libpython, '/'), "libpython is a path");
    fuzz_check(!file.runpath || strlen(file.runpath) < 4096, "runpath is longer than a path");
    unsupported_reason(&file);
    elf_symbol(path, "dlopen");
    for (unsigned long offset = 0; offset < 0x4000; offset += 0x1000)
        elf_mapping_to_address(path, offset, (offset >> 12) % 2);
    elf_mapping_to_address(path, -1UL, false);
    /* It looks for a libpython below fuzz_folder(), as STAP_PYTHON_ROOT says. */
    if (interpreter_open(path, &python, &why))
        for (unsigned i = 0; marker_name(i); i++)
            native_marker_state(&python, i);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    setenv("STAP_PYTHON_ROOT", fuzz_folder(), 1);
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_check(fd >= 0, "memfd_create() fails");
    strcpy(path, format("/proc/self/fd/%d", fd));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_check(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size, "memfd");
    fuzz_run(look);
    return 0;
}

/* ---------------------------------------------------------------- mutations */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Replaces a number somewhere in a table of headers by a limit, of the file or of a type. */
static void spoil(uint8_t *data, size_t size, uint64_t table, size_t entry, size_t entries,
                  unsigned seed)
{
    const uint64_t limits[] = {0,        1,          size,       size - 1, size / 2, ~0ULL,
                               1U << 31, ~0ULL >> 1, 0xffffffff, 0xffff,   4096,     size - 24};
    static const uint8_t kinds[] = {SHT_NULL,   SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_DYNAMIC,
                                    SHT_DYNSYM, SHT_NOTE,     SHT_NOBITS, PT_INTERP,  PT_LOAD};
    size_t width = seed & 1 ? 8 : 4;
    size_t at = entries ? (size_t)(seed >> 8) % (entries * entry) & ~(width - 1) : 0;
    if (table >= size || at >= size - table || size - table - at < width)
        return;
    uint64_t value = seed & 2 ? limits[(seed >> 2) % (sizeof limits / sizeof *limits)]
                              : kinds[(seed >> 2) % sizeof kinds];
    memcpy(data + table + at, &value, width);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    Elf64_Ehdr header;
    if (seed % 4 == 0 || size < sizeof header)
        return LLVMFuzzerMutate(data, size, most);
    memcpy(&header, data, sizeof header);
    seed = seed / 4 * 2654435761U;
    if (header.e_ident[EI_CLASS] == ELFCLASS32) {
        Elf32_Ehdr *small = (Elf32_Ehdr *)data;
        header.e_phoff = small->e_phoff;
        header.e_shoff = small->e_shoff;
        header.e_phnum = small->e_phnum;
        header.e_shnum = small->e_shnum;
    }
    bool narrow = header.e_ident[EI_CLASS] == ELFCLASS32;
    switch (seed >> 28 & 7) {
    case 0:
        spoil(data, size, 0, sizeof header, 1, seed);
        break;
    case 1:
    case 2:
        spoil(data, size, header.e_phoff, narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr),
              header.e_phnum, seed);
        break;
    default:
        spoil(data, size, header.e_shoff, narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr),
              header.e_shnum, seed);
        break;
    }
    return size;
}
