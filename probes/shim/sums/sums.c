/*
 * Sums by function.  Counted with the GIL held, which is the lock: a code object belongs to one
 * interpreter, and so do its sums.  In a free-threaded build threads add atomically, and a function
 * that several threads call has several parts, so that few threads contend.  A flush needs no GIL:
 * it reads words that only grow, and names that are copies.
 *
 * The sums outlive their code object until they are flushed.  The flush then unlinks them, and a
 * thread of the program frees them, as the watcher must not call free().
 *
 * SPDX-License-Identifier: MIT
 */

#include "sums/sums.h"

#include "cpython/code.h"
#include "cpython/threads.h"
#include "os/process.h"
#include "os/thread.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- sums */

struct sums {
    _Atomic uint64_t begun;                   /* calls */
    _Atomic uint64_t ended, ticks, own_ticks; /* calls that were open, and their time */
};

/* Sums in a free-threaded build, to which threads on several processors write. */
enum { CACHE_LINE = 64 };
struct part {
    _Alignas(CACHE_LINE) struct sums sums;
};

enum { OTHER_THREADS = 8 };

struct function_sums {
    struct code_sums code; /* first: struct code_record points to it */
    struct sums own;
    struct sums *first; /* &own; in a free-threaded build a part in names, for first_thread */
    unsigned first_thread;
    struct part
        *_Atomic others; /* free-threaded: for other threads, by their numbers; NULL: none yet */
    struct function_sums *_Atomic next;
    const char *filename, *funcname, *module; /* in names; or NULL */
    int first_line;
    bool is_c;
    struct {
        uint64_t begun, ended, ticks, own_ticks;
    } flushed; /* the values of the latest flush; under flush_lock */
    char names[];
};

/* The list of all, the newest first. */
static struct function_sums *_Atomic all_sums;

/* Unlinked from the list, to be freed. */
static struct function_sums *_Atomic unlisted;

atomic_uint sums_enabled_word;

/* How often the sums were flushed, plus 1. */
static atomic_uint flush_epoch = 1;

/* Held by the thread that flushes. */
static pthread_mutex_t flush_lock = PTHREAD_MUTEX_INITIALIZER;

void sums_set_enabled(unsigned enabled)
{
    unsigned before = atomic_exchange(&sums_enabled_word, enabled & SUMS_MARKERS);
    if (!(before & SUMS_TIMES) != !(enabled & SUMS_TIMES))
        open_calls_invalidate();
}

/* ---------------------------------------------------------------- by thread */

static __thread struct {
    unsigned number; /* of this thread among those that have counted; 0: it has not */
    unsigned times;  /* flush_epoch when it counted last */
} thread;

static inline unsigned number_here(void)
{
    static atomic_uint threads;
    if (__builtin_expect(!thread.number, 0))
        thread.number = ++threads;
    return thread.number;
}

/* ---------------------------------------------------------------- by function */

