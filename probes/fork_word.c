/*
 * The kernel empties memory with MADV_WIPEONFORK in the child of a fork.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fork_word.h"

#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK /* glibc before 2.26; Linux 4.14 */
#define MADV_WIPEONFORK 18
#endif

int *zero_in_child_word(void)
{
    enum { PAGE = 4096 };
    int *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
        munmap(page, PAGE);
        return NULL;
    }
    *page = 1;
    return page;
}
