/*
 * The markers' semaphores and sites, in the format of SystemTap's <sys/sdt.h>.  No lock.
 *
 * A site is a nop, which the kernel replaces by a breakpoint while a tracer probes the marker.  On
 * x86-64 each marker has two sites and executes one.  Which one costs less depends on the kernel:
 *   narrow  A nop of one byte.  Every kernel skips it.
 *   wide    A nop of five bytes within one page.  Linux 6.18 turns its breakpoint into a call, at
 *           half the cost (arch/x86/kernel/uprobes.c: can_optimize()); on 7.2 both sites were
 *           measured to cost the same.  Before 6.18 the nop is executed out of line, which costs
 *           more (branch_setup_xol_ops()).
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

/* Who probes the double of a marker raises the marker's own semaphore. */
#define ALIAS(name, original) \
    extern unsigned short otel_memory_##name##_semaphore \
        __attribute__((alias("python_" #original "_semaphore"), visibility("hidden")))
ALIAS(alloc, memory__sample);
ALIAS(free, memory__free);

/* MARKER(NAME, (PARAMETERS), ARGUMENTS...) for each marker of the provider otel_memory. */
#define OTEL_MEMORY_LIST(MARKER) \
    MARKER(alloc, (void *address, long size, long weight), address, size, weight) \
    MARKER(free, (void *address), address)

/* A row of the section .python_sites: where a site is, by the label that <sys/sdt.h> gives it; its
 * marker; and what is there while no tracer probes it. */
struct site {
    int32_t distance; /* from this word */
    uint16_t marker, is_wide;
    unsigned char nop[8];
};
__asm__(".pushsection .python_sites, \"a\"\n"
        ".balign 8\n"
        "python_sites:\n"
        ".popsection");
extern const struct site python_sites[] __attribute__((visibility("hidden")));
#define LIST_SITE(marker, is_wide, nop) \
    __asm__ volatile(".pushsection .python_sites, \"a\"\n" \
                     ".balign 8\n" \
                     ".long 990b - .\n" \
                     ".short %c0, %c1\n" nop "\n" \
                     ".balign 8, 0\n" \
                     ".popsection" ::"i"(marker), \
                     "i"(is_wide))

/* The marker whose semaphore the sites of a name have. */
enum {
    SEMAPHORE_OF_alloc = MARKER_memory__sample,
    SEMAPHORE_OF_free = MARKER_memory__free,
#define SEMAPHORE_OF(name, ...) SEMAPHORE_OF_##name = MARKER_##name,
    MARKERS_LIST(SEMAPHORE_OF)
};

enum { IS_narrow, IS_wide };

#define SITE(width, provider, name, parameters, ...) \
    static inline void width##_##provider##_##name parameters \
    { \
        STAP_PROBEV(provider, name, __VA_ARGS__); \
        LIST_SITE(SEMAPHORE_OF_##name, IS_##width, width##_NOP); \
    }

#define TEXT(words) #words
#define TEXT_OF(macro) TEXT(macro)
#define narrow_NOP TEXT_OF(_SDT_NOP)
#define NARROW_SITE(name, parameters, ...) SITE(narrow, python, name, parameters, __VA_ARGS__)
#define NARROW_OTEL_SITE(name, parameters, ...) \
    SITE(narrow, otel_memory, name, parameters, __VA_ARGS__)
MARKERS_LIST(NARROW_SITE)
OTEL_MEMORY_LIST(NARROW_OTEL_SITE)

#ifdef __x86_64__

#undef _SDT_NOP
/* clang-format off */
#define _SDT_NOP .balign 8; 990: .nops 5
/* clang-format on */

#define wide_NOP ".nops 5"
#define WIDE_SITE(name, parameters, ...) SITE(wide, python, name, parameters, __VA_ARGS__)
#define WIDE_OTEL_SITE(name, parameters, ...) SITE(wide, otel_memory, name, parameters, __VA_ARGS__)
MARKERS_LIST(WIDE_SITE)
OTEL_MEMORY_LIST(WIDE_OTEL_SITE)

/* Not 0: use the wide sites.  0 in a child of a fork: Linux 6.18 copies the calls into the child,
 * but not the page that they call, so the child would end with SIGSEGV. */
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

#define FIRE_A_SITE(function, provider, name, parameters, ...) \
    __attribute__((noinline)) void function parameters \
    { \
        if (__builtin_expect(*is_wide, 0)) \
            wide_##provider##_##name(__VA_ARGS__); \
        else \
            narrow_##provider##_##name(__VA_ARGS__); \
    }

static bool are_wide(void)
{
    return *is_wide != 0;
}

#else /* all nops have one size: the compiler would merge the two sites */

void markers_choose_sites(void) {}

static bool are_wide(void)
{
    return false;
}

#define FIRE_A_SITE(function, provider, name, parameters, ...) \
    __attribute__((noinline)) void function parameters \
    { \
        narrow_##provider##_##name(__VA_ARGS__); \
    }

#endif

#define FIRE(name, parameters, ...) \
    FIRE_A_SITE(marker_##name, python, name, parameters, __VA_ARGS__)
#define FIRE_OTEL(name, parameters, ...) \
    FIRE_A_SITE(marker_otel_memory_##name, otel_memory, name, parameters, __VA_ARGS__)
MARKERS_LIST(FIRE)
OTEL_MEMORY_LIST(FIRE_OTEL)

/* ---------------------------------------------------------------- probed sites */

/* Each marker has a row of each width, and so have the two of otel_memory. */
#ifdef __x86_64__
enum { SITES = 2 * (MARKERS + 2) };
#else
enum { SITES = MARKERS + 2 };
#endif

unsigned markers_probed(void)
{
    unsigned probed = 0;
    for (const struct site *site = python_sites; site < python_sites + SITES; site++) {
        const volatile unsigned char *code =
            (const unsigned char *)&site->distance + site->distance;
        if (site->is_wide == are_wide() && *code != *site->nop)
            probed |= 1u << site->marker;
    }
    return probed;
}

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
