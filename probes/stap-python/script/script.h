/*
 * stap's command line, read as stap does: options, their values, and the script's own arguments.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_SCRIPT_SCRIPT_H
#define STAP_PYTHON_SCRIPT_SCRIPT_H

#include <stdbool.h>
#include <sys/types.h>

/* ---------------------------------------------------------------- stap arguments */

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

/* ---------------------------------------------------------------- script head */

/*
 * The comment at the head of a script, which says how it is used.
 *
 * It begins "NAME - what it shows", then "usage: stap [-o FILE] NAME.stp [ARGUMENT]...", a line for
 * each way to say which processes, and has a line "-G NAME=..." for each of the script's
 * parameters.
 */

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

/* ---------------------------------------------------------------- script target */

/*
 * The Pythons that a script is to trace: whether they have the markers that it probes.
 */

/* What is probed: by the code of a script, with this many arguments of its own. */
struct script_probes {
    const char *code;
    size_t arguments;
};

/* Loads the shim into the process of -x, unless it is loaded there or CPython's own markers are all
 * that the script probes; says on stderr that it did, or what can't be known, and
 * how many Pythons it has started already, which stap does not trace.  Exits with an error line if
 * there is no such process, or the shim can't be loaded. */
void script_prepare_target(const struct script_probes *script, pid_t pid);

/* Says on stderr how many Pythons run that this user may look into, and how many of them have what
 * the script needs. */
void script_list_running(const struct script_probes *script);

/* ---------------------------------------------------------------- script bpftrace */

/*
 * `stap-python SCRIPT --backend bpftrace`: runs the bpftrace script of that name instead of
 * SystemTap's, for machines on which stap does not work.
 */

/* Runs a script with another tracer.  path: SystemTap's script, whose file name counts; arguments:
 * those after --backend, that is the tracer's name and the script's own, and NULL.  Does not
 * return: exits with bpftrace's status, or with an error line if the tracer is not bpftrace, has no
 * such script or is not installed, or if -x or -c are wrong. */
int script_backend(const char *path, char **arguments) __attribute__((noreturn));

/* ---------------------------------------------------------------- script */

/*
 * `stap-python SCRIPT`: runs stap on one of the project's scripts; and the list of these.
 */

/* Prints each script's name and title.  Exits with an error line if there are none. */
int list_scripts(void);

/* The path of the script of this name, with or without .stp; NULL if there is none. */
char *script_file(const char *name);

/* Runs stap on the script at this path with these arguments, which end with NULL; or, if --backend
 * is the first of them, another tracer (script_bpftrace.h).  The command of -c runs with the shim,
 * and the process of -x gets it if it needs it.  Returns only if --help is among them, which prints
 * the script's own help; exits with an error line if an argument is wrong, or stap, the process or
 * the shim that it needs does not exist. */
int script_main(const char *path, char **arguments);

/* The command that script_main() would run, as exec_program() takes it, without --help and
 * --backend. */
char **script_command(const char *path, char **arguments);

#endif
