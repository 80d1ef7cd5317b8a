/*
 * What is enabled, as doctor checks it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_ENABLED_H
#define DOCTOR_ENABLED_H

/* Reports each interpreter and service that `stap-python enable` has made load the shim, and
 * whether it still does. */
void check_enabled(void);

#endif
