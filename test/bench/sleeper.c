/*
 * A second thread in a process, which only sleeps: what part of the shim's cost is any thread's.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <unistd.h>

static void *sleep_on(void *unused)
{
    for (;;)
        pause();
    return unused;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_on, NULL);
}
