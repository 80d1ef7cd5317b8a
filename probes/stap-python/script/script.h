/*
 * `stap-python SCRIPT`: reads stap's command line and the script's header, prepares the processes
 * to trace, and runs stap or bpftrace.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_SCRIPT_SCRIPT_H
#define STAP_PYTHON_SCRIPT_SCRIPT_H

#include <stdbool.h>
#include <sys/types.h>

#include "attach/inject.h"
#include "lib/util.h"

/* ---------------------------------------------------------------- stap arguments */

struct stap_argument {
    char option;       /* the letter of an option with a value; '-': any other option; 0: one of
                        * the script's own arguments */
    char **word;       /* the word in which the value begins */
    const char *value; /* the value, the script's argument, or the option's whole word */
    char **next;       /* the words that follow */
    bool ended;        /* after "--" */
};

/* Reads the next argument, as stap does; to begin, {.next = words}, which end with NULL.  False: no
 * more arguments, or the last option lacks its value. */
bool next_stap_argument(struct stap_argument *argument);

struct stap_arguments {
    const char *target;  /* value of -x, or NULL */
    bool has_targets;    /* several, by targets_prepare() */
    const char *command; /* value of -c, or NULL */
    const char *kernel;  /* value of -r, or NULL */
    const char *script;  /* value of -e, or NULL */
    char **globals;      /* values of -G; end with NULL */
    char **own;          /* the script's own arguments; end with NULL */
    bool help;           /* --help or -h */
    bool is_listing;     /* -l or -L */
    bool has_more;       /* an option other than -x and -c */
    bool has_runtime;    /* -R, or another --runtime than kernel */
    bool is_compiled;    /* a module is made; not -l, -L, -p1 to -p3 */
    bool is_run; /* on this machine; not only compiled (-p), listed (-l, -L), or run by --remote */
};

/* Whether FILE.stp is at path. */
bool is_script_file(const char *path);

/* Reads all words, which end with NULL. */
struct stap_arguments stap_arguments(char **words);

/* ---------------------------------------------------------------- script header */

/*
 * The comment at the start of a script:
 *   NAME - what it shows
 *   usage: stap [-o FILE] NAME.stp [ARGUMENT]...   a line for each way to name processes
 *   usage: bpftrace NAME.bt [PID [ARGUMENT]]       of a bpftrace script, the only one
 *   -G NAME=...                                    a line for each parameter
 */

struct script_header {
    char *file;   /* its file name */
    char *name;   /* without .stp or .bt */
    char *folder; /* of the script */
    char *text;   /* the comment's lines, without the licence */
    char *code;   /* the rest of the script */
};

/* Reads the script at path.  Exits with an error line if that fails, or it has no such comment. */
struct script_header script_header(const char *path);

/* The script's own arguments as in the first usage line of the header, such as "[cfunctions]
 * [SECONDS]"; "" if it has none. */
char *script_usage(const struct script_header *head);

/* One argument of a usage line: WORD, optional [WORD], optional with all that follows (leads)
 * [WORD [...]], repeatable (again) [WORD...]. */
struct usage_word {
    const char *word;
    int length;
    bool optional, leads, again;
    const char *next; /* the words that follow */
};

/* Reads the next argument; to begin, {.next = script_usage(head)}.  False: no more arguments. */
bool next_usage_word(struct usage_word *word);

/* Whether the argument may be any text, as PATTERN, REGEX and EXPRESSION may. */
bool usage_word_is_text(const struct usage_word *word);

/* Prints the header as stap-python's help of the script. */
void script_print_help(const struct script_header *head);

/* Exits with an error line if an argument is wrong: stap would find that only after it has compiled
 * the script and started the command of -c. */
void script_check_arguments(const struct script_header *head,
                            const struct stap_arguments *arguments);

/* ---------------------------------------------------------------- processes to trace */

struct script_probes {
    const char *code;
    size_t arguments; /* the number of the script's own arguments, on which its probes may depend */
};

