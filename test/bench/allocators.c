/*
 * Allocators of the domains "mem" and "obj" that only call those behind them: what part of the cost
 * of memory__sample is that of any PyMem_SetAllocator().  workload.py loads it.
 *
 * PyMemAllocatorEx and PyMemAllocatorDomain: CPython's Include/cpython/pymem.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stddef.h>

struct allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t nelem, size_t elsize);
    void *(*realloc)(void *ctx, void *ptr, size_t new_size);
    void (*free)(void *ctx, void *ptr);
};

void PyMem_GetAllocator(int domain, struct allocator *allocator);
void PyMem_SetAllocator(int domain, struct allocator *allocator);

static struct allocator behind[3];

static void *pass_malloc(void *ctx, size_t size)
{
    struct allocator *next = ctx;
    return next->malloc(next->ctx, size);
}

static void *pass_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct allocator *next = ctx;
    return next->calloc(next->ctx, nelem, elsize);
}

static void *pass_realloc(void *ctx, void *ptr, size_t new_size)
{
    struct allocator *next = ctx;
    return next->realloc(next->ctx, ptr, new_size);
}

static void pass_free(void *ctx, void *ptr)
{
    struct allocator *next = ctx;
    next->free(next->ctx, ptr);
}

/* Called once, by a thread that holds the GIL. */
void pass_on(void)
{
    for (int domain = 1; domain <= 2; domain++) {
        PyMem_GetAllocator(domain, &behind[domain]);
        struct allocator own = {&behind[domain], pass_malloc, pass_calloc, pass_realloc, pass_free};
        PyMem_SetAllocator(domain, &own);
    }
}
