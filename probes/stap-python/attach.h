/*
 * `stap-python attach`: loads the shim into a running Python.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_H
#define ATTACH_H

/* arguments end with NULL: one PID.  Exits with an error line if the shim can't be loaded there. */
int attach_main(char **arguments);

#endif
