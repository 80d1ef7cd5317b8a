/*
 * The main thread's end, by its clock, which it has while it lives.
 *
 * SPDX-License-Identifier: MIT
 */
#include "main_thread.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_t main_thread;
static bool main_known;

void main_thread_know(void)
{
    if (gettid() == getpid()) {
        main_thread = pthread_self();
        main_known = true;
    }
}

bool main_thread_left_us(void)
{
    clockid_t clock;
    struct stat threads;
    if (!main_known || pthread_getcpuclockid(main_thread, &clock) != ESRCH) /* no system call */
        return false;
    /* "." and "..", the main thread and this one */
    return stat("/proc/self/task", &threads) == 0 && threads.st_nlink <= 4;
}
