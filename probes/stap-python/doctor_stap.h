/*
 * SystemTap, as far as doctor checks it: which stap, the faults of its runtime, the user's rights.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_STAP_H
#define DOCTOR_STAP_H

#include <stdbool.h>

/* Reports which stap there is.  To be called before the others. */
void check_stap(void);

/* The stap that check_stap() found; NULL: none. */
const char *stap_found(void);

/* Reports the known faults of stap's runtime, with this kernel.  False: with one of them it cannot
 * compile probes of programs. */
bool check_runtime(void);

/* Reports who could write to stap's cache before check_stap(). */
void check_cache(void);

/* Reports whether this user may load stap's modules. */
void check_rights(void);

/* The directory of that name, such as "tapset", among stap's data. */
char *stap_data_dir(const char *folder);

#endif
