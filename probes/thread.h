/*
 * The start and the end of the watcher's thread.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread with no signals, which are for the program's threads, and waits until it has
 * called thread_begun(): a thread's start takes system calls that the C library does not do
 * without, and a filter for all threads may come at any time.  False: it can't be started.  Any
 * thread, no lock. */
bool thread_start(pthread_t *thread, void *(*run)(void *), void *data);

/* The calling thread has its start behind it, and has its name. */
void thread_begun(void);

/* A thread that has been joined is counted among the process's until the kernel has taken it out, a
 * moment later: waits for that, at most a tenth of a second.  3.12 and later read that count, to
 * warn of threads at a fork (Modules/posixmodule.c, warn_about_fork_with_threads). */
void thread_wait_until_gone(pid_t id);

#endif
