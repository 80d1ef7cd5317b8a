/*
 * The markers' semaphores and sites, as SystemTap's <sys/sdt.h> has them.
 *
 * A site is a nop that a tracer turns into a breakpoint.  On x86-64 each marker has two, one of
 * which is passed: what a breakpoint costs there depends on the kernel's version.
 *   narrow  A nop of one byte is skipped by any kernel.
 *   wide    Linux 6.18 turns a breakpoint on a nop of five bytes into a call, at half the cost (7.2
 *           was seen not to, both sites then costing the same); before that it runs out of line,
 *           which costs more (arch/x86/kernel/uprobes.c: can_optimize(), which wants it in one
 *           page; branch_setup_xol_ops()).
 * The call writes below the stack pointer: on x86-64 this file is compiled without a red zone.
 *
 * SPDX-License-Identifier: MIT
 */

#include "markers/markers.h"

#include "os/process.h"
#include "shared/versions.h"

#define _SDT_HAS_SEMAPHORES 1
#define SDT_USE_VARIADIC /* STAP_PROBEV */
#include <sys/sdt.h>

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* Tracers raise the semaphores in .probes. */
#define SEMAPHORE(name, ...) \
    unsigned short python_##name##_semaphore \
        __attribute__((section(".probes"), used, visibility("hidden")));
MARKERS_LIST(SEMAPHORE)

#define NARROW_SITE(name, parameters, ...) \
    static inline void narrow_##name parameters \
    { \
        STAP_PROBEV(python, name, __VA_ARGS__); \
    }
MARKERS_LIST(NARROW_SITE)

#ifdef __x86_64__

#undef _SDT_NOP
/* clang-format off */
#define _SDT_NOP .balign 8; 990: .nops 5
/* clang-format on */

#define WIDE_SITE(name, parameters, ...) \
    static inline void wide_##name parameters \
    { \
        STAP_PROBEV(python, name, __VA_ARGS__); \
    }
MARKERS_LIST(WIDE_SITE)

/* A fork copies the calls, and not the page that they call (6.18: the child would end with
 * SIGSEGV): so in a child this is 0. */
static const int never;
static const int *is_wide = &never;

void markers_choose_sites(void)
{
    struct utsname kernel;
    int major, minor;
    if (uname(&kernel) != 0 || !number_pair(kernel.release, &major, &minor, NULL) || major < 6 ||
        (major == 6 && minor < 18))
        return;
    const int *word = zero_in_child_word();
    if (word)
        is_wide = word;
}

#define FIRE(name, parameters, ...) \
    __attribute__((noinline)) void marker_##name parameters \
    { \
        if (__builtin_expect(*is_wide, 0)) \
            wide_##name(__VA_ARGS__); \
        else \
            narrow_##name(__VA_ARGS__); \
    }

#else /* all nops are of one size, so the compiler would merge two sites */

void markers_choose_sites(void) {}

#define FIRE(name, parameters, ...) \
    __attribute__((noinline)) void marker_##name parameters \
    { \
        narrow_##name(__VA_ARGS__); \
    }

#endif

MARKERS_LIST(FIRE)

#define INFO(name, ...) {#name, &python_##name##_semaphore},
const struct marker_info marker_info[MARKERS] = {MARKERS_LIST(INFO)};

#define SIZE(name, ...) +sizeof #name ", "
_Static_assert(0 MARKERS_LIST(SIZE) <= MARKERS_TEXT, "room for all names");
#undef SIZE

const char *markers_to_text(unsigned markers, char *text)
{
    char *end = stpcpy(text, markers ? "" : "none");
    for (int i = 0; i < MARKERS; i++)
        if (markers & 1u << i)
            end = stpcpy(stpcpy(end, end == text ? "" : ", "), marker_info[i].name);
    return text;
}
