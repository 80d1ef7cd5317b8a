/*
 * The names of the markers, for stap-python.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MARKER_NAMES_H
#define MARKER_NAMES_H

#include "markers_list.h"

#define NAME(name, ...) #name,
static const char *const marker_names[] = {MARKERS_LIST(NAME)};
#undef NAME

#endif
