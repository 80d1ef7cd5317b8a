/*
 * The lines that doctor prints.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_REPORT_H
#define DOCTOR_REPORT_H

enum verdict { OK, NOTE, WRONG };

/* Decides whether the lines have colours: on a terminal, unless NO_COLOR or TERM=dumb is set. */
void report_start(void);

/* Prints a line: the verdict, the topic and the printf() text; and below it fix, the command that
 * fixes it, unless that is NULL. */
void report(enum verdict verdict, const char *topic, const char *fix, const char *text, ...)
    __attribute__((format(printf, 4, 5)));

/* Prints the summary, and returns how many lines were WRONG. */
unsigned report_end(void);

#endif
