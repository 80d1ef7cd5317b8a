/*
 * `stap-python detach`: takes the shim's hooks and its thread out of running Pythons.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DETACH_PROCESS_H
#define DETACH_PROCESS_H

/* arguments end with NULL: as attach_main()'s.  Returns the exit status, or exits with an error
 * line. */
int detach_main(char **arguments);

#endif
