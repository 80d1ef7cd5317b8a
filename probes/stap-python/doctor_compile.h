/*
 * Whether stap compiles a probe of a program for the running kernel, as doctor checks it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_COMPILE_H
#define DOCTOR_COMPILE_H

/* Has stap compile a probe of the shim, and reports whether it does.  Nothing is reported if stap,
 * the kernel's headers or the shim are missing, which other lines say.  After check_stap(). */
void check_compile(void);

#endif