/* Loads the shim into the process of -x, or attaches a detached one again, unless live native
 * markers are all that the script probes.  Warns of what is unknown.  Exits with an error line if
 * there is no such process, or if no native marker serves the script and the shim is silent or
 * can't be loaded. */
void script_attach(const struct script_probes *script, pid_t pid);

/* The same; also warns of Pythons beside the process that stap does not trace. */
void script_prepare_target(const struct script_probes *script, pid_t pid);

/* What script_prepare_target() warns of then names this command's -p and --children. */
void script_has_children(const char *command);

/* Prints on stderr how many Pythons run that this user may inspect, and how many of them have the
 * script's markers. */
void script_list_running(const struct script_probes *script);

/* ---------------------------------------------------------------- several processes */

/* command: of stap-python, for its error lines. */

/* Adds PIDs, separated by commas, or a pattern as attach --name takes it.  Exits with an error line
 * if a word is not a PID. */
void targets_add_pids(const char *command, struct attach_request *request, const char *list);
void targets_add_name(struct attach_request *request, char *pattern);

/* Whether the request is one PID, for which -x serves. */
bool targets_are_one(const struct attach_request *request);

/* Loads the shim into each process of the request, and adds the script's options that name them.
 * Returns how many there are.  An error line says why one is left out.  Exits with an error line if
 * none is left, or they are too many. */
size_t targets_prepare(const char *command, const struct attach_request *request,
                       struct texts *words);

/* Whether a value of -G is one of those options. */
bool is_targets_global(const char *word);

/* ---------------------------------------------------------------- --backend bpftrace */

/* Whether there is a bpftrace script of the same name as SystemTap's at path. */
bool has_bpftrace_script(const char *path);

/* Whether that script means the same as SystemTap's by so many arguments of its own; usage:
 * SystemTap's script_usage(). */
bool bpftrace_script_takes(const char *path, const char *usage, size_t count);

/* Runs the bpftrace script of the same name, for machines on which stap does not work.  path:
 * SystemTap's script, of which only the file name is used.  arguments: -x or -c, and the script's
 * own; end with NULL.  The process of -x gets the shim if it lacks it.  With --help,
 * prints the comment at the bpftrace script's head.  Exits with bpftrace's status, or with an error
 * line: bpftrace is not installed or lacks the script; -x or -c is wrong; or tracers don't see the
 * shim in the process of -x. */
int script_backend(const char *path, char **arguments) __attribute__((noreturn));

/* ---------------------------------------------------------------- running scripts */

/* The names of all scripts; end with NULL. */
char **script_names(void);

/* Prints each script's name and title.  Exits with an error line if there are none. */
int list_scripts(void);

/* The path of the script of this name, with or without .stp; NULL: there is none. */
char *script_file(const char *name);

/* Runs the script at path.  arguments: stap's and the script's own, with --backend anywhere among
 * them; end with NULL.  Runs stap if --backend is stap; script_backend() if it is bpftrace;
 * without it, or with auto, bpftrace if stap is not known to work and bpftrace can run the script
 * with these arguments.  The command of -c runs with the shim; the
 * process of -x gets it if needed.  Returns only for --help, after printing the script's help.
 * Exits with an error line if an argument is wrong, or stap, the process, or a shim that the script
 * needs is missing. */
int script_main(const char *path, char **arguments);

/* Whether stap's arguments name a script of the user's: by -e, or the first one that is not an
 * option is an existing file FILE.stp. */
bool is_own_script(char **arguments);

/* Runs stap on that script, prepared as script_main() does.  Returns only for --help. */
int own_script_main(char **arguments);

/* Prepares a run as script_main() does, and returns the command for exec_program().  Does not know
 * --help and --backend. */
char **script_command(const char *path, char **arguments);

/* ---------------------------------------------------------------- compiling */

/* `stap-python precompile`: has stap compile scripts for the running kernel. */
int precompile_main(char **arguments);

/* Starts a process that prints a line once stap compiles.  This program must become stap, or start
 * it. */
void say_if_compiling(void);

#endif
