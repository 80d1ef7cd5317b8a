/*
 * `stap-python list`: the markers of interpreters and processes, and who provides them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIST_H
#define LIST_H

/* arguments end with NULL: an interpreter, PID or file, or none for every interpreter found.  Exits
 * with an error line if it is not there, or not a CPython. */
int list_main(char **arguments);

#endif
