/*
 * The loader, as module.c calls it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOADER_H
#define LOADER_H

/* The library was imported as a module: the shim comes up now if it isn't up.  GIL held, no
 * exception in flight. */
void loader_imported(void);

#endif
