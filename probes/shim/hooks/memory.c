/*
 * The memory markers: samples allocations of CPython's domains "mem" and "obj", by allocators of
 * the shim's in front of CPython's (PyMem_SetAllocator()).
 *
 * The allocators run on any thread that may call PyMem_Malloc(), with the GIL of its interpreter.
 * Interpreters may have a GIL each, and free-threaded builds have none: what threads share is
 * atomic.  The raw domain is left out: its callers need no GIL, so most have no Python stack, and
 * CPython itself replaces that allocator for moments (Objects/obmalloc.c:
 * _PyMem_SetDefaultAllocator()).
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/threads.h"
#include "hooks/hook.h"
#include "os/process.h"
#include "os/thread.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- sampled blocks */

/* The addresses of living blocks that were sampled, by buckets; 0: a free slot.  A bit of
 * `occupied` is set while its bucket has one, so that most calls of free() end after one load. */
enum { BUCKETS = 1 << 16, SLOTS = 4 };
static _Atomic(uintptr_t) sampled[BUCKETS][SLOTS];
static _Atomic(uint64_t) occupied[BUCKETS / 64];

static inline unsigned bucket_of(const void *address)
{
    return (uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15 >> 48;
}

static inline bool is_occupied(unsigned bucket)
{
    return atomic_load_explicit(&occupied[bucket / 64], memory_order_relaxed) >> bucket % 64 & 1;
}

/* False: the bucket is full. */
static bool remember(void *address)
{
    unsigned bucket = bucket_of(address);
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t slot = 0;
        /* A block of this address may be left from a time without the allocators. */
        if (atomic_compare_exchange_strong(&sampled[bucket][i], &slot, (uintptr_t)address) ||
            slot == (uintptr_t)address) {
            atomic_fetch_or(&occupied[bucket / 64], UINT64_C(1) << bucket % 64);
            return true;
        }
    }
    return false;
}

static bool is_empty(unsigned bucket)
{
    int i = 0;
    while (i < SLOTS && !sampled[bucket][i])
        i++;
    return i == SLOTS;
}

/* Whether the block was sampled.  NULL, which is no block, has the value of a free slot. */
static bool forget(void *address)
{
    if (!address)
        return false;
    unsigned bucket = bucket_of(address);
    uint64_t bit = UINT64_C(1) << bucket % 64;
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t slot = (uintptr_t)address;
        if (!atomic_compare_exchange_strong(&sampled[bucket][i], &slot, 0))
            continue;
        if (is_empty(bucket)) {
            atomic_fetch_and(&occupied[bucket / 64], ~bit);
            if (!is_empty(bucket)) /* another thread has filled a slot meanwhile */
                atomic_fetch_or(&occupied[bucket / 64], bit);
        }
        return true;
    }
    return false;
}

static void forget_all(void)
{
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        if (is_occupied(bucket)) {
            for (int i = 0; i < SLOTS; i++)
                sampled[bucket][i] = 0;
            atomic_fetch_and(&occupied[bucket / 64], ~(UINT64_C(1) << bucket % 64));
        }
}

/* ---------------------------------------------------------------- which blocks are sampled */

/* Each byte is chosen with the probability 1 / period, and a block is sampled if one of its bytes
 * is. */
static _Atomic(int64_t) period;

/* Increases when the period changes, and when sampling begins: each thread then draws anew. */
static atomic_uint drawing;

/* A thread has so many bytes at most to allocate before it reads `drawing` again. */
enum { STRETCH = 1 << 16 };

static const int64_t LONGEST_PERIOD = 1 << 30;

static __thread struct {
    int64_t left;          /* bytes to the end of this stretch */
    int64_t then;          /* bytes from there to the next byte that is chosen */
    unsigned draw;         /* `drawing`, when it last drew */
    bool probing, reached; /* is_in_chain() */
} thread;

/* Not 0 once sampling has begun. */
static _Atomic(uint64_t) random_state;

/* Uniform, more than 0, at most 1, by splitmix64.  Reads no clock: a thread in seccomp's strict
 * mode has none (arch/x86/kernel/process.c: disable_TSC()). */
