/*
 * `stap-python enable` and `disable`: whether every start of one interpreter loads the shim, by a
 * .pth file in its site-packages and a link beside it, which that imports.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ENABLE_H
#define ENABLE_H

/* arguments end with NULL: an interpreter, or none for python3.  Both exit with an error line if
 * there is no such interpreter, the shim does not support it, root must not run it, its
 * site-packages can't be written, or the files there are not stap-python's. */
int enable_main(char **arguments);
int disable_main(char **arguments);

#endif
