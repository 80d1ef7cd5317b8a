/*
 * Pages at addresses that are the same in every process, so that others find them: the layout's and
 * the patterns'.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FIXED_PAGE_H
#define FIXED_PAGE_H

#include <stddef.h>
#include <stdint.h>

/* The first of these addresses that this process can have, with zeroed memory there; NULL: it has
 * none of them, as they are the program's own or beyond what the kernel gives programs.  Called by
 * the loader; no GIL. */
void *map_fixed_page(const uint64_t *addresses, size_t count, size_t size, int protection);

#endif
