/*
 * Preloaded after the shim, it overwrites a member of CPython's debug offsets before the shim reads
 * them. FALSIFIED="MEMBER VALUE" or "#WORD VALUE"; with a + before VALUE it is added.  Says
 * "unchanged" if the word was so before.
 *
 * SPDX-License-Identifier: MIT
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/cpython_structs.h"

#define MEMBER(name) \
    { \
#name, \
        { \
            offsetof(struct _Py_DebugOffsets_313, name), \
                offsetof(struct _Py_DebugOffsets_314, name), \
                offsetof(struct _Py_DebugOffsets_315, name) \
        } \
    }
#define MEMBER_314(name) \
    { \
#name, \
        { \
            0, offsetof(struct _Py_DebugOffsets_314, name), \
                offsetof(struct _Py_DebugOffsets_315, name) \
        } \
    }

static const struct {
    const char *name;
    size_t at[3]; /* in 3.13, 3.14, 3.15 */
} members[] = {
    MEMBER(cookie),
    MEMBER(version),
    MEMBER(free_threaded),
    MEMBER(interpreter_state.imports_modules),
    MEMBER(interpreter_state.ceval_gil),
    MEMBER(interpreter_state.gil_runtime_state),
    MEMBER(interpreter_state.gil_runtime_state_locked),
    MEMBER(interpreter_state.gil_runtime_state_holder),
    MEMBER(thread_state.interp),
    MEMBER(thread_state.current_frame),
    MEMBER(interpreter_frame.previous),
    MEMBER(interpreter_frame.executable),
    MEMBER(interpreter_frame.instr_ptr),
    MEMBER(interpreter_frame.localsplus),
    MEMBER(interpreter_frame.owner),
    MEMBER_314(interpreter_frame.tlbc_index),
    MEMBER(code_object.filename),
    MEMBER(code_object.name),
    MEMBER(code_object.qualname),
    MEMBER(code_object.linetable),
    MEMBER(code_object.firstlineno),
    MEMBER(code_object.argcount),
    MEMBER(code_object.localsplusnames),
    MEMBER(code_object.localspluskinds),
    MEMBER(code_object.co_code_adaptive),
    MEMBER_314(code_object.co_tlbc),
    MEMBER(pyobject.ob_type),
    MEMBER(tuple_object.ob_item),
    MEMBER(dict_object.ma_keys),
    MEMBER(dict_object.ma_values),
};

static size_t place_of(const char *name, unsigned minor)
{
    if (*name == '#')
        return 8 * strtoul(name + 1, NULL, 10);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(name, members[i].name) == 0)
            return members[i].at[minor - 13];
    abort();
}

__attribute__((constructor)) static void falsify(void)
{
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version");
    char *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime"), name[64], value[32];
    const char *falsified = getenv("FALSIFIED");
    if (!falsified || !runtime || sscanf(falsified, "%63s %31s", name, value) != 2)
        return;
    uint64_t *word = (uint64_t *)(runtime + place_of(name, *version >> 16 & 255)), before = *word;
    *word = strtoull(value, NULL, 0) + (*value == '+' ? before : 0);
    if (*word == before)
        fputs("unchanged\n", stderr);
}
