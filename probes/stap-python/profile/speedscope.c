/*
 * SPDX-License-Identifier: MIT
 */

#include "profile/speedscope.h"

#include "lib/util.h"

#include <stdlib.h>
#include <string.h>

static void write_frame(const char *name, FILE *output)
{
    struct name_parts parts = name_parts(name);
    /* Names that differ in their file stay apart: speedscope merges those that are the same. */
    fprintf(output, "{\"name\":%s", json_string(name));
    if (parts.kind == PYTHON_FUNCTION)
        fprintf(output, ",\"file\":%s", json_string(parts.file));
    if (parts.line)
        fprintf(output, ",\"line\":%u", parts.line);
    fputs("}", output);
}

static void write_indexes(const struct profile *profile, const struct stack *stack,
                          uint32_t *indexes, FILE *output)
{
    uint32_t depth = 0;
    for (; stack->depth; stack = &profile->stacks[stack->outer])
        indexes[depth++] = stack->name;
    fputs("[", output);
    while (depth--)
        fprintf(output, "%u%s", indexes[depth], depth ? "," : "");
    fputs("]", output);
}

void speedscope_write(const struct profile *profile, const char *title, FILE *output)
{
    const char *before = "\n";
    uint64_t weight, total = 0;
    uint32_t *indexes = calloc(profile->stack_count, sizeof *indexes);
    if (!indexes)
        abort();
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
          "\"exporter\":\"systemtap-cpython\",\n\"shared\":{\"frames\":[",
          output);
    for (size_t i = 0; i < profile->name_count; i++) {
        fputs(i ? ",\n" : "\n", output);
        write_frame(profile->names[i], output);
    }
    fprintf(output,
            "]},\n\"profiles\":[{\"type\":\"sampled\",\"unit\":\"%s\",\"name\":%s,\n\"samples\":[",
            profile->rate                         ? "microseconds"
            : strcmp(profile->unit, "bytes") == 0 ? "bytes"
                                                  : "none",
            json_string(title));
    for (size_t i = 1; i < profile->stack_count; i++) {
        if (!profile->stacks[i].own[0])
            continue;
        fputs(before, output);
        write_indexes(profile, &profile->stacks[i], indexes, output);
        before = ",\n";
    }
    fputs("],\n\"weights\":[", output);
    before = "";
    for (size_t i = 1; i < profile->stack_count; i++) {
        if (!profile->stacks[i].own[0])
            continue;
        weight = profile->stacks[i].own[0] * (profile->rate ? 1000000 : 1);
        weight /= profile->rate ? profile->rate : 1;
        total += weight;
        fprintf(output, "%s%llu", before, (unsigned long long)weight);
        before = ",";
    }
    fprintf(output, "],\n\"startValue\":0,\"endValue\":%llu}]}\n", (unsigned long long)total);
    free(indexes);
}
