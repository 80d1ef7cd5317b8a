/*
 * stap-python, the launcher: what its files share.  It is a program of its own, and nothing of it
 * is in the shim.
 *
 * A process that runs once and ends: what is allocated here is never freed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STAP_PYTHON_H
#define STAP_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Exit statuses of its own: what was asked for can't be done; nobody can say what was asked for. */
enum { FAILED = 1, USAGE = 2 };

/* ---------------------------------------------------------------- stap_python.c */

/* The folder of a checkout that this program was built in, or NULL: it is installed. */
extern const char *source_tree;

/* One line on stderr, with the program's name before it, and that status. */
void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
char *format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Text that others may have written, with escapes in place of what a terminal takes for commands.
 */
char *printable(const char *text);
/* The path within STAP_PYTHON_ROOT, which tests set; itself without one, and wherever the
 * environment is not to be trusted. */
const char *rooted(const char *path);
bool exists(const char *path);
/* Opens a regular file to read; what is none is not even opened, as that alone may do something. */
int open_regular(const char *path, struct stat *status);
/* At most limit bytes of a regular file or one of /proc, as a string; NULL if it can't be read. */
char *contents(const char *path, size_t limit);
/* Of a clock that only goes on. */
long now_ms(void);
void sleep_ms(long ms);
/* Runs a program for at most so many seconds and returns what it printed on stdout (and stderr), as
 * a string; *status is that of waitpid(), -1 where it couldn't be started or took longer. */
char *output_of(const char *const *arguments, int seconds, int *status);
/* The file that the shell would run for this word; NULL: none. */
char *program_in_path(const char *word);
/* What root must not run: a file that others can change, or put another in its place; why, or NULL.
 */
const char *hold_of_others(const char *path);
/* The same within a root ("/proc/PID/root"), of others than these users; the file itself. */
const char *hold_in_root(const char *root, const char *path, const uid_t *users, size_t count,
                         char **file);
/* The shim as LD_PRELOAD takes it, perhaps with ld.so's $LIB; and its file, or where that should
 * be. */
const char *shim_preload(void);
const char *shim_file(void);
/* LD_PRELOAD's value for a program that is to have the shim. */
char *preload_value(void);
/* Leaves the process with that help where the first argument is --help. */
void help_if_asked(char **arguments, const char *text);

/* ---------------------------------------------------------------- stap_python_elf.c */

enum { MARKERS_MAX = 32 };

/* What an ELF file says.  No part of it is trusted. */
struct elf_file {
    bool wide;        /* 64 bits */
    unsigned machine; /* e_machine */
    bool is_static;   /* a program without a dynamic linker */
    bool is_musl;     /* its dynamic linker is musl's */
    bool is_cpython;  /* has the code of one: Py_GetVersion */
    bool is_exported; /* and exports it */
    bool free_threaded;
    int minor;        /* 3.minor; -1: not known */
    char *libpython;  /* the libpython that it needs, by its soname, or NULL */
    char *runpath;    /* where it looks for that first, or NULL */
    unsigned markers; /* bits: the markers of provider python in its notes, as marker_name() */
    unsigned entries; /* how many notes of that provider */
};

/* Reads it; else false, and *why says in a few words why not. */
bool elf_read(const char *path, struct elf_file *file, const char **why);
/* Where the function or object lies in the file's addresses; 0: nowhere. */
unsigned long elf_symbol(const char *path, const char *name);
/* The address that the file's byte at this offset is linked for; -1: none. */
long elf_address_of(const char *path, unsigned long offset);
/* The number-th marker of the provider, NULL behind the last. */
const char *marker_name(unsigned number);

/* ---------------------------------------------------------------- stap_python_list.c */

struct interpreter {
    char *path;           /* the program or library that was found */
    char *code;           /* the file with CPython's code */
    struct elf_file file; /* which says this */
    dev_t dev;
    ino_t ino;
};

/* The interpreter that a file is, or needs; else false and *why. */
bool interpreter_open(const char *path, struct interpreter *found, const char **why);
/* hold_of_others() of a program and of what it loads as it starts: libpython, its library. */
const char *hold_of_python(const char *program);
/* Each that is here, once; their number. */
size_t interpreters_find(struct interpreter **found);
/* What an interpreter's own marker is worth: "live", "partly", "fires", "dead" or "-". */
const char *own_marker(const struct interpreter *python, unsigned marker);
/* Whether the tapset looks for markers in this file. */
bool tapset_looks_in(const char *path);
/* What keeps the shim from working in this CPython, in a few words; NULL: nothing. */
const char *unfit(const struct elf_file *file);
/* The .pth file by which an interpreter loads the shim at each start, or NULL. */
char *enabled_by(const char *python);

/* A process, as /proc shows it. */
struct process {
    pid_t pid;
    unsigned long long start; /* its start time: a PID alone may be another's by now */
    char *shim;               /* the shim's file in its maps, or NULL */
    char *libc;               /* its C library's file with dlopen(), to be opened by us, or NULL */
    char *libc_name;          /* as in its maps */
    unsigned long libc_bias;
    struct interpreter python; /* code: to be opened by us */
    char *code_name;           /* as in its maps */
};

/* False: there is no such process, or none with a CPython, and *why says so. */
bool process_open(pid_t pid, struct process *process, const char **why);
unsigned long long process_start(pid_t pid);
/* Whether the shim that is loaded there has found a CPython and watches for tracers, now or within
 * so many milliseconds: its thread tells, which is away while the program forks. */
bool process_is_active(const struct process *process, long ms);
/* The value of a line of /proc/PID/status or its like, up to the line's end; NULL: there is none.
 */
char *field_of(const char *text, const char *name);
/* A number that is a PID; 0: the word is none. */
pid_t pid_of(const char *word);

/* ---------------------------------------------------------------- the subcommands */

int list_main(char **arguments);
int doctor_main(char **arguments);
int attach_main(char **arguments);
int enable_main(char **arguments);
int disable_main(char **arguments);

#endif
