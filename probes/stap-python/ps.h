/*
 * `stap-python ps`: the Pythons that run, and whether the shim is active in them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PS_H
#define PS_H

/* arguments end with NULL: --json or none. */
int ps_main(char **arguments);

#endif
