/*
 * SPDX-License-Identifier: MIT
 */
#include "thread_block.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Lists that are whole between any two lines, as a fork may come there: what a pointer points to is
 * written before the pointer. */
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
    size_t wanted = own ? 2 * own->size : size;
    struct block *block = realloc(own, sizeof *block + wanted);
    if (block)
        block->size = wanted;
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
