/*
 * `stap-python enable` and `disable`: whether every start of an interpreter, or of a service, loads
 * the shim.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ENABLE_H
#define ENABLE_H

/* arguments end with NULL: an interpreter, or none for python3; "--service" and a unit; "--list" or
 * "--all".  Both return the exit status, or exit with an error line: if there is no such
 * interpreter or service, the shim does not support it, root must not run it, the files can't be
 * written or recorded, or are not stap-python's. */
int enable_main(char **arguments);
int disable_main(char **arguments);

#endif
