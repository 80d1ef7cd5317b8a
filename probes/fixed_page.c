/*
 * See fixed_page.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fixed_page.h"

#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE /* before glibc 2.27; kernels before 4.17 take it for a hint */
#define MAP_FIXED_NOREPLACE 0x100000
#endif

void *map_fixed_page(const uint64_t *addresses, size_t count, size_t size, int protection)
{
    for (size_t i = 0; i < count; i++) {
        void *wanted = (void *)(uintptr_t)addresses[i];
        if ((uintptr_t)wanted != addresses[i])
            continue;
        void *place = mmap(wanted, size, protection,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (place == wanted)
            return place;
        if (place != MAP_FAILED)
            munmap(place, size);
    }
    return NULL;
}
