/*
 * `stap-python record`, `top` and `dump`: pyprof and pydump with the options that py-spy's commands
 * of these names have.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SAMPLER_H
#define SAMPLER_H

/* Run the script with the options in arguments, which end with NULL.  Exit with an error line if
 * one of them is wrong; else they don't return, as script_main() doesn't. */
int record_main(char **arguments);
int top_main(char **arguments);
int dump_main(char **arguments);

#endif
