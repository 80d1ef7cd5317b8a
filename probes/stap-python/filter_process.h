/*
 * stap-python filter: which functions the filtered markers of a process are for.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILTER_PROCESS_H
#define FILTER_PROCESS_H

/* The arguments after the command, which end with NULL; returns the exit status. */
int filter_main(char **arguments);

#endif
