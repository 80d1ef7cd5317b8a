/*
 * SPDX-License-Identifier: MIT
 */
#include "open_calls.h"

#include "thread_block.h"
#include "ticks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct call {
    const void *function;
    uint64_t began, inside; /* ticks: when; in its callees */
    bool outermost;
};

/* The calls of a thread, the innermost last; and how many there are of the functions that share a
 * place: of a function whose place has none, none is open. */
enum { SLOTS = 256 };
struct block {
    uint32_t at_place[SLOTS];
    struct call call[];
};

static __thread struct calls {
    struct block *block;
    uint32_t depth, room;
    unsigned epoch;
} calls;

/* Another one for each time that times are wanted, or no longer, in each child, and where too many
 * calls are open: those that were open then are forgotten. */
static atomic_uint epoch = 1;

/* Calls that lose their ends stay: where a greenlet is given up that has not ended.  So there is an
 * end to it. */
enum { ROOM = 64, MAX_CALLS = 128 * 1024 };

static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

static void end_thread(void *block)
{
    thread_block_free(block);
    calls = (struct calls){0};
}

static void make_key(void)
{
    has_key = pthread_key_create(&at_thread_end, end_thread) == 0;
}

static void forget_here(void)
{
    calls.depth = 0;
    if (calls.block)
        memset(calls.block->at_place, 0, sizeof calls.block->at_place);
}

/* False: memory ran out. */
static __attribute__((noinline)) bool make_room(void)
{
    if (calls.room >= MAX_CALLS) { /* what is open in other threads goes with it */
        calls.epoch = ++epoch;
        forget_here();
        return true;
    }
    pthread_once(&key_once, make_key);
    size_t size = sizeof *calls.block + ROOM * sizeof *calls.block->call;
    struct block *block = has_key ? thread_block_grow(calls.block, &size) : NULL;
    if (!block)
        return false;
    bool is_first = !calls.block;
    calls.block = block;
    calls.room = (uint32_t)((size - sizeof *block) / sizeof *block->call);
    if (is_first)
        forget_here();
    pthread_setspecific(at_thread_end, block);
    return true;
}

static inline uint32_t *place_of(const void *function)
{
    return &calls.block->at_place[((uintptr_t)function >> 6) % SLOTS];
}

/* Behind the innermost call of it; 0: there is none. */
static inline size_t find(const void *function)
{
    size_t i = calls.depth;
    while (i > 0 && calls.block->call[i - 1].function != function)
        i--;
    return i;
}

void open_calls_begin(const void *function)
{
    unsigned now = atomic_load_explicit(&epoch, memory_order_relaxed);
    if (__builtin_expect(calls.epoch != now, 0)) {
        calls.epoch = now;
        forget_here();
    }
    if (__builtin_expect(calls.depth == calls.room, 0) && !make_room())
        return;
    uint32_t *open = place_of(function);
    struct call call = {.function = function, .outermost = *open == 0 || find(function) == 0};
    ++*open;
    call.began = ticks_now();
    calls.block->call[calls.depth++] = call;
}

/* Calls within it have lost their ends, or go on where the program has switched stacks in C. */
bool open_calls_end(const void *function, bool is_c, struct ended_call *ended)
{
    uint64_t now = ticks_now();
    if (calls.epoch != atomic_load_explicit(&epoch, memory_order_relaxed))
        return false;
    size_t behind = find(function);
    if (behind == 0)
        return false;
    struct call *at = &calls.block->call[behind - 1], call = *at;
    calls.depth--;
    if (__builtin_expect(behind <= calls.depth, 0))
        memmove(at, at + 1, (calls.depth - (behind - 1)) * sizeof call);
    --*place_of(function);
    ended->time = now > call.began ? now - call.began : 0;
    ended->own = ended->time > call.inside ? ended->time - call.inside : 0;
    ended->outermost = call.outermost;
    if (behind > 1)
        at[-1].inside += is_c ? call.inside : ended->time;
    return true;
}

void open_calls_invalidate(void)
{
    epoch++;
}

void open_calls_after_fork(void)
{
    thread_blocks_after_fork(calls.block);
}
