/*
 * See thread.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "thread.h"

#include "futex.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { STACK_SIZE = 512 * 1024, BEGIN_MS = 2000, PERIOD_MS = 50 };

/* How many threads have called thread_begun(). */
static atomic_uint begun;

void thread_begun(void)
{
    begun++;
    futex_wake(&begun);
}

bool thread_start(pthread_t *thread, void *(*run)(void *), void *data)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    unsigned begun_before = begun;
    bool made = pthread_create(thread, &attributes, run, data) == 0;
    pthread_attr_destroy(&attributes);
    for (int i = 0; made && i < BEGIN_MS / PERIOD_MS && begun == begun_before; i++)
        if (!futex_wait_us(&begun, begun_before, PERIOD_MS * 1000L))
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made;
}

void thread_wait_until_gone(pid_t id)
{
    enum { TRIES = 1000, PAUSE_NS = 100000 };
    char path[64];
    struct timespec pause = {0, PAUSE_NS};
    snprintf(path, sizeof path, "/proc/self/task/%d", id);
    for (int i = 0; i < TRIES; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC); /* as CPython is about to open its own */
        if (fd < 0)
            return;
        close(fd);
        nanosleep(&pause, NULL);
    }
}
