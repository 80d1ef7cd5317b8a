/*
 * How deep into the C stack of a thread the frame hook still hooks.  The hook's own frame stands
 * between any two Python calls on the C stack (and in 3.11 the evaluator's, too): what lies deeper
 * than this limit is not hooked.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STACK_LIMIT_H
#define STACK_LIMIT_H

#include <stdbool.h>

/* The lowest address of the C stack at which this thread still hooks; NULL: not yet found. */
extern __thread char *stack_limit;

/* Finds the main thread's stack, once: the C library would read /proc for it, which the thread may
 * not be allowed to (seccomp), or can't.  Called when the frame hook is set; GIL held. */
void stack_limit_init(void);

/* The limit of the calling thread.  It need not hold the GIL. */
char *stack_limit_of_thread(void);

/* Whether the limit, which here lies below, can be moved below it.  On the calling thread. */
bool stack_limit_extend(char *here);

/* In the header, as it asks how deep the hook itself stands, at each call of a Python function. */
static inline bool stack_limit_exceeded(void)
{
    if (__builtin_expect(!stack_limit, 0))
        stack_limit = stack_limit_of_thread();
    char *here = __builtin_frame_address(0);
    return __builtin_expect(here < stack_limit, 0) && !stack_limit_extend(here);
}

#endif
