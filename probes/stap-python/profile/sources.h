/*
 * Writes a page with the source files of a profile, and the samples beside each line.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROFILE_SOURCES_H
#define PROFILE_SOURCES_H

#include "profile/source_file.h"
#include "profile/stacks.h"

#include <stdio.h>

/* Writes the page of a profile with lines, whose stacks begin with "program (PID/USER)".  title:
 * any text; note: the line below it.  Errors are those of output. */
void sources_write(const struct profile *profile, const char *title, const char *note,
                   enum source_origin origin, FILE *output);

#endif
