/*
 * The comment at the head of a script, which says how it is used.
 *
 * It begins "NAME - what it shows", then "usage: stap [-o FILE] NAME.stp [ARGUMENT]...", a line for
 * each way to say which processes, and has a line "-G NAME=..." for each of the script's
 * parameters.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SCRIPT_HEAD_H
#define SCRIPT_HEAD_H

#include "stap_arguments.h"

struct script_header {
    char *name;   /* of the script, without .stp */
    char *folder; /* that it is in */
    char *text;   /* the comment's lines, without the licence */
    char *code;   /* what follows it */
};

/* The head of the script at path, and what follows.  Exits with an error line if it can't be read,
 * or has no such comment. */
struct script_header script_header(const char *path);

/* Prints it, for stap-python. */
void script_print_help(const struct script_header *head);

/* Exits with an error line if one of these arguments can't be right: stap would first compile the
 * script, and start the command of -c. */
void script_check_arguments(const struct script_header *head,
                            const struct stap_arguments *arguments);

#endif
