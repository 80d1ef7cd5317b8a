/*
 * Checks the tables of python_calls.stp, which are included before this file, as is a function
 * check(holds, what).  No thread may be in a handler.
 *
 * SPDX-License-Identifier: MIT
 */

/* The number of the calls in this list; none may be in another one. */
static u32 count_calls(u32 call, u32 expected, u8 *seen)
{
    u32 calls = 0;
    for (; call; call = python_calls[call].caller, calls++)
        check(call < python_used_calls && !seen[call]++, "a call twice");
    check(calls == expected, "a wrong number of calls");
    return calls;
}

static u32 count_calls_of(const struct python_thread *thread, u8 *seen)
{
    check(thread->asides <= PYTHON_ASIDE, "too many are set aside");
    check(thread->spare.count <= PYTHON_SPARES, "too many are kept");
    return count_calls(thread->open.call, thread->open.depth, seen) +
           count_calls(thread->forked.call, thread->forked.depth, seen) +
           count_calls(thread->aside, thread->asides, seen) +
           count_calls(thread->spare.first, thread->spare.count, seen);
}

/* Each call is open in one thread, set aside there, copied for its children, kept by it, free, or
 * never used. */
static void check_tables(void)
{
    static u8 seen[PYTHON_CALLS], seen_thread[PYTHON_THREADS];
    u32 number, bucket, calls = 1, threads = 1;
    u32 never_used = PYTHON_CALLS - python_used_calls;
    memset(seen, 0, sizeof seen);
    memset(seen_thread, 0, sizeof seen_thread);
    for (bucket = 0; bucket < PYTHON_THREADS; bucket++)
        for (number = python_buckets[bucket]; number; number = python_threads[number].next) {
            check(number < python_used_threads && !seen_thread[number]++, "a thread twice");
            threads++;
            calls += count_calls_of(&python_threads[number], seen);
        }
    for (number = python_free_thread; number; number = python_threads[number].next) {
        check(number < python_used_threads && !seen_thread[number]++, "a free thread twice");
        check(!count_calls_of(&python_threads[number], seen), "calls of a free thread");
        threads++;
    }
    calls += count_calls(python_free_call, python_free_calls - never_used, seen);
    check(calls == python_used_calls && threads == python_used_threads, "some are lost");
    check(python_used_calls <= PYTHON_CALLS && python_used_threads <= PYTHON_THREADS, "too many");
}

/* The number of free calls that threads keep. */
static u32 count_spares(void)
{
    u32 number, bucket, spares = 0;
    for (bucket = 0; bucket < PYTHON_THREADS; bucket++)
        for (number = python_buckets[bucket]; number; number = python_threads[number].next)
            spares += python_threads[number].spare.count;
    return spares;
}
