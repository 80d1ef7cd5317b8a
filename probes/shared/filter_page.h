/*
 * A page in each process with the shim: `stap-python filter` writes its patterns there, and
 * `stap-python detach` its request.  The shim maps it at the first of the filter_addresses that the
 * process can have.  While the shim is detached the page is read-only, which /proc/PID/maps shows.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_FILTER_PAGE_H
#define SHARED_FILTER_PAGE_H

#include "shared/pattern.h"

#include <stdint.h>

/* The first two are 64 KB above the addresses of offsets_page.h.  The third is for 32-bit programs.
 * In a program that is linked for a fixed address it is above the heap.  In a position-independent
 * program it is below all that Linux places.  All three are multiples of 64 KB, as pages may have
 * 16 or 64 KB (aarch64, ppc64el). */
static const uint64_t filter_addresses[] = {0x5500707a0000, 0x20707a0000, 0x307a0000};
enum { FILTER_ADDRESSES = sizeof filter_addresses / sizeof *filter_addresses };

#define FILTER_MAGIC 0x33707466 /* "ftp3" */

struct filter_page {
    uint32_t magic;
    uint32_t generation; /* odd while the patterns are being written; grows with each change */
    uint32_t request;    /* one of the REQUESTs below */
    uint32_t raised;     /* written by the shim as it detaches: the sum of its semaphores */
    uint32_t attach;     /* distance from the start of the shim's mapping to attach_again() */
    uint32_t lacks_id;   /* written by the shim: interp_lacks_id() */
    char patterns[FILTER_SIZE - 24];
};

enum {
    REQUEST_NONE,
    REQUEST_DETACH, /* written by stap-python */
    REQUEST_DONE,   /* written by the shim: no hook is left, its thread has ended or is about to */
};

#endif
