/*
 * The tapset that stap reads, as doctor checks it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_TAPSET_H
#define DOCTOR_TAPSET_H

/* Reports whether python.stp is ours and finds the shim, and each other file with probe points of
 * ours.  After check_stap(). */
void check_tapset(void);

#endif
