/*
 * The page to which stap-python filter writes patterns, in each process that has the shim: at the
 * first of three addresses that the process can have, which are the same everywhere.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILTER_PAGE_H
#define FILTER_PAGE_H

#include <stdint.h>

/* Behind those of layout_page.h, and one for programs of 32 bits: above the heap of one that is at
 * a fixed address, and below where Linux places the others.  Pages may have 16 or 64 KB (aarch64,
 * ppc64el), so each of these and of those is a multiple of that. */
static const uint64_t filter_addresses[] = {0x5500707a0000, 0x20707a0000, 0x307a0000};
enum { FILTER_ADDRESSES = sizeof filter_addresses / sizeof *filter_addresses };

#define FILTER_MAGIC 0x31707466 /* "ftp1" */

enum { FILTER_SIZE = 4096 };

struct filter_page {
    uint32_t magic;
    uint32_t generation; /* odd while it is written; another one for other patterns */
    char patterns[FILTER_SIZE - 8];
};

#endif