static void free_off_list(void)
{
    struct function_sums *sums = atomic_load_explicit(&unlisted, memory_order_relaxed)
                                     ? atomic_exchange(&unlisted, NULL)
                                     : NULL;
    while (sums) {
        struct function_sums *next = sums->next;
        free(sums->others);
        free(sums);
        sums = next;
    }
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

enum { MOST_FREED = 4096 };

static struct function_sums *make(const char *filename, const char *funcname, const char *module)
{
    ticks_choose_source();
    if (code_sums_freed > MOST_FREED) /* there may be no watcher: watcher_forbidden in core.h */
        sums_flush();
    free_off_list();
    size_t room = py.free_threaded ? CACHE_LINE + sizeof(struct part) : 0;
    struct function_sums *sums =
        calloc(1, sizeof *sums + room + size_of(filename) + size_of(funcname) + size_of(module));
    if (!sums)
        return NULL;
    char *to = sums->names;
    sums->first = &sums->own;
    if (room) {
        sums->first = &((struct part *)(to + -(uintptr_t)to % CACHE_LINE))->sums;
        sums->first_thread = number_here();
        to += room;
    }
    sums->filename = copy(&to, filename);
    sums->funcname = copy(&to, funcname);
    sums->module = copy(&to, module);
    return sums;
}

/* From now on each flush fires its sums. */
static void link_new(struct function_sums *sums)
{
    sums->next = all_sums;
    while (!atomic_compare_exchange_weak(&all_sums, (struct function_sums **)&sums->next, sums))
        ;
}

/* If two threads make the sums of a record at once, the first ones stay. */
struct function_sums *sums_of_code(struct code_record *record, PyObject *globals)
{
    struct function_sums *known = sums_in(record);
    if (known)
        return known;
    struct module_name module = module_name_of(record, globals);
    struct function_sums *sums = make(record->filename.utf8, record->funcname.utf8, module.name);
    module_name_release(&module);
    if (!sums)
        return NULL;
    sums->first_line = record->first_line;
    struct code_sums *none = NULL;
    if (!atomic_compare_exchange_strong(&record->sums, &none, &sums->code)) {
        free(sums);
        return sums_in(record);
    }
    link_new(sums);
    return sums;
}

/* ---------------------------------------------------------------- by C function */

/* An entry of the hash table of C functions; never freed.  The key is the PyMethodDef with its name
 * and function: a library may free a PyMethodDef, and make another one at its address.  The
 * interpreter is a part of the key: interpreters with a GIL each would add to the same sums at
 * once. */
struct c_function {
    struct c_function *next;
    const PyMethodDef *definition;
    const char *name;
    PyCFunction function;
    PyInterpreterState *interpreter;
    struct function_sums *sums;
};
static struct c_function *_Atomic c_functions[4096];

static struct c_function *_Atomic *place_of(const PyMethodDef *definition)
{
    return &c_functions[((uintptr_t)definition >> 5) % (sizeof c_functions / sizeof *c_functions)];
}

/* The entry of the calling interpreter; NULL: there is none yet. */
static struct c_function *find(const PyMethodDef *definition)
{
    PyInterpreterState *here = cpython_interpreter();
    struct c_function *function = *place_of(definition);
    while (function &&
           (function->definition != definition || function->interpreter != here ||
            function->name != definition->ml_name || function->function != definition->ml_meth))
        function = function->next;
    return function;
}

/* Held to add an entry: with a second one for the same function, open calls would lose their
 * ends. */
static struct nogil_lock making;

/* Adds the entry, unless another thread has just done so.  Returns the sums that stay. */
static struct function_sums *put_in_place(const PyMethodDef *definition,
                                          struct c_function *function, struct function_sums *sums)
{
    nogil_lock(&making);
    struct c_function *known = find(definition);
    if (!known) {
        link_new(sums);
        struct c_function *_Atomic *place = place_of(definition);
        *function = (struct c_function){
            *place, definition, definition->ml_name, definition->ml_meth, cpython_interpreter(),
            sums};
        while (!atomic_compare_exchange_weak(place, &function->next, function))
            ;
    }
    nogil_unlock(&making);
    if (!known)
        return sums;
    free(function);
    free(sums);
    return known->sums;
}

static struct function_sums *make_of_c(PyObject *callable, const PyMethodDef *definition)
{
    struct callable_names names = callable_names_get(callable);
    struct c_function *function = names.name && strcmp(names.name, definition->ml_name) == 0
                                      ? malloc(sizeof *function)
                                      : NULL;
    struct function_sums *sums = function ? make(NULL, names.name, names.module) : NULL;
    callable_names_release(&names);
    if (!sums) {
        free(function);
        return NULL;
    }
    sums->is_c = true;
    return put_in_place(definition, function, sums);
}

struct function_sums *sums_of_cfunction(PyObject *callable)
{
    const PyMethodDef *definition = callable_methoddef(callable);
    if (!definition)
        return NULL;
    struct c_function *function = find(definition);
    return function ? function->sums : make_of_c(callable, definition);
}

/* ---------------------------------------------------------------- counting */

/* In a free-threaded build threads may share sums. */
static inline void add(_Atomic uint64_t *sum, uint64_t value, memory_order order)
{
    if (py.free_threaded)
        atomic_fetch_add_explicit(sum, value, order);
    else
        atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + value, order);
}

/* The sums to which this thread adds, of a function that another thread has called first. */
static __attribute__((noinline)) struct sums *other_sums(struct function_sums *sums)
{
    struct part *others = atomic_load_explicit(&sums->others, memory_order_acquire), *fresh;
    if (!others && (fresh = aligned_alloc(CACHE_LINE, OTHER_THREADS * sizeof *fresh))) {
        memset(fresh, 0, OTHER_THREADS * sizeof *fresh);
        if (atomic_compare_exchange_strong(&sums->others, &others, fresh))
            others = fresh;
        else
            free(fresh);
    }
    return others ? &others[number_here() % OTHER_THREADS].sums : sums->first;
}

/* The sums to which this thread adds. */
static inline struct sums *sums_here(struct function_sums *sums)
{
    return !py.free_threaded || sums->first_thread == number_here() ? sums->first
                                                                    : other_sums(sums);
}

