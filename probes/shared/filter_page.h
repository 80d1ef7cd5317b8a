/*
 * The page to which stap-python filter writes patterns, and stap-python detach its request, in each
 * process that has the shim: at the first of three addresses that the process can have, which are
 * the same everywhere.  It is read-only while the shim is detached, so that /proc/PID/maps tells.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_FILTER_PAGE_H
#define SHARED_FILTER_PAGE_H

#include <stdint.h>

/* Behind those of layout_page.h, and one for programs of 32 bits: above the heap of one that is at
 * a fixed address, and below where Linux places the others.  Pages may have 16 or 64 KB (aarch64,
 * ppc64el), so each of these and of those is a multiple of that. */
static const uint64_t filter_addresses[] = {0x5500707a0000, 0x20707a0000, 0x307a0000};
enum { FILTER_ADDRESSES = sizeof filter_addresses / sizeof *filter_addresses };

#define FILTER_MAGIC 0x33707466 /* "ftp3" */

enum { FILTER_SIZE = 4096 };

struct filter_page {
    uint32_t magic;
    uint32_t generation; /* odd while it is written; another one for other patterns */
    uint32_t request;    /* one of these */
    uint32_t raised;     /* by the shim, when it has detached: what its semaphores add up to */
    uint32_t attach;     /* how far attach_again() is from the start of the shim's mapping */
    uint32_t lacks_id;   /* by the shim: interp_lacks_id() */
    char patterns[FILTER_SIZE - 24];
};

enum {
    REQUEST_NONE,
    REQUEST_DETACH, /* by the launcher */
    REQUEST_DONE,   /* by the shim: no hook is left, and its thread has ended, or is about to */
};

#endif
