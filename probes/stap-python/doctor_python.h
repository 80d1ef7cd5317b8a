/*
 * The interpreters and the shim, as doctor checks them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_PYTHON_H
#define DOCTOR_PYTHON_H

/* Reports each interpreter found and its own markers. */
void check_interpreters(void);

/* Reports whether the shim exists and loads. */
void check_shim(void);

/* Reports what attach can't do on this architecture, if it can't do all. */
void check_attach(void);

#endif