static __attribute__((noinline)) void report_thread(unsigned times)
{
    thread.times = times;
    if (MARKER_ON(thread__runs))
        marker_thread__runs((int)number_here());
}

void sums_call_begin(struct function_sums *sums)
{
    unsigned times = atomic_load_explicit(&flush_epoch, memory_order_relaxed);
    if (__builtin_expect(thread.times != times, 0))
        report_thread(times);
    add(&sums_here(sums)->begun, 1, memory_order_relaxed);
    if (sums_enabled(SUMS_TIMES))
        open_calls_begin(sums);
}

void sums_call_end(struct function_sums *sums)
{
    struct ended_call call;
    if (!open_calls_end(sums, sums->is_c, &call))
        return;
    struct sums *here = sums_here(sums);
    add(&here->own_ticks, call.own, memory_order_relaxed);
    if (call.outermost)
        add(&here->ticks, call.time, memory_order_relaxed);
    add(&here->ended, 1, memory_order_release); /* last: a flush that reads it reads its times */
}

/* ---------------------------------------------------------------- flush */

static uint64_t sum_in(const struct sums *sums, size_t offset)
{
    return atomic_load_explicit((const _Atomic uint64_t *)((const char *)sums + offset),
                                memory_order_acquire);
}

/* The sum of all threads. */
static uint64_t sum_of(const struct function_sums *sums, size_t offset)
{
    uint64_t sum = sum_in(sums->first, offset);
    const struct part *others = sums->others;
    for (int i = 0; others && i < OTHER_THREADS; i++)
        sum += sum_in(&others[i].sums, offset);
    return sum;
}

static uint64_t grown(uint64_t now, uint64_t *before)
{
    uint64_t was = *before;
    *before = now;
    return now - was;
}

/* How much a sum has grown since the latest flush. */
#define SINCE(sums, sum) grown(sum_of(sums, offsetof(struct sums, sum)), &(sums)->flushed.sum)

static void flush_begin(struct function_sums *sums, long number)
{
    if (sums->is_c && MARKER_ON(cfunction__count))
        marker_cfunction__count(sums->funcname, sums->module, number);
    else if (!sums->is_c && MARKER_ON(function__count))
        marker_function__count(sums->filename, sums->funcname, sums->first_line, sums->module,
                               number);
}

static void flush_times(struct function_sums *sums, long number, long time, long own)
{
    if (sums->is_c && MARKER_ON(cfunction__summary))
        marker_cfunction__summary(sums->funcname, sums->module, number, time, own);
    else if (!sums->is_c && MARKER_ON(function__summary))
        marker_function__summary(sums->filename, sums->funcname, sums->first_line, sums->module,
                                 number, time, own);
}

/* The part of *sum that fits into a long, which has 32 bits on some machines; subtracts it. */
static long part_of(uint64_t *sum)
{
    long part = *sum < LONG_MAX ? (long)*sum : LONG_MAX;
    *sum -= (uint64_t)part;
    return part;
}

/* Fires several events if the times don't fit into one. */
static void flush_end(struct function_sums *sums, long number, uint64_t time, uint64_t own)
{
    do {
        flush_times(sums, number, part_of(&time), part_of(&own));
        number = 0;
    } while (time || own);
}

static void flush_function(struct function_sums *sums)
{
    uint64_t begun = SINCE(sums, begun);
    if (begun)
        flush_begin(sums, (long)begun);
    uint64_t ended = SINCE(sums, ended);
    if (!ended)
        return;
    uint64_t time = ticks_to_ns(SINCE(sums, ticks));
    uint64_t own = ticks_to_ns(SINCE(sums, own_ticks));
    flush_end(sums, (long)ended, time, own);
}

static void unlink_released(struct function_sums *sums, struct function_sums *before)
{
    code_sums_freed--;
    before->next = sums->next;
    sums->next = unlisted;
    while (!atomic_compare_exchange_weak(&unlisted, (struct function_sums **)&sums->next, sums))
        ;
}

/* Calls act() for all sums, and unlinks those of freed code objects.  The first sums stay: another
 * thread may be linking new ones in front of them. */
static void for_each(void (*act)(struct function_sums *))
{
    struct function_sums *before = NULL, *next;
    for (struct function_sums *sums = all_sums; sums; sums = next) {
        bool freed = sums->code.freed; /* read before act(): nothing is counted after that */
        act(sums);
        next = sums->next;
        if (freed && before)
            unlink_released(sums, before);
        else
            before = sums;
    }
}

