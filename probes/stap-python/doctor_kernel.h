/*
 * The kernel, as far as doctor checks it: headers, loading of modules, uprobes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_KERNEL_H
#define DOCTOR_KERNEL_H

#include <stdbool.h>

/* Reports all three. */
void check_kernel(void);

/* Where the running kernel's headers are, or should be. */
char *kernel_headers(void);

/* Whether they are there. */
bool has_headers(void);

#endif
