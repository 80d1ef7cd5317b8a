/*
 * `stap-python run`: starts a command with the shim.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUN_H
#define RUN_H

/* Runs the command in arguments, which end with NULL, perhaps after "--".  Does not return: exits
 * with an error line if the command can't be started. */
int run_main(char **arguments);

#endif
