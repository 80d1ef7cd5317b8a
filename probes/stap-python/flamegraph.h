/*
 * The flame graph of `stap-python record`: flamegraph.pl draws it from folded stacks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FLAMEGRAPH_H
#define FLAMEGRAPH_H

/* The path of flamegraph.pl.  Exits with an error line, which names the packages that have it, if
 * it is not installed, or if root must not run it. */
char *flamegraph_program(void);

/* A path for the folded stacks, in a new folder, which is removed with it when this process exits.
 * Exits with an error line if it can't be made. */
char *flamegraph_folded(void);

/* Runs stap's command (its name or path, its arguments, NULL), which writes the folded stacks, to
 * its end: signals that end this process end stap.  Then the program draws them to the descriptor
 * output.  Returns stap's exit status; exits with an error line if nothing was sampled or drawn. */
int flamegraph_draw(const char *program, char **stap, const char *folded, int output);

#endif
