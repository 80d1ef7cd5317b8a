/*
 * Where the shim is: in the checkout that this program was built in, or where it is installed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHIM_H
#define SHIM_H

/* The root directory of the checkout that this program was built in; NULL if it is installed. */
extern const char *source_tree;

/* Sets source_tree, by this program's own path; it stays NULL in a program with more rights than
 * its caller. */
void find_source_tree(void);

/* The shim's path for LD_PRELOAD, perhaps with ld.so's $LIB. */
const char *shim_preload(void);

/* The shim's file, or the path where it should be. */
const char *shim_file(void);

/* The error text that the shim does not exist, with what to do. */
char *shim_not_found(void);

/* A value of LD_PRELOAD, or NULL, with the shim in it.  Exits with an error line if the shim does
 * not exist, or has a path that LD_PRELOAD can't hold. */
char *preload_with(const char *others);

/* The same with LD_PRELOAD's current value. */
char *preload_value(void);

#endif
