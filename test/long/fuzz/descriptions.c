/*
 * Fuzzes the driver's descriptions (test/driver_description.c): a text is refused, in one line, or
 * read into steps, which are then run where they aren't too many.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* No string of 1 GB, nor a pause. */
static void *small_malloc(size_t size)
{
    return size > 1 << 20 ? NULL : malloc(size);
}

/* The file that it reads; open where it was left by exit(). */
static FILE *stream_in_use;

static FILE *noted_fopen(const char *name, const char *mode)
{
    return stream_in_use = fopen(name, mode);
}

static int noted_fclose(FILE *stream)
{
    stream_in_use = NULL;
    return fclose(stream);
}

/* It is the driver, with names of its own for these: its state is to be as at its start. */
#define main driver_main
#define malloc small_malloc
#define fopen noted_fopen
#define fclose noted_fclose
#define nanosleep(time, left) ((void)(time), 0)
#include "../../driver_description.c"
#include "../../driver.c"
#undef main
#undef malloc
#undef fopen
#undef fclose
#undef nanosleep

static int input;
static char path[64];

static void read_it(void)
{
    steps = NULL;
    step_count = 0;
    open_block = none;
    line = 0;
    memset(described, 0, sizeof described);
    memset(fired, 0, sizeof fired);
    always = true;
    read_file(path);

    fuzz_check(open_block == none, "a block is left open");
    int64_t most = 1, depth = 0, times[64] = {1};
    for (size_t i = 0; i < step_count; i++) {
        const struct step *step = &steps[i];
        fuzz_check(step->times >= 0, "a step is run less than never");
        fuzz_check(step->what != BEGIN || (steps[step->other].what == END && step->other > i),
                   "a block has no end");
        fuzz_check(step->what != END || (steps[step->other].what == BEGIN && step->other < i),
                   "an end has no block");
        if (step->what == BEGIN) {
            if (++depth == 64)
                return;
            times[depth] = times[depth - 1];
        } else if (step->what == END) {
            depth--;
            continue;
        }
        if (__builtin_mul_overflow(times[depth], step->times, &most) || most > 1000)
            return;
        if (step->what == BEGIN)
            times[depth] = most;
    }
    run();
    print_counts();
}

static void close_stream(void)
{
    if (stream_in_use)
        noted_fclose(stream_in_use);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    input = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_check(input >= 0, "memfd_create() fails");
    snprintf(path, sizeof path, "/proc/self/fd/%d", input);
    markers_choose_sites();
    fuzz_after_exit = close_stream;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_check(ftruncate(input, 0) == 0 && pwrite(input, data, size, 0) == (ssize_t)size, "memfd");
    int status = fuzz_run(read_it);
    fuzz_check_said(status);
    fuzz_check(status == -1 || status == 2 || status == 1, "another exit status");
    return 0;
}