static double random_share(void)
{
    uint64_t mixed = atomic_fetch_add(&random_state, 0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    return ((double)(mixed >> 11) + 1) / 0x1p53;
}

/* The natural logarithm, to 1e-6: the shim has no libm.  x: more than 0, at most 1. */
static double logarithm(double x)
{
    double exponent = 0, s, square;
    for (; x < 0x1p-16; x *= 0x1p16)
        exponent -= 16;
    for (; x < 1; x *= 2)
        exponent--;
    s = (x - 1) / (x + 1);
    square = s * s;
    return exponent * 0.69314718055994531 +
           2 * s * (1 + square * (1 / 3. + square * (1 / 5. + square * (1 / 7. + square / 9))));
}

/* e to the power of -x, to 1e-8.  x: from 0 to 32. */
static double exponential(double x)
{
    double y = -x / 1024, power = 1 + y * (1 + y / 2 * (1 + y / 3 * (1 + y / 4)));
    for (int i = 0; i < 10; i++)
        power *= power;
    return power;
}

/* The number of bytes to the next one that is chosen. */
static int64_t draw(void)
{
    return (int64_t)(-logarithm(random_share()) * (double)period);
}

/* What a sampled block stands for, so that the sum of the weights is, on the average, that of the
 * sizes of all blocks: its size, divided by the probability with which it is sampled. */
static size_t weight_of(size_t size)
{
    double periods = (double)size / (double)period;
    if (periods > 32)
        return size;
    return (size_t)((double)size / (1 - exponential(periods)) + 0.5);
}

/* An allocation goes beyond the end of the thread's stretch: begins the next one.  Whether a byte
 * of the allocation is chosen. */
static bool end_stretch(size_t size)
{
    int64_t beyond = -thread.left;
    bool is_chosen;
    if (thread.probing) {
        thread.reached = true;
        thread.left += (int64_t)size;
        return false;
    }
    if (thread.draw != drawing) {
        thread.draw = drawing;
        thread.then = draw();
    }
    is_chosen = beyond > thread.then;
    if (is_chosen)
        thread.then = draw();
    else
        thread.then -= beyond;
    thread.left = thread.then < STRETCH ? thread.then : STRETCH;
    thread.then -= thread.left;
    return is_chosen;
}

/* Ours are the first allocators, or a tool that was set later calls them. */
static atomic_bool is_sampling;

/* A block with a byte that is chosen.  Returns its address; NULL: the allocation failed.  Behind
 * another tool's allocators ours are called without a tracer, too; and for the next tracer before
 * the hook is set, which forgets the blocks of the one before. */
static void *sample(void *address, size_t size, int domain)
{
    if (address && is_sampling && MARKER_ON(memory__sample)) {
        /* no address: no room to remember the block, so its end goes unnoticed */
        void *known = remember(address) ? address : NULL;
        size_t weight = weight_of(size);
        marker_memory__sample(known, size, weight, domain);
        marker_otel_memory_alloc(known, size, weight);
    }
    return address;
}

/* ---------------------------------------------------------------- the allocators */

enum { MEM = 1, OBJ = 2, DOMAINS }; /* PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ */

/* The allocators behind ours.  One is replaced only while no thread can call ours: see put_in(). */
static struct cpython_allocator behind[DOMAINS];

/* Counts the bytes of an allocation before it is made, so that most allocators end in a jump to the
 * one behind.  Whether they go beyond the end of the thread's stretch. */
static inline bool ends_stretch(size_t size)
{
    return __builtin_expect((thread.left -= (int64_t)size) < 0, 0);
}

static inline bool may_be_sampled(const void *address)
{
    return __builtin_expect(is_occupied(bucket_of(address)), 0);
}

static void end_block(void *address)
{
    if (forget(address) && MARKER_ON(memory__free)) {
        marker_memory__free(address);
        marker_otel_memory_free(address);
    }
}

/* Apart, so that the common case of free() keeps no register. */
static __attribute__((noinline)) void free_block(void *address, int domain)
{
    end_block(address);
    behind[domain].free(behind[domain].context, address);
}

static __attribute__((noinline)) void *malloc_at_end(size_t size, int domain)
{
    bool is_chosen = end_stretch(size);
    void *address = behind[domain].malloc(behind[domain].context, size);
    return is_chosen ? sample(address, size, domain) : address;
}

static __attribute__((noinline)) void *calloc_at_end(size_t number, size_t size, int domain)
{
    bool is_chosen = end_stretch(number * size);
    void *address = behind[domain].calloc(behind[domain].context, number, size);
    return is_chosen ? sample(address, number * size, domain) : address;
}

static __attribute__((noinline)) void *realloc_at_end(void *old, size_t size, int domain)
{
    bool is_chosen = end_stretch(size);
    void *address = behind[domain].realloc(behind[domain].context, old, size);
    return is_chosen ? sample(address, size, domain) : address;
}

/* The context is not used: a tool that was set after ours may hand an old one back.  It is that of
 * the allocator behind, for a thread that reads PyMemAllocatorEx while its words are being
 * replaced: such a thread may call either allocator. */
#define ALLOCATOR(domain) \
    static void *malloc_##domain(void *context, size_t size) \
    { \
        (void)context; \
        if (ends_stretch(size)) \
            return malloc_at_end(size, domain); \
        return behind[domain].malloc(behind[domain].context, size); \
    } \
    static void *calloc_##domain(void *context, size_t number, size_t size) \
    { \
        (void)context; \
        if (ends_stretch(number * size)) \
            return calloc_at_end(number, size, domain); \
        return behind[domain].calloc(behind[domain].context, number, size); \
    } \
    /* A block that can't grow lives on, unsampled. */ \
    static void *realloc_##domain(void *context, void *address, size_t size) \
    { \
        (void)context; \
        if (address && may_be_sampled(address)) \
            end_block(address); \
        if (ends_stretch(size)) \
            return realloc_at_end(address, size, domain); \
        return behind[domain].realloc(behind[domain].context, address, size); \
    } \
    static void free_##domain(void *context, void *address) \
    { \
        (void)context; \
        if (may_be_sampled(address)) \
            free_block(address, domain); \
        else \
            behind[domain].free(behind[domain].context, address); \
    }
ALLOCATOR(MEM)
ALLOCATOR(OBJ)

static const struct cpython_allocator ours[DOMAINS] = {
    [MEM] = {NULL, malloc_MEM, calloc_MEM, realloc_MEM, free_MEM},
    [OBJ] = {NULL, malloc_OBJ, calloc_OBJ, realloc_OBJ, free_OBJ},
};

static struct cpython_allocator current(int domain)
{
    struct cpython_allocator now;
    py.PyMem_GetAllocator(domain, &now);
    return now;
}

/* Whether CPython calls our allocator by that of another tool, which was set after ours. */
static bool is_in_chain(struct cpython_allocator first)
{
    int64_t left = thread.left;
    thread.probing = true;
    thread.reached = false;
    thread.left = 0;
    first.free(first.context, first.malloc(first.context, 1));
    thread.probing = false;
    thread.left = left;
    return thread.reached;
}

/* A tool that was set before ours takes ours out as it ends, as tracemalloc does: a recheck puts
 * ours back.  One that was set after ours may call ours, so ours must not be set in front of it. */
static void put_in(int domain)
{
    struct cpython_allocator now = current(domain), allocator = ours[domain];
    if (now.malloc == allocator.malloc || is_in_chain(now))
        return;
    behind[domain] = now;
    atomic_thread_fence(memory_order_release);
    allocator.context = now.context;
    py.PyMem_SetAllocator(domain, &allocator);
}

/* Ours stays behind a tool that was set after ours, and samples nothing. */
static void take_out(int domain)
{
    if (current(domain).malloc == ours[domain].malloc)
        py.PyMem_SetAllocator(domain, &behind[domain]);
}

/* ---------------------------------------------------------------- the hook */

/* Claimed by the thread that sets the hook: interpreters may have a GIL each. */
static claim_flag setting;

static bool fits(void)
{
    return py.PyMem_GetAllocator && py.PyMem_SetAllocator;
}

/* PYTHON_STAP_MEMORY, as the process began; 0: not set, or not a number. */
static int64_t wish_of_environment;

/* The mean distance of samples, in bytes: the smallest that a tracer asks for; else that of
 * PYTHON_STAP_MEMORY; else 512 KiB. */
static void update_period(void)
{
    int64_t wish = 0;
    if (MARKER_ON(memory__period))
        marker_memory__period(&wish);
    if (wish <= 0)
        wish = wish_of_environment;
    if (wish <= 0 || wish > LONGEST_PERIOD)
        wish = 512 * 1024;
    if (period == wish && is_sampling)
        return;
    if (!random_state)
        random_state = clock_ns();
    period = wish;
    drawing++;
    debug_log("memory hook: a sample each %ld bytes", (long)wish);
}

static void set_allocators(void *data)
{
    bool enabled = *(const bool *)data;
    for (int domain = MEM; domain < DOMAINS; domain++)
        if (enabled)
            put_in(domain);
        else
            take_out(domain);
    is_sampling = enabled;
}

/* The number that word is; 0: it is none, or too large.  number_at() reads nine digits, and
 * LONGEST_PERIOD has ten. */
static int64_t period_of(const char *word)
{
    int64_t bytes = 0;
    for (; *word >= '0' && *word <= '9' && bytes <= LONGEST_PERIOD; word++)
        bytes = 10 * bytes + (*word - '0');
    return *word ? 0 : bytes;
}

static void start(struct interp *interp)
{
    const char *word = secure_getenv("PYTHON_STAP_MEMORY");
    if (interp->is_main)
        wish_of_environment = word ? period_of(word) : 0;
}

/* The allocators are the process's, for all interpreters.  In a free-threaded build they change
 * while the world is stopped, so that each thread sees `behind` with them. */
static enum hook_result set(struct interp *interp, unsigned enabled)
{
    (void)interp;
    (void)enabled;
    if (atomic_exchange(&setting, true))
        return HOOK_LATER;
    bool sample = markers_enabled() & (MARKER_BIT(memory__sample) | MARKER_BIT(memory__free));
    if (sample)
        update_period();
    if (sample && !is_sampling)
        forget_all();
    if (sample || is_sampling)
        stop_the_world_call(set_allocators, &sample);
    atomic_store(&setting, false);
    return sample == is_sampling ? HOOK_DONE : HOOK_LATER;
}

void memory_at_exit(void)
{
    bool sample = false;
    if (is_sampling)
        stop_the_world_call(set_allocators, &sample);
}

void memory_after_fork(void)
{
    setting = false;
}

const struct hook hook_memory = {
    .name = "memory hook",
    .markers = MARKER_BIT(memory__period) | MARKER_BIT(memory__sample) | MARKER_BIT(memory__free),
    .watcher_may_set = true,
    .watcher_may_reset = true,
    .must_recheck = true,
    .is_supported = fits,
    .start = start,
    .set = set,
};
