/*
 * Sums by function.  They are written with the GIL held, which serves as their lock: a code object
 * is one interpreter's, and so is its tally.  They are told on another thread, without the GIL,
 * which reads words that only grow, and names that are copies.
 *
 * A tally outlives its code object until it has been told.  Then it is taken off the list, and
 * freed by a thread of the program's, as the watcher calls no free().
 *
 * SPDX-License-Identifier: MIT
 */
#include "tally.h"

#include "callable.h"
#include "thread_block.h"
#include "ticks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct sums {
    _Atomic uint64_t begun;                   /* calls */
    _Atomic uint64_t ended, ticks, own_ticks; /* calls that were seen to begin, and their time */
};

struct tally {
    struct tally *_Atomic next;
    const char *filename, *funcname, *module; /* in names; or NULL */
    int first_line;
    bool is_c;
    atomic_bool released;
    struct sums sums;
    struct {
        uint64_t begun, ended, ticks, own_ticks;
    } told; /* under the lock */
    /* The thread in which calls of it are open, and how many; of other threads it isn't noted. */
    unsigned thread, open, turn;
    char names[];
};

/* All of them, the newest first. */
static struct tally *_Atomic tallies;

/* Taken off the list, to be freed. */
static struct tally *_Atomic off_list;

atomic_uint tally_wanted;

/* How often the sums were told; never 0. */
static atomic_uint times_told = 1;

/* Held by the thread that tells. */
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

/* Another one for each time that times are wanted, or no longer, in each child, and where too many
 * calls are open: those that were open then are forgotten. */
static atomic_uint turn = 1;

void tally_wants(unsigned wanted)
{
    unsigned before = atomic_exchange(&tally_wanted, wanted & TALLY_MARKERS);
    if (!(before & TALLY_TIMES) != !(wanted & TALLY_TIMES))
        turn++;
}

/* ---------------------------------------------------------------- by function */

static void free_off_list(void)
{
    struct tally *tally = atomic_load_explicit(&off_list, memory_order_relaxed)
                              ? atomic_exchange(&off_list, NULL)
                              : NULL;
    while (tally) {
        struct tally *next = tally->next;
        free(tally);
        tally = next;
    }
}

/* How many are released, and on the list still. */
static atomic_int to_take_off;

/* The code object is freed. */
static void release(struct tally *tally)
{
    tally->released = true;
    to_take_off++;
}

static const char *copy(char **to, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *copied = memcpy(*to, text, size);
    *to += size;
    return copied;
}

static size_t size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

enum { MOST_RELEASED = 4096 };

static struct tally *make(const char *filename, const char *funcname, const char *module)
{
    code_tally_released = release;
    ticks_start();
    if (to_take_off > MOST_RELEASED) /* a child that a thread has forked has no watcher */
        tally_tell();
    free_off_list();
    struct tally *tally =
        calloc(1, sizeof *tally + size_of(filename) + size_of(funcname) + size_of(module));
    if (!tally)
        return NULL;
    char *to = tally->names;
    tally->filename = copy(&to, filename);
    tally->funcname = copy(&to, funcname);
    tally->module = copy(&to, module);
    return tally;
}

/* From now on its sums are reported. */
static void put_on_list(struct tally *tally)
{
    tally->next = tallies;
    while (!atomic_compare_exchange_weak(&tallies, (struct tally **)&tally->next, tally))
        ;
}

struct tally *tally_of(struct code *record, PyObject *globals)
{
    if (record->tally)
        return record->tally;
    struct tally *tally =
        make(record->filename.utf8, record->funcname.utf8, code_module(record, globals));
    if (tally) {
        tally->first_line = record->first_line;
        put_on_list(tally);
    }
    return record->tally = tally;
}

/* ---------------------------------------------------------------- by function in C */

/* By definition, which a library may free, and make another one at its address; and by interpreter,
 * as those with a GIL each would count at once.  They stay. */
struct c_function {
    struct c_function *next;
    const PyMethodDef *definition;
    const char *name;
    PyCFunction function;
    PyInterpreterState *interpreter;
    struct tally *tally;
};
static struct c_function *_Atomic c_functions[4096];

static struct c_function *_Atomic *place_of(const PyMethodDef *definition)
{
    return &c_functions[((uintptr_t)definition >> 5) % (sizeof c_functions / sizeof *c_functions)];
}

