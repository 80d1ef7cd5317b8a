/*
 * SPDX-License-Identifier: MIT
 */

#include "os/thread.h"

#include "os/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- start and end of a thread */

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
        /* CPython itself opens a file of /proc next, to count the threads. */
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        close(fd);
        nanosleep(&pause, NULL);
    }
}

/* ---------------------------------------------------------------- the watcher's descriptors */

/* Linux 5.9; a shim that was built with older headers does nothing. */
#ifndef SYS_close_range
#define SYS_close_range (-1)
#endif
enum { UNSHARE = 1 << 1 }; /* CLOSE_RANGE_UNSHARE */

void descriptors_leave(bool *left)
{
    if (*left)
        return;
    *left = true;
    if (prctl(PR_GET_SECCOMP) != 0 ||
        syscall(SYS_close_range, debug_on ? STDERR_FILENO + 1 : 0, ~0u, UNSHARE) != 0 || !debug_on)
        return;
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
}

/* ---------------------------------------------------------------- memory of a thread */

/* Another thread may fork between any two statements, so the lists are consistent at any time: a
 * block is written before the pointer to it. */
struct block {
    struct block *_Atomic next;
    size_t size; /* of what follows */
    max_align_t memory[];
};
static struct block *_Atomic blocks, *_Atomic spare;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct block *block_of(void *memory)
{
    return memory ? (struct block *)((char *)memory - offsetof(struct block, memory)) : NULL;
}

static void put_first(struct block *_Atomic *list, struct block *block)
{
    block->next = *list;
    *list = block;
}

static void take_out(const struct block *block)
{
    struct block *_Atomic *at = &blocks;
    while (*at && *at != block)
        at = &(*at)->next;
    if (*at)
        *at = block->next;
}

static struct block *larger(struct block *own, size_t size)
{
    if (!own && spare) {
        struct block *block = spare;
        spare = block->next;
        put_first(&blocks, block);
        return block;
    }
    if (own)
        take_out(own);
    size_t needed = own ? 2 * own->size : size;
    struct block *block = realloc(own, sizeof *block + needed);
    if (block)
        block->size = needed;
    if (block || own)
        put_first(&blocks, block ? block : own);
    return block;
}

void *thread_block_grow(void *own, size_t *size)
{
    pthread_mutex_lock(&lock);
    struct block *block = larger(block_of(own), *size);
    pthread_mutex_unlock(&lock);
    if (!block)
        return NULL;
    *size = block->size;
    return block->memory;
}

void thread_block_free(void *own)
{
    struct block *block = block_of(own);
    pthread_mutex_lock(&lock);
    take_out(block);
    pthread_mutex_unlock(&lock);
    free(block);
}

void thread_blocks_after_fork(void *own)
{
    struct block *block = blocks, *next;
    pthread_mutex_init(&lock, NULL);
    for (blocks = NULL; block; block = next) {
        next = block->next;
        put_first(block == block_of(own) ? &blocks : &spare, block);
    }
}
