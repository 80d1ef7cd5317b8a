/*
 * What forks.py needs of C: a lock, and an end of the program that takes long; and preloaded, a
 * lock of CPython's that the shim's thread releases late, and a count of the calls of a function.
 *
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Taken and released with the GIL held: so no thread ever waits for it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void take(void)
{
    pthread_mutex_lock(&mutex);
}

void give(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A handler before forks that enables or disables the markers, and takes longer than the shim's
 * thread waits for a call of a function: so that thread waits for the GIL when the handler ends. */
void take_late(void)
{
    static int enabled;
    void (*set_semaphores)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "semaphores_set");
    take();
    set_semaphores(enabled ^= 1);
    usleep(400000);
}

void use(void)
{
    take();
    give();
}

/* Each fork of the process holds the lock, as POSIX recommends. */
void hold_over_forks(void)
{
    pthread_atfork(take_late, give, give);
}

/* Keeps it for longer than another thread takes to see that no function is called. */
void keep_the_gil(void)
{
    usleep(120000);
}

/* What waits for the GIL has asked for it meanwhile. */
int fork_late(void)
{
    usleep(600000);
    return fork();
}

/* The child runs no Python: CPython's, that knows nothing of the fork, waits for ever for another
 * thread to take the GIL if one had asked for it, as it does if the fork takes long. */
int fork_and_end(void)
{
    int child = fork();
    if (child == 0)
        _exit(0);
    return child;
}

static atomic_int asleep;

/* Called without the GIL, or detached. */
void sleep_for_good(void)
{
    asleep = 1;
    for (;;)
        pause();
}

int sleeps(void)
{
    return asleep;
}

static void end_slowly(void)
{
    sleep(2);
}

/* The process lives on after Py_Finalize(). */
void live_on(void)
{
    atexit(end_slowly);
}

/* Of the lock of 3.12's pending calls, and up to 3.11 of that of the thread states:
 * PyThread_release_lock() is sem_post(). */
int sem_post(sem_t *semaphore)
{
    static int (*next)(sem_t *);
    char name[16] = "";
    if (!next)
        next = (int (*)(sem_t *))dlsym(RTLD_NEXT, "sem_post");
    if (getenv("SLOW_SEM_POST")) {
        pthread_getname_np(pthread_self(), name, sizeof name);
        if (strcmp(name, "python-stap") == 0)
            usleep(20000);
    }
    return next(semaphore);
}

#ifdef COUNT_WALKS /* as CPython up to 3.8 has no such function, and the shim would call this one */
long walked;

/* The shim walks the stack by this. */
void *PyFrame_GetBack(void *frame)
{
    static void *(*next)(void *);
    if (!next)
        next = (void *(*)(void *))dlsym(RTLD_NEXT, "PyFrame_GetBack");
    walked++;
    return next(frame);
}
#endif