bool sums_flush(void)
{
    if (!all_sums)
        return true;
    if (pthread_mutex_trylock(&flush_lock) != 0)
        return false;
    ticks_calibrate();
    flush_epoch++;
    for_each(flush_function);
    pthread_mutex_unlock(&flush_lock);
    return true;
}

static void reset(struct function_sums *sums)
{
    SINCE(sums, begun);
    SINCE(sums, ended);
    SINCE(sums, ticks);
    SINCE(sums, own_ticks);
}

/* Drops counts that were not flushed. */
static void reset_all(void)
{
    open_calls_invalidate();
    if (pthread_mutex_trylock(&flush_lock) != 0)
        return;
    for_each(reset);
    pthread_mutex_unlock(&flush_lock);
}

void sums_after_fork(void)
{
    pthread_mutex_init(&flush_lock, NULL);
    reset_all();
    thread.times = 0; /* no epoch: what the parent's thread has reported is not the child's */
    making = (struct nogil_lock){0};
    open_calls_after_fork();
}

/* ---------------------------------------------------------------- when to flush */

void sums_flush_tick(unsigned enabled)
{
    static unsigned periods;
    bool sums = enabled & SUMS_MARKERS, counts = sums_enabled(SUMS_MARKERS);
    if (sums && ++periods % 2 == 0)
        sums_flush();
    else if (!sums && (periods || counts)) { /* again until no hook counts */
        periods = counts;
        reset_all();
    }
}

/* Flushes the calls that the program has made after its atexit functions. */
__attribute__((destructor)) static void flush_remaining(void)
{
    sums_flush();
}

/* ---------------------------------------------------------------- open calls */

struct call {
    const void *function;
    uint64_t began, inside; /* ticks: of its begin; spent in its callees */
    bool outermost;
};

/* The open calls of a thread, the innermost last.  at_place counts them by slot_of(); 0: no call of
 * the functions that share the slot is open. */
enum { SLOTS = 256 };
struct block {
    uint32_t at_place[SLOTS];
    struct call call[];
};

static __thread struct calls {
    struct block *block;
    uint32_t depth, room;
    unsigned epoch;
} calls;

/* Changes when times become enabled or disabled, in each child of a fork, and when a thread has too
 * many open calls.  A thread whose calls have another epoch drops them. */
static atomic_uint epoch = 1;

/* A limit, as calls without an end stay: those of a greenlet that is dropped before its end. */
enum { ROOM = 64, MAX_CALLS = 128 * 1024 };

static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

/* Of the thread that ends.  The key's value only says that there is a block: it would be the block
 * before the last if pthread_setspecific() failed. */
static void end_thread(void *unused)
{
    (void)unused;
    thread_block_free(calls.block);
    calls = (struct calls){0};
}

static void make_key(void)
{
    has_key = pthread_key_create(&at_thread_end, end_thread) == 0;
}

static void reset_thread(void)
{
    calls.depth = 0;
    if (calls.block)
        memset(calls.block->at_place, 0, sizeof calls.block->at_place);
}

/* False: memory ran out. */
static __attribute__((noinline)) bool make_room(void)
{
    if (calls.room >= MAX_CALLS) { /* other threads drop their calls, too */
        calls.epoch = ++epoch;
        reset_thread();
        return true;
    }
    pthread_once(&key_once, make_key);
    size_t size = sizeof *calls.block + ROOM * sizeof *calls.block->call;
    struct block *block = has_key ? thread_block_grow(calls.block, &size) : NULL;
    if (!block)
        return false;
    bool is_first = !calls.block;
    calls.block = block;
    calls.room = (uint32_t)((size - sizeof *block) / sizeof *block->call);
    if (is_first)
        reset_thread();
    pthread_setspecific(at_thread_end, &calls);
    return true;
}

static inline uint32_t *slot_of(const void *function)
{
    return &calls.block->at_place[((uintptr_t)function >> 6) % SLOTS];
}

/* One more than the index of the function's innermost open call; 0: there is none. */
static inline size_t find_slot(const void *function)
{
    size_t i = calls.depth;
    while (i > 0 && calls.block->call[i - 1].function != function)
        i--;
    return i;
}

void open_calls_begin(const void *function)
{
    unsigned now = atomic_load_explicit(&epoch, memory_order_relaxed);
    if (__builtin_expect(calls.epoch != now, 0)) {
        calls.epoch = now;
        reset_thread();
    }
    if (__builtin_expect(calls.depth == calls.room, 0) && !make_room())
        return;
    uint32_t *open = slot_of(function);
    struct call call = {.function = function, .outermost = *open == 0 || find_slot(function) == 0};
    ++*open;
    call.began = ticks_now();
    calls.block->call[calls.depth++] = call;
}

