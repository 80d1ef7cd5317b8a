/*
 * Two data races, each of two threads that write to one word: to see that
 * test/long/freethreaded/tsan reports both.  Preloaded.  As the shim's thread, those of the first
 * race leave the process's table of descriptors, if they can (no_close_range.c).
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { UNSHARE = 1 << 1, TIMES = 100000 }; /* CLOSE_RANGE_UNSHARE */

static int first, second;

static void *write_first(void *unused)
{
    syscall(SYS_close_range, 0U, ~0U, UNSHARE);
    for (int i = 0; i < TIMES; i++)
        first++;
    return unused;
}

static void *write_second(void *unused)
{
    for (int i = 0; i < TIMES; i++)
        second++;
    return unused;
}

static void race(void *(*write)(void *))
{
    pthread_t one, other;
    pthread_create(&one, NULL, write, NULL);
    pthread_create(&other, NULL, write, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
}

__attribute__((constructor)) static void race_twice(void)
{
    race(write_first);
    race(write_second);
}
