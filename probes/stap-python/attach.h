/*
 * `stap-python attach`: loads the shim into running Pythons.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_H
#define ATTACH_H

/* arguments end with NULL: PIDs, --children, --name PATTERN, or --all.  Returns the exit status, or
 * exits with an error line: the shim can't be loaded into one of them, or there is none. */
int attach_main(char **arguments);

#endif
