/*
 * Which .pth file in its site-packages makes an interpreter load the shim at each start: that of
 * `stap-python enable` or of a package.  A virtual environment has site-packages of its own, and
 * those of its base interpreter only if its pyvenv.cfg says so.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_PACKAGES_H
#define SITE_PACKAGES_H

/* The .pth file by which the interpreter at path loads the shim at each start; NULL if there is
 * none, its link leads to no shim, or path is not an interpreter. */
char *pth_of(const char *path);

/* The .pth file of its base interpreter, if the interpreter at path is that of a virtual
 * environment without system site-packages, which therefore does not load the shim; else NULL. */
char *pth_of_base_only(const char *path);

#endif
