/*
 * native.list, for stap-python.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NATIVE_TABLE_H
#define NATIVE_TABLE_H

#include "native_list.h"

#define NATIVE(kind, marker, first, last) {#kind, #marker, first, last},
static const struct {
    const char *kind, *marker;
    int first, last;
} native[] = {NATIVE_LIST(NATIVE)};
#undef NATIVE

#define PATH(glob) glob,
static const char *const native_paths[] = {NATIVE_PATHS(PATH)};
#undef PATH

#endif
