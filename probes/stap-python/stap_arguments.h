/*
 * stap's command line, read as stap does: options, their values, and the script's own arguments.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_ARGUMENTS_H
#define STAP_ARGUMENTS_H

#include <stdbool.h>

/* What is read next. */
struct stap_argument {
    char option;       /* the letter of an option that takes a value; 0: one of the script's own
                        * arguments; '-': another option */
    char **word;       /* the word in which the value begins */
    const char *value; /* the value, the script's argument, or the option's whole word */
    char **next;       /* the words that follow */
    bool ended;        /* behind "--" */
};

/* The first of the words, which end with NULL, or what follows the one that was read: to begin,
 * {.next = words}.  False: there are no more, or the last option lacks its value. */
bool next_stap_argument(struct stap_argument *argument);

struct stap_arguments {
    const char *target;  /* of -x, or NULL */
    const char *command; /* of -c, or NULL */
    char **globals;      /* of each -G, ends with NULL */
    char **own;          /* the script's own arguments, ends with NULL */
    bool help;           /* --help or -h */
    bool is_run; /* here: not only compiled (-p), listed (-l, -L), or run on another machine */
};

/* Reads all of the words, which end with NULL. */
struct stap_arguments stap_arguments(char **words);

#endif
