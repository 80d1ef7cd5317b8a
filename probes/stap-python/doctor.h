/*
 * `stap-python doctor`: whether this machine can probe Python, in the order in which a user meets
 * the parts, with the command that fixes each problem.
 *
 * It reads /proc, /sys, /etc, /lib/modules and so on below STAP_PYTHON_ROOT, so that tests can give
 * it other machines.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_H
#define DOCTOR_H

/* arguments: none, and NULL.  Returns 0 if nothing is wrong, else FAILED. */
int doctor_main(char **arguments);

#endif
