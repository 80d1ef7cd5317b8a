/*
 * pprof's files: profile.proto of https://github.com/google/pprof, gzipped.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROFILE_PPROF_H
#define PROFILE_PPROF_H

#include "profile/stacks.h"

#include <stdio.h>

/* Writes side 0: samples, and their nanoseconds on a CPU if the rate is known; or of memory the
 * values that Go's heap profiles have.  The program that a
 * stack begins with becomes the label "program", its ids the labels "pid" and "tid".  Errors are
 * those of output. */
void profile_write_pprof(const struct profile *profile, FILE *output);

/* Whether data begin as a gzipped file does. */
bool is_gzipped(const char *data, size_t length);

/* Adds the stacks of a file that this or another program has written.  The values are those of its
 * default sample type, else of the last one; lines are left out, the label "program" is the
 * outermost name.  The reason why it can't be read, or NULL. */
const char *profile_read_pprof(struct profile *profile, int side, const char *data, size_t length);

#endif
