/*
 * The shim's page in a process (filter_page.h), by /proc/PID/mem.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PAGE_H
#define PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "filter_page.h"
#include "process.h"

/* Opens the process's memory; -1, and *why is the reason, if that can't be done. */
int page_open(const struct process *process, const char **why);

/* Reads the page; returns where it is, or 0, and *why is the reason. */
uint64_t page_read(int memory, const struct process *process, struct filter_page *page,
                   const char **why);

/* Writes into it.  NULL, or why that fails. */
const char *page_write(int memory, uint64_t at, const void *data, size_t size);

#endif
