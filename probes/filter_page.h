/*
 * The page to which stap-python filter writes patterns, in each process that has the shim: at an
 * address that is the same everywhere, as layout_page.h's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILTER_PAGE_H
#define FILTER_PAGE_H

#include <stdint.h>

#define FILTER_ADDRESS 0x550070791000UL /* behind LAYOUT_ADDRESS */
#define FILTER_MAGIC 0x31707466         /* "ftp1" */

enum { FILTER_SIZE = 4096 };

struct filter_page {
    uint32_t magic;
    uint32_t generation; /* odd while it is written; another one for other patterns */
    char patterns[FILTER_SIZE - 8];
};

#endif
