/*
 * Files for https://speedscope.app, by its file-format-schema.json.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROFILE_SPEEDSCOPE_H
#define PROFILE_SPEEDSCOPE_H

#include "profile/stacks.h"

#include <stdio.h>

/* Writes side 0, in microseconds if the rate is known, under this title.  Errors are those of
 * output. */
void speedscope_write(const struct profile *profile, const char *title, FILE *output);

#endif
