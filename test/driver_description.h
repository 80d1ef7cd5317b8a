/*
 * A description of what the driver is to fire, read into a flat list of steps.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DRIVER_DESCRIPTION_H
#define DRIVER_DESCRIPTION_H

#include "markers/markers.h"

/* How to fire a marker from an array of numbers. */
struct kind {
    void (*fire)(const int64_t *);
    /* A letter for each parameter, s: string, p: another pointer, i: int, l: long. */
    char types[MARKERS_MOST_PARAMETERS + 1];
    const char *parameters[MARKERS_MOST_PARAMETERS]; /* as python.d has them */
};
extern const struct kind kinds[MARKERS];

struct step {
    enum { FIRE, SLEEP, BEGIN, END } what;
    int64_t times; /* END: that are left */
    size_t other;  /* BEGIN: its END, or the block around it while that is unread; END: its BEGIN */
    enum marker marker;
    int64_t values[MARKERS_MOST_PARAMETERS];     /* SLEEP: milliseconds; BEGIN: its line */
    Py_ssize_t lengths[MARKERS_MOST_PARAMETERS]; /* of a string that is ours, else -1 */
};

extern struct step *steps;
extern size_t step_count;

/* Adds the steps of a file; "-": of standard input.  Ends the program if they are bad. */
void read_file(const char *name);

/* Reads a text that is a whole decimal number.  False: it is not. */
bool read_number(char *text, int64_t *value);

/* Ends the program with a message, which names the line that is being read. */
__attribute__((format(printf, 2, 3))) _Noreturn void die(int status, const char *format, ...);

#endif
