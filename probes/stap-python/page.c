/*
 * See page.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

int page_open(const struct process *process, const char **why)
{
    int memory = open(format("/proc/%d/mem", process->pid), O_RDWR | O_CLOEXEC);
    if (memory < 0)
        *why = format("its memory can't be opened (%s): run as root", strerror(errno));
    return memory;
}

uint64_t page_read(int memory, const struct process *process, struct filter_page *page,
                   const char **why)
{
    for (int i = 0; process->shim && i < FILTER_ADDRESSES; i++) {
        if (pread(memory, page, sizeof *page, (off_t)filter_addresses[i]) !=
                (ssize_t)sizeof *page ||
            page->magic != FILTER_MAGIC)
            continue;
        page->patterns[sizeof page->patterns - 1] = '\0';
        return filter_addresses[i];
    }
    *why =
        format("the shim of this version isn't active in it: stap-python attach %d", process->pid);
    return 0;
}

const char *page_write(int memory, uint64_t at, const void *data, size_t size)
{
    if (pwrite(memory, data, size, (off_t)at) != (ssize_t)size)
        return format("its memory can't be written: %s", strerror(errno));
    return NULL;
}
