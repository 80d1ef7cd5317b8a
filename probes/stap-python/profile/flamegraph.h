/*
 * Flame graphs, as SVG files and in HTML pages.  A browser runs the script in them, which needs
 * nothing else; other viewers show the picture.
 *
 * Names are those of a program that nobody trusts: they are escaped here, and the scripts handle
 * them as text.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROFILE_FLAMEGRAPH_H
#define PROFILE_FLAMEGRAPH_H

#include "profile/stacks.h"

#include <stdio.h>

struct graph {
    const char *title; /* any text */
    const char *note;  /* the line below it */
    bool is_reversed;  /* draws profile_reversed(), downwards */
    bool compares;     /* side 1 has the widths; red: its own share is larger than that of side 0 */
};

/* Writes a file; after profile_sum().  Errors are those of output. */
void flamegraph_write(const struct profile *profile, const struct graph *graph, FILE *output);

/* Writes a page with the flame graph of side 0, and a table of the functions. */
void html_write(const struct profile *profile, const struct graph *graph, FILE *output);

/* Writes only the element <svg>, without its script, and then the script's text. */
void flamegraph_write_element(const struct profile *profile, const struct graph *graph,
                              FILE *output);
void flamegraph_write_script(FILE *output);

#endif
