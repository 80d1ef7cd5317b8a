/*
 * Collects the patterns, one thread at a time (`looking`), and matches functions, without a lock.
 *
 * SPDX-License-Identifier: MIT
 */

#include "markers/filter.h"

#include "markers/detach.h"
#include "os/process.h"
#include "shared/filter_page.h"
#include "shared/pattern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

atomic_uint filter_revision_word, filter_armed_word;

bool filter_set_armed(unsigned enabled)
{
    unsigned version = enabled & FILTERED_MARKERS ? filter_revision() : 0;
    return atomic_exchange(&filter_armed_word, version) != version && version;
}

/* The patterns of the latest revisions, by revision % KEPT.  Read without a lock: a text is
 * overwritten KEPT revisions later.  A thread that reads a text so slowly may get a mix of two
 * texts.  It does not read beyond the text, whose last byte is always 0. */
enum { KEPT = 16 };
static char texts[KEPT][FILTER_SIZE];

/* The revision with which filtered markers were last enabled after a time in which none was. */
static atomic_uint since;

/* The page of shared/filter_page.h, or NULL. */
static struct filter_page *page;

void filter_map_page(void)
{
    page = map_fixed_page(filter_addresses, FILTER_ADDRESSES, sizeof *page, PROT_READ | PROT_WRITE);
    if (!page) {
        debug_log("no stap-python filter, nor detach: the program uses the addresses where their "
                  "page belongs");
        return;
    }
    detach_use(page);
    const char *patterns = secure_getenv("PYTHON_STAP_FILTER");
    page->magic = FILTER_MAGIC;
    if (patterns && strlen(patterns) < sizeof page->patterns)
        strcpy(page->patterns, patterns);
    else if (patterns)
        debug_log("PYTHON_STAP_FILTER is too long: every function passes");
}

/* ---------------------------------------------------------------- collecting patterns */

static atomic_flag looking = ATOMIC_FLAG_INIT;

/* As of the last refresh: a filtered marker is enabled; semaphores_sum(); the page's generation.
 * Guarded by `looking`. */
static bool in_use;
static unsigned known_raised, known_generation;

void filter_after_fork(void)
{
    atomic_flag_clear(&looking);
}

static unsigned generation(void)
{
    return page ? *(const volatile uint32_t *)&page->generation : 0;
}

/* Collects the patterns of the page and, by the marker `filter`, of the tracers. */
static void collect(char *patterns)
{
    memset(patterns, 0, FILTER_SIZE); /* a probe handler that writes here can't take a page fault */
    if (page) {
        memcpy(patterns, page->patterns, sizeof page->patterns - 1);
        strcat(patterns, " ");
    }
    if (MARKER_ON(filter))
        marker_filter(patterns, FILTER_SIZE);
    patterns[FILTER_SIZE - 1] = '\0';
    for (char *at = patterns; *at; at++)
        if (pattern_is_space(*at))
            *at = ' ';
}

static void update(void)
{
    static char patterns[FILTER_SIZE];
    unsigned now = filter_revision(), next = now + 1;
    collect(patterns);
    if (in_use && strcmp(patterns, texts[now % KEPT]) == 0)
        return;
    memcpy(texts[next % KEPT], patterns, FILTER_SIZE);
    if (!in_use)
        since = next;
    in_use = true;
    atomic_store_explicit(&filter_revision_word, next, memory_order_release);
    debug_log("filter: %s", pattern_matches(patterns, "", "", "") ? "all functions" : patterns);
}

static void look_if(unsigned enabled, bool again)
{
    if (atomic_flag_test_and_set(&looking))
        return;
    unsigned raised = semaphores_sum(), written = generation();
    if (!(enabled & FILTERED_MARKERS)) {
        in_use = false;
    } else if ((written % 2 == 0 || again) && /* or odd, once a second: its writer may be dead */
               (again || !in_use || raised != known_raised || written != known_generation)) {
        known_raised = raised;
        known_generation = written;
        update();
    }
    atomic_flag_clear(&looking);
}

void filter_refresh(unsigned enabled)
{
    look_if(enabled, false);
}

void filter_refresh_tick(unsigned enabled)
{
    static unsigned periods;
    look_if(enabled, ++periods % 20 == 0);
}

/* ---------------------------------------------------------------- matching */

static const char *known(const char *text)
{
    return text ? text : "";
}

static bool text_passes(unsigned version, struct code_record *record, PyObject *globals)
{
    const char *first = code_first_module(record);
    struct module_name module =
        first ? (struct module_name){.name = first} : module_name_of(record, globals);
    bool passes = pattern_matches(texts[version % KEPT], known(record->filename.utf8),
                                  known(module.name), known(record->funcname.utf8));
    module_name_release(&module);
    return passes;
}

bool filter_matches_code(struct code_record *record, PyObject *globals)
{
    unsigned version = filter_armed_revision();
    unsigned before = atomic_load_explicit(&record->filter, memory_order_relaxed);
    if (__builtin_expect(before >> 1 == version && version, 1))
        return before & 1;
    bool passes = text_passes(version, record, globals);
    if (record->funcname.owner) /* not no_record of code.c, which stands for many code objects */
        atomic_store_explicit(&record->filter, version << 1 | passes, memory_order_relaxed);
    return passes;
}

bool filter_matched_at(struct code_record *record, PyObject *globals, unsigned version)
{
    return version >= since && filter_armed_revision() - version < KEPT - 1 &&
           text_passes(version, record, globals);
}
