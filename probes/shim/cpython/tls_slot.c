/*
 * Finds the word in which CPython keeps the address of a thread's state.  Older versions keep the
 * address as the value of a key (pthread_key_create()), which glibc has in the thread's descriptor.
 * Newer versions keep it in a thread-local variable.  Both places are searched for the address of
 * the calling thread's state.  A word is CPython's if PyGILState_GetThisThreadState() returns NULL
 * while the word is cleared.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/offsets.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* The address from which TLS offsets count; NULL: unknown on this architecture. */
static char *thread_pointer(void)
{
#if defined(__x86_64__)
    return (char *)pthread_self(); /* the word at %fs:0 */
#elif defined(__aarch64__) || defined(__riscv) || defined(__s390x__)
    return __builtin_thread_pointer();
#else
    return NULL;
#endif
}

/* Nothing but the call below may run while the word is cleared, so signals are blocked. */
static bool holds_current_tstate(void *volatile *word)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    void *state = *word;
    *word = NULL;
    bool cleared = !py.PyGILState_GetThisThreadState();
    *word = state;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return cleared;
}

static void **find_within(void *from, size_t bytes, const PyThreadState *state)
{
    void **word = from;
    for (size_t i = 0; i < bytes / sizeof *word; i++)
        if (word[i] == state && holds_current_tstate(&word[i]))
            return &word[i];
    return NULL;
}

/* ---------------------------------------------------------------- keys */

/* glibc, nptl/descr.h: specific_1stblock in struct pthread has the values of the first keys. */
enum { KEYS = 32, DESCRIPTOR_WORDS = 512 };
struct key_value {
    uintptr_t sequence;
    void *value;
};

/* The word of the descriptor with the value of a key that the shim has created; NULL: not found, or
 * the key is not one of the first. */
static void **value_of(pthread_key_t key)
{
    static char mark;
    void **word = (void **)pthread_self(), **found = NULL;
    if (key >= KEYS || pthread_setspecific(key, &mark) != 0)
        return NULL;
    for (int i = 0; i < DESCRIPTOR_WORDS && !found; i++)
        if (word[i] == &mark)
            found = &word[i];
    pthread_setspecific(key, NULL);
    return found;
}

/* The values of the first keys, found by two keys of the shim's; NULL: not found. */
static struct key_value *first_values(void)
{
    pthread_key_t keys[2];
    void **values[2] = {NULL, NULL};
    int made = 0;
    while (made < 2 && pthread_key_create(&keys[made], NULL) == 0) {
        values[made] = value_of(keys[made]);
        made++;
    }
    for (int i = 0; i < made; i++)
        pthread_key_delete(keys[i]);
    if (!values[0] || !values[1])
        return NULL;
    struct key_value *first[2];
    for (int i = 0; i < 2; i++)
        first[i] =
            (struct key_value *)((char *)values[i] - offsetof(struct key_value, value)) - keys[i];
    return first[0] == first[1] ? first[0] : NULL;
}

/* ---------------------------------------------------------------- thread-local variables */

/* The thread-local variables of files that a program starts with are near the thread pointer, at
 * the same distance in each thread: below it on x86-64 and s390x, above it elsewhere.  Those of a
 * file that is loaded later may be on the heap, at another distance in each thread. */
enum { MAX_DISTANCE = 1 << 16 };
static bool near_thread_pointer(ptrdiff_t distance)
{
#if defined(__x86_64__) || defined(__s390x__)
    return distance < 0 && distance > -MAX_DISTANCE;
#else
    return distance > 0 && distance < MAX_DISTANCE;
#endif
}

/* CPython's thread-local variables, from the thread pointer; size 0: not found. */
static struct {
    ptrdiff_t distance;
    size_t size;
} variables;

static int on_file(struct dl_phdr_info *info, size_t size, void *data)
{
    const char *within = data;
    bool is_it = false;
    size_t block = 0;
    if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data)
        return 1;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *start = (const char *)info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && within >= start && within < start + part->p_memsz)
            is_it = true;
        else if (part->p_type == PT_TLS)
            block = part->p_memsz;
    }
    if (!is_it)
        return 0;
    ptrdiff_t distance = (char *)info->dlpi_tls_data - thread_pointer();
    if (info->dlpi_tls_data && near_thread_pointer(distance)) {
        variables.distance = distance;
        variables.size = block;
    }
    return 1;
}

void tls_slot_init(void)
{
    if (thread_pointer())
        dl_iterate_phdr(on_file, (void *)(uintptr_t)py.Py_GetVersion);
}

/* ---------------------------------------------------------------- the slot */

int32_t tls_slot_find(const char **why)
{
    char *thread = thread_pointer();
    PyThreadState *state = py.PyGILState_GetThisThreadState();
    *why = "this machine's threads are not known";
    if (!thread)
        return 0;
    *why =
        "thread states are not where glibc has the values of keys, nor in a variable of CPython's";
    struct key_value *values = first_values();
    void **word = values ? find_within(values, KEYS * sizeof *values, state) : NULL;
    if (!word)
        word = find_within(thread + variables.distance, variables.size, state);
    return word ? (int32_t)((char *)word - thread) : 0;
}
