/*
 * What the fuzzers of stap-python and the driver share.  These are programs that run once and end:
 * they leave by exit(), and what they allocate is never freed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Runs it, also until it calls exit(), and frees what it has allocated; returns the exit status,
 * -1: it came back. */
int fuzz_run(void (*function)(void));

/* What is done where it has called exit(), before its memory is freed; or NULL. */
extern void (*fuzz_after_exit)(void);

/* From inside of it: leaves it as exit() does.  For what execvp() is replaced by. */
void fuzz_leave(int status) __attribute__((noreturn));

/* Where the fuzzer may write, FUZZ_FOLDER; test/long/fuzz/run makes it anew each time. */
const char *fuzz_folder(void);

/* Aborts: the fuzzer has found something. */
void fuzz_check(int holds, const char *what);

/* What fuzz_run() kept of stdout and of stderr. */
const char *fuzz_said(void);
const char *fuzz_complained(void);

/* Checks that of them: one line of complaint where the exit status is not 0, and nothing that a
 * terminal takes for a command. */
void fuzz_check_said(int status);

/* A part of the input, up to a byte 0xff, as a string (of the caller's: to be freed); NULL behind
 * the last. */
char *fuzz_part(const uint8_t **data, size_t *size, size_t *length);

#endif