static struct tally *make_of_c(PyObject *callable, const PyMethodDef *definition)
{
    struct callable names = callable_open(callable);
    struct c_function *function =
        names.name && strcmp(names.name, definition->name) == 0 ? malloc(sizeof *function) : NULL;
    struct tally *tally = function ? make(NULL, names.name, names.module) : NULL;
    callable_close(&names);
    if (!tally) {
        free(function);
        return NULL;
    }
    tally->is_c = true;
    put_on_list(tally);
    struct c_function *_Atomic *place = place_of(definition);
    *function = (struct c_function){
        *place, definition, definition->name, definition->function, cpython_interpreter(), tally};
    while (!atomic_compare_exchange_weak(place, &function->next, function))
        ;
    return tally;
}

struct tally *tally_of_c(PyObject *callable)
{
    const PyMethodDef *definition = callable_definition(callable);
    if (!definition)
        return NULL;
    PyInterpreterState *here = cpython_interpreter();
    struct c_function *function = *place_of(definition);
    while (function &&
           (function->definition != definition || function->interpreter != here ||
            function->name != definition->name || function->function != definition->function))
        function = function->next;
    return function ? function->tally : make_of_c(callable, definition);
}

/* ---------------------------------------------------------------- by thread */

struct call {
    struct tally *tally;
    uint64_t began, inside; /* ticks: when; in its callees */
    bool outermost;         /* of its function, in this thread */
    bool noted;             /* in the tally */
};

static __thread struct calls {
    struct call *call;
    size_t depth, room, unnoted;
    unsigned thread; /* the number of this thread among those that counted; 0: it has not */
    unsigned turn;
    unsigned times; /* how often the sums had been told when it counted last */
} calls;

/* Calls that lose their ends stay: where a greenlet is given up that has not ended.  So there is an
 * end to it. */
enum { ROOM = 64, MOST = 128 * 1024 };

static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

static void end_thread(void *call)
{
    thread_block_free(call);
    calls = (struct calls){0};
}

static void make_key(void)
{
    has_key = pthread_key_create(&at_thread_end, end_thread) == 0;
}

/* False: memory ran out. */
static __attribute__((noinline)) bool make_room(void)
{
    if (calls.room >= MOST) { /* what is open in other threads goes with it */
        calls.turn = ++turn;
        calls.depth = calls.unnoted = 0;
        return true;
    }
    pthread_once(&key_once, make_key);
    size_t size = ROOM * sizeof *calls.call;
    struct call *call = has_key ? thread_block_larger(calls.call, &size) : NULL;
    if (!call)
        return false;
    calls.call = call;
    calls.room = size / sizeof *call;
    pthread_setspecific(at_thread_end, call);
    return true;
}

static bool is_open_here(const struct tally *tally)
{
    size_t i = calls.depth;
    while (i > 0 && calls.call[i - 1].tally != tally)
        i--;
    return i > 0;
}

/* Notes an open call in the tally, and whether it is the outermost one. */
static inline void note(struct tally *tally, struct call *call)
{
    if (tally->turn != calls.turn) {
        tally->turn = calls.turn;
        tally->open = 0;
    }
    call->noted = tally->open == 0 || tally->thread == calls.thread;
    if (call->noted && tally->open > 0)
        call->outermost = false;
    else
        call->outermost = (call->noted && calls.unnoted == 0) || !is_open_here(tally);
    if (call->noted) {
        tally->thread = calls.thread;
        tally->open++;
    } else {
        calls.unnoted++;
    }
}

