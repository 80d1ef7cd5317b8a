/*
 * Fuzzes what stap-python reads of profiles, and what it writes of them in each format.  An input
 * is a byte, even for folded text and odd for the message in a file of pprof's, and that.  The
 * byte's second bit is for lines of memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"
#include "profile/flamegraph.h"
#include "profile/pprof.h"
#include "profile/speedscope.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const uint8_t *input;
static size_t input_size;

static char *gzipped(const uint8_t *data, size_t size, size_t *length)
{
    z_stream stream = {.next_in = (uint8_t *)data, .avail_in = (unsigned)size};
    fuzz_check(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK,
               "zlib");
    size_t room = deflateBound(&stream, size);
    char *packed = malloc(room);
    stream.next_out = (uint8_t *)packed;
    stream.avail_out = (unsigned)room;
    fuzz_check(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate() fails");
    *length = stream.total_out;
    deflateEnd(&stream);
    return packed;
}

static struct profile *read_input(const char **wrong)
{
    struct profile *profile = profile_new();
    size_t length = input_size - 1;
    char *data = malloc(length + 1);
    memcpy(data, input + 1, length);
    profile->values = *input & 2 ? VALUES : 1;
    if (*input & 1)
        data = gzipped(input + 1, length, &length);
    *wrong = *input & 1 ? profile_read_pprof(profile, 0, data, length)
                        : profile_read_folded(profile, 0, data, length);
    return profile;
}

static size_t count(const char *text, const char *wanted)
{
    size_t found = 0;
    for (; (text = strstr(text, wanted)); text++)
        found++;
    return found;
}

static void look(void)
{
    const char *wrong;
    char *text = NULL;
    size_t size = 0;
    struct profile *profile = read_input(&wrong);
    fuzz_check(!wrong || *wrong, "a profile is refused without a reason");
    if (wrong || !profile->stacks[0].total[0])
        return;
    profile_sum(profile);
    profile->rate = 99;
    struct profile *reversed = profile_reversed(profile);
    fuzz_check(reversed->stacks[0].total[0] == profile->stacks[0].total[0], "samples are lost");
    FILE *file = open_memstream(&text, &size);
    flamegraph_write(profile, &(struct graph){.title = "", .note = ""}, file);
    html_write(profile, &(struct graph){.title = "", .note = "", .is_reversed = true}, file);
    fclose(file);
    fuzz_check(strlen(text) == size && count(text, "<script") == 2, "a name is a script");
    file = open_memstream(&text, &size);
    speedscope_write(profile, "", file);
    fclose(file);
    file = open_memstream(&text, &size);
    profile_write_pprof(profile, file);
    fclose(file);
    struct profile *again = profile_new();
    profile->rate = 0;
    wrong = profile_read_pprof(again, 0, text, size);
    fuzz_check(!wrong || strstr(wrong, "2^53"), "what was written can't be read");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = data;
    input_size = size;
    if (size)
        fuzz_run(look);
    return 0;
}
