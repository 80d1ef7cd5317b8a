/*
 * `stap-python enable` and `disable` for an interpreter: a .pth file and a link in its
 * site-packages.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ENABLE_PYTHON_H
#define ENABLE_PYTHON_H

/* Makes the interpreter, a name in PATH or a path, load the shim at each start; returns the exit
 * status.  Exits with an error line if it can't. */
int enable_python(const char *word);

/* Undoes that, in the same way. */
int disable_python(const char *word);

#endif