/* Open calls that began inside this call stay.  Their ends are lost, or they continue after a
 * switch of C stacks (greenlets). */
bool open_calls_end(const void *function, bool is_c, struct ended_call *ended)
{
    uint64_t now = ticks_now();
    if (calls.epoch != atomic_load_explicit(&epoch, memory_order_relaxed))
        return false;
    size_t behind = find_slot(function);
    if (behind == 0)
        return false;
    struct call *at = &calls.block->call[behind - 1], call = *at;
    calls.depth--;
    if (__builtin_expect(behind <= calls.depth, 0))
        memmove(at, at + 1, (calls.depth - (behind - 1)) * sizeof call);
    --*slot_of(function);
    ended->time = now > call.began ? now - call.began : 0;
    ended->own = ended->time > call.inside ? ended->time - call.inside : 0;
    ended->outermost = call.outermost;
    if (behind > 1)
        at[-1].inside += is_c ? call.inside : ended->time;
    return true;
}

void open_calls_invalidate(void)
{
    epoch++;
}

void open_calls_after_fork(void)
{
    thread_blocks_after_fork(calls.block);
}

/* ---------------------------------------------------------------- exit flush */

/*
 * CPython calls a C function by the pointer that its PyMethodDef has at that moment, and the memory
 * of a PyMethodDef is writable (Modules/posixmodule.c: posix_methods).  A function of ours flushes,
 * and calls the previous one with up to five arguments, each of them a word, whatever ml_flags are.
 */

enum { WAITS = 100, WAIT_US = 500 };

/* Waits for the watcher, which may be flushing just now. */
static void exit_flush(void)
{
    static atomic_uint nobody_wakes;
    for (int i = 0; i < WAITS && !sums_flush(); i++)
        futex_wait_us(&nobody_wakes, 0, WAIT_US);
}

typedef void *(*c_function)(void *, void *, void *, void *, void *);

/* MACRO(NAME): a function of the module posix. */
#define EXIT_FUNCTIONS(MACRO) MACRO(_exit) MACRO(execv) MACRO(execve)

#define NUMBER(name) NUMBER_##name,
enum { EXIT_FUNCTIONS(NUMBER) COUNT };

static struct {
    PyMethodDef *definition; /* NULL: not found */
    _Atomic(PyCFunction) before;
} found[COUNT];

#define CALL(name) \
    static void *call_##name(void *a, void *b, void *c, void *d, void *e) \
    { \
        exit_flush(); \
        return ((c_function)(void *)found[NUMBER_##name].before)(a, b, c, d, e); \
    }
EXIT_FUNCTIONS(CALL)

#define OURS(name) {#name, call_##name},
static const struct {
    const char *name;
    c_function function;
} ours[COUNT] = {EXIT_FUNCTIONS(OURS)};

/* A thread that calls the function meanwhile reads one word, the old pointer or the new one. */
void exit_flush_set(bool enabled)
{
    for (int i = 0; i < COUNT; i++) {
        PyMethodDef *definition = found[i].definition;
        PyCFunction our = (PyCFunction)(void *)ours[i].function;
        PyCFunction now = definition ? definition->ml_meth : NULL;
        if (!definition || (now == our) == enabled)
            continue;
        if (enabled)
            found[i].before = now;
        /* A thread that calls ours finds `before`. */
        __atomic_store_n(&definition->ml_meth, enabled ? our : found[i].before, __ATOMIC_RELEASE);
    }
}

/* posix is in sys.modules from the start.  If the program has put something else there, its
 * attributes are no C functions. */
void exit_flush_find(void)
{
    PyObject *posix = cpython_sys_module("posix");
    for (int i = 0; i < COUNT && posix; i++) {
        PyObject *function = py.PyObject_GetAttrString(posix, ours[i].name);
        bool is_builtin = function && cpython_type(function) == py.cfunction_type;
        PyMethodDef *definition = is_builtin ? callable_methoddef(function) : NULL;
        if (definition && !found[i].definition) {
            found[i].before = definition->ml_meth; /* before any thread can call ours */
            found[i].definition = definition;
        }
        cpython_clear_ref(&function);
        py.PyErr_Clear();
    }
    cpython_clear_ref(&posix);
    exit_flush_set(sums_enabled(SUMS_MARKERS)); /* a tracer may be attached already */
}
