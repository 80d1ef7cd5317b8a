/*
 * Commands that start another Python than CPython, which the shim does nothing in.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OTHER_PYTHON_H
#define OTHER_PYTHON_H

/* Says on stderr if one of the first of these words, which end with NULL, is a program that is or
 * is run by PyPy: nothing will be seen of it. */
void warn_of_other_python(char **words);

/* The same for a command line of the shell. */
void warn_of_other_python_in(const char *command);

#endif
