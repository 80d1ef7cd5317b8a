/*
 * Finds the limit of the C stack.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stack_limit.h"

#include "cpython.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KILOBYTE = 1024, MEGABYTE = 1024 * KILOBYTE };

/* The main thread's in 3.11.  Its stack grows as far as RLIMIT_STACK allows at that moment, which
 * the program may have lowered, as it needs little: asked for anew with each STEP. */
static __thread bool moves;

__thread char *stack_limit;

/* The main thread's. */
static char *main_stack_end;
static size_t main_stack_size;

/* Where the kernel put the main thread's first frame: ld.so's, GLIBC_2.2.5 (GLIBC_2.17 and so on
 * elsewhere). */
extern void *__libc_stack_end __attribute__((weak));

void stack_limit_init(void)
{
    /* What the kernel leaves free below it at least, whatever the limit becomes. */
    const size_t most = 128 * (size_t)MEGABYTE;
    struct rlimit limit;
    if (main_stack_end || !&__libc_stack_end || getrlimit(RLIMIT_STACK, &limit) != 0)
        return;
    main_stack_end = __libc_stack_end;
    main_stack_size = limit.rlim_cur < most ? limit.rlim_cur : most;
}

/* How much of a stack is hooked.  A quarter of the main thread's usual 8 MB is room for more than
 * 3,000 calls.  Up to 3.10 the hook itself takes a few hundredths of that, so more of a small stack
 * is hooked; in 3.11 without the hook these calls would take nothing of it. */
static size_t hooked(size_t size)
{
    return py.minor == 11 || size > 4 * (size_t)MEGABYTE ? size / 4 : size / 2;
}

static bool is_within(const char *here, const char *base, size_t size)
{
    return here >= base && here <= base + size;
}

static bool is_on_main_stack(const char *here)
{
    /* The child of another thread goes on with that one's stack. */
    return main_stack_end && gettid() == getpid() &&
           is_within(here, main_stack_end - main_stack_size, main_stack_size);
}

static char *step_down(char *here)
{
    enum { STEP = 128 * KILOBYTE }; /* what the kernel has mapped at first */
    char *lowest = main_stack_end - hooked(main_stack_size), *next = here - STEP;
    struct rlimit limit;
    moves = next > lowest;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < main_stack_size) {
        moves = true;
        lowest = main_stack_end - hooked(limit.rlim_cur);
    }
    return next > lowest ? next : lowest;
}

bool stack_limit_extend(char *here)
{
    if (moves)
        stack_limit = step_down(here);
    return here >= stack_limit;
}

char *stack_limit_of_thread(void)
{
    char *here = __builtin_frame_address(0);
    if (is_on_main_stack(here))
        return py.minor == 11 ? step_down(here) : main_stack_end - hooked(main_stack_size);
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return here; /* a stack of unknown size: don't hook what lies deeper */
    void *base;
    size_t size;
    bool found = pthread_attr_getstack(&attributes, &base, &size) == 0;
    pthread_attr_destroy(&attributes);
    return found && is_within(here, base, size) ? (char *)base + size - hooked(size) : here;
}
