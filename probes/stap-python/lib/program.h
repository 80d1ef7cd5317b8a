/*
 * Finding other programs, and running them: as a child, of which there is one at a time, or in this
 * process's place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIB_PROGRAM_H
#define LIB_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

/* The file that a shell would run for word, a path or a name in PATH; NULL if there is none. */
char *program_in_path(const char *word);

/* Replaces this process by a program (command: its name or path, its arguments, NULL).  On failure
 * exits with an error line and env's statuses: 127 if there is no such program, else 126. */
void exec_program(char **command) __attribute__((noreturn));

/* Forks, with a pipe.  Returns as fork(); *end is this end of the pipe: in this process the one
 * that it reads (0) or writes (1), in the child the other one.  program: what the child will
 * execute, for the error line with which this exits on failure. */
pid_t fork_with_pipe(const char *program, int own, int *end);

/* Whether this process's child has ended.  The child is not reaped. */
bool child_has_ended(pid_t pid);

/* Waits for this process's child to end.  *status: its exit status or, as in a shell, 128 plus the
 * signal that ended it.  False and errno: nothing can wait for it; *status is unchanged. */
bool wait_for_child(pid_t pid, int *status);

/* Whether this process's child, a fork, ends with status 0 before monotonic_ms() reaches the
 * deadline.  Else it may wait for a file of FUSE whose server does not answer: no signal ends that
 * before the server ends. */
bool child_ends_well(pid_t pid, long long deadline);

/* Runs a program and returns the first 64 KB of its stdout and stderr as a string.  arguments: its
 * name or path, its arguments, NULL.  After so many seconds the program's process group is killed.
 * The program gets SIGTERM if its parent ends before, and a signal ends both.  *status is
 * waitpid()'s; -1 if the program took too long or could not be started. */
char *run_and_capture(const char *const *arguments, int seconds, int *status);

/* Of atexit(): ends this process by the signal that came while run_and_capture() ran.  To be
 * registered first: it runs last. */
void end_by_signal(void);

/* SIGINT, SIGTERM and SIGHUP stay pending from here on, until start_in_foreground() has started its
 * program. */
void hold_interrupts(void);

/* Starts a program (command: its name or path, its arguments, NULL).  Until wait_in_foreground()
 * has ended, SIGINT, SIGTERM and SIGHUP that processes send are passed on to the program, which
 * gets SIGINT if its parent ends before. */
void start_in_foreground(char **command);

/* Whether that program has ended. */
bool foreground_has_ended(void);

/* Waits for its end, and returns its status as wait_for_child() has it. */
int wait_in_foreground(void);

/* start_in_foreground() and wait_in_foreground(). */
int run_in_foreground(char **command);

#endif