static inline void add(_Atomic uint64_t *sum, uint64_t value)
{
    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

static __attribute__((noinline)) void say_it_runs(unsigned times)
{
    static atomic_uint threads;
    if (!calls.thread)
        calls.thread = ++threads;
    calls.times = times;
    if (MARKER_ON(thread__runs))
        marker_thread__runs((int)calls.thread);
}

void tally_begin(struct tally *tally)
{
    add(&tally->sums.begun, 1);
    unsigned times = atomic_load_explicit(&times_told, memory_order_relaxed);
    if (__builtin_expect(calls.times != times, 0))
        say_it_runs(times);
    if (!tally_counts(TALLY_TIMES))
        return;
    unsigned now = atomic_load_explicit(&turn, memory_order_relaxed);
    if (__builtin_expect(calls.turn != now, 0)) {
        calls.turn = now;
        calls.depth = calls.unnoted = 0;
    }
    if (__builtin_expect(calls.depth == calls.room, 0) && !make_room())
        return;
    struct call call = {.tally = tally};
    note(tally, &call);
    call.began = ticks_now();
    calls.call[calls.depth++] = call;
}

/* Calls within it have lost their ends, or go on where the program has switched stacks in C. */
void tally_end(struct tally *tally)
{
    uint64_t now = ticks_now();
    size_t i = calls.depth;
    if (calls.turn != atomic_load_explicit(&turn, memory_order_relaxed))
        return;
    while (i > 0 && calls.call[i - 1].tally != tally)
        i--;
    if (i == 0)
        return;
    struct call call = calls.call[--i];
    calls.depth--;
    if (__builtin_expect(i != calls.depth, 0))
        memmove(&calls.call[i], &calls.call[i + 1], (calls.depth - i) * sizeof call);
    uint64_t time = now > call.began ? now - call.began : 0;
    add(&tally->sums.own_ticks, time > call.inside ? time - call.inside : 0);
    if (call.outermost)
        add(&tally->sums.ticks, time);
    /* Last: who tells sees what belongs to it. */
    atomic_store_explicit(&tally->sums.ended,
                          atomic_load_explicit(&tally->sums.ended, memory_order_relaxed) + 1,
                          memory_order_release);
    if (i > 0)
        calls.call[i - 1].inside += tally->is_c ? call.inside : time;
    if (!call.noted)
        calls.unnoted--;
    else if (tally->open > 0)
        tally->open--;
}

/* ---------------------------------------------------------------- telling */

static uint64_t since(_Atomic uint64_t *sum, uint64_t *before)
{
    uint64_t now = atomic_load_explicit(sum, memory_order_acquire), was = *before;
    *before = now;
    return now - was;
}

static void tell_begun(struct tally *tally, long number)
{
    if (tally->is_c && MARKER_ON(cfunction__count))
        marker_cfunction__count(tally->funcname, tally->module, number);
    else if (!tally->is_c && MARKER_ON(function__count))
        marker_function__count(tally->filename, tally->funcname, tally->first_line, tally->module,
                               number);
}

static void tell_ended(struct tally *tally, long number, long time, long own)
{
    if (tally->is_c && MARKER_ON(cfunction__summary))
        marker_cfunction__summary(tally->funcname, tally->module, number, time, own);
    else if (!tally->is_c && MARKER_ON(function__summary))
        marker_function__summary(tally->filename, tally->funcname, tally->first_line, tally->module,
                                 number, time, own);
}

static void tell(struct tally *tally)
{
    uint64_t begun = since(&tally->sums.begun, &tally->told.begun);
    if (begun)
        tell_begun(tally, (long)begun);
    uint64_t ended = since(&tally->sums.ended, &tally->told.ended);
    if (!ended)
        return;
    long time = ticks_nanoseconds(since(&tally->sums.ticks, &tally->told.ticks));
    long own = ticks_nanoseconds(since(&tally->sums.own_ticks, &tally->told.own_ticks));
    tell_ended(tally, (long)ended, time, own);
}

static void take_off(struct tally *tally, struct tally *before)
{
    to_take_off--;
    before->next = tally->next;
    tally->next = off_list;
    while (!atomic_compare_exchange_weak(&off_list, (struct tally **)&tally->next, tally))
        ;
}

/* The first one stays: another thread may be about to put one before it. */
static void for_each(void (*act)(struct tally *))
{
    struct tally *before = NULL, *next;
    for (struct tally *tally = tallies; tally; tally = next) {
        bool released = tally->released; /* before it is told: nothing is counted after that */
        act(tally);
        next = tally->next;
        if (released && before)
            take_off(tally, before);
        else
            before = tally;
    }
}

bool tally_tell(void)
{
    if (!tallies)
        return true;
    if (pthread_mutex_trylock(&telling) != 0)
        return false;
    ticks_look();
    times_told++;
    for_each(tell);
    pthread_mutex_unlock(&telling);
    return true;
}

static void forget(struct tally *tally)
{
    since(&tally->sums.begun, &tally->told.begun);
    since(&tally->sums.ended, &tally->told.ended);
    since(&tally->sums.ticks, &tally->told.ticks);
    since(&tally->sums.own_ticks, &tally->told.own_ticks);
}

/* What was counted and not told is left out. */
static void forget_all(void)
{
    turn++;
    if (pthread_mutex_trylock(&telling) != 0)
        return;
    for_each(forget);
    pthread_mutex_unlock(&telling);
}

void tally_forked(void)
{
    pthread_mutex_init(&telling, NULL);
    forget_all();
    thread_blocks_forked(calls.call);
}

/* ---------------------------------------------------------------- when */

void tally_watch(unsigned wanted)
{
    static unsigned periods;
    bool sums = wanted & TALLY_MARKERS;
    if (sums && ++periods % 2 == 0)
        tally_tell();
    else if (!sums && periods) {
        periods = 0;
        forget_all();
    }
}

/* What the program has run after its atexit functions. */
__attribute__((destructor)) static void tell_the_rest(void)
{
    tally_tell();
}
