/*
 * Makes calls fail that the shim makes to the C library and to CPython, and no other ones.
 * Preloaded before the shim, whose calls it knows by their return addresses.
 *
 * FAIL=NAME:N makes the Nth call of that function fail, FAIL=NAME:-N all after the Nth, and
 * FAIL=random:SEED one call in ten of any function, by chance.  FAIL_COUNT=FILE: adds to the file
 * how often each function is called.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the shim calls of the C library, and then of CPython, through pointers from dlsym(). */
/* clang-format off */
#define LIBC(DO) \
    DO(malloc) DO(calloc) DO(realloc) DO(mmap) DO(mprotect) DO(mremap) DO(open) DO(dlsym) \
    DO(pthread_create) DO(pthread_key_create) DO(pthread_setspecific) DO(pthread_getattr_np)
#define CPYTHON(DO) \
    DO(PyObject_GetAttrString) DO(PyCFunction_NewEx) DO(PyTuple_New) DO(PyCapsule_New) \
    DO(PyImport_ImportModuleLevel) DO(PyUnicode_AsUTF8AndSize) DO(PyUnicode_FromString) \
    DO(PyUnicode_InternFromString) DO(PyThreadState_New)
#define CPYTHON_INT(DO) \
    DO(PyList_Append) DO(PyDict_SetItemString) DO(PyDict_SetItem) DO(PyObject_SetAttrString) \
    DO(_PyCode_SetExtra) DO(PyUnstable_Code_SetExtra) DO(PySys_AddAuditHook) DO(Py_AddPendingCall)
/* clang-format on */

#define ID(name) CALL_##name,
#define NAME(name) #name,
enum call { LIBC(ID) CPYTHON(ID) CPYTHON_INT(ID) CALLS };
static const char *const names[] = {LIBC(NAME) CPYTHON(NAME) CPYTHON_INT(NAME)};

static atomic_int counts[CALLS];
static uintptr_t begin, end;
static int chosen = -1, nth, odds;
static atomic_uint seed;

static int find_shim(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    if (!strstr(info->dlpi_name, "libpython-stap.so"))
        return 0;
    begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            end = begin + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    return 1;
}

static void prepare(void)
{
    static bool prepared;
    const char *fail = getenv("FAIL");
    if (prepared)
        return;
    prepared = true;
    dl_iterate_phdr(find_shim, NULL);
    const char *number = fail ? strchr(fail, ':') : NULL;
    if (!number)
        return;
    nth = atoi(number + 1);
    if (strncmp(fail, "random:", 7) == 0) {
        odds = 10;
        seed = (unsigned)nth;
    }
    for (int i = 0; i < CALLS; i++)
        if (strlen(names[i]) == (size_t)(number - fail) &&
            strncmp(names[i], fail, number - fail) == 0)
            chosen = i;
}

/* Whether the call, which returns to caller, is to fail. */
static bool fails(enum call call, void *caller)
{
    prepare();
    if ((uintptr_t)caller < begin || (uintptr_t)caller >= end)
        return false;
    int count = atomic_fetch_add(&counts[call], 1) + 1;
    if (odds) { /* without what dlsym() finds nothing of the shim would run */
        if (call == CALL_dlsym || count < 4)
            return false;
        unsigned next = seed * 1103515245u + 12345u;
        seed = next;
        return (next >> 16) % (unsigned)odds == 0;
    }
    return (int)call == chosen && (nth > 0 ? count == nth : count > -nth);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAIL_COUNT");
    FILE *file = path ? fopen(path, "a") : NULL;
    for (int i = 0; file && i < CALLS; i++)
        fprintf(file, "%s %d\n", names[i], counts[i]);
    if (file)
        fclose(file);
}

/* ---------------------------------------------------------------- the C library */

#define HERE __builtin_return_address(0)
#define REAL(name) ((__typeof__(&name))real(#name))

typedef void *(*finder)(void *, const char *);

static finder real_dlsym(void)
{
    static finder find;
    if (!find)
        find = (finder)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!find)
        find = (finder)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return find;
}

static void *real(const char *name)
{
    return real_dlsym()(RTLD_NEXT, name);
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t size)
{
    return fails(CALL_malloc, HERE) ? no_memory() : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(CALL_calloc, HERE) ? no_memory() : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails(CALL_realloc, HERE) ? no_memory() : __libc_realloc(old, size);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fails(CALL_mmap, HERE))
        return no_memory(), MAP_FAILED;
    return REAL(mmap)(address, size, protection, flags, fd, offset);
}

int mprotect(void *address, size_t size, int protection)
{
    if (fails(CALL_mprotect, HERE))
        return no_memory(), -1;
    return REAL(mprotect)(address, size, protection);
}

void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *fixed = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    if (fails(CALL_mremap, HERE))
        return no_memory(), MAP_FAILED;
    return REAL(mremap)(old, old_size, size, flags, fixed);
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    if (fails(CALL_open, HERE)) {
        errno = EMFILE;
        return -1;
    }
    return REAL(open)(path, flags, mode);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *data)
{
    if (fails(CALL_pthread_create, HERE))
        return EAGAIN;
    return REAL(pthread_create)(thread, attributes, start, data);
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    return fails(CALL_pthread_key_create, HERE) ? EAGAIN
                                                : REAL(pthread_key_create)(key, destructor);
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
    return fails(CALL_pthread_setspecific, HERE) ? ENOMEM : REAL(pthread_setspecific)(key, value);
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    return fails(CALL_pthread_getattr_np, HERE) ? ENOMEM
                                                : REAL(pthread_getattr_np)(thread, attributes);
}

/* ---------------------------------------------------------------- CPython */

/* Stand for CPython's functions where the shim asked for them: the words are passed on as they are.
 */
typedef void *(*function)(void *, void *, void *, void *, void *);
static function functions[CALLS];

static void raise_no_memory(void)
{
    static void (*raise)(void);
    if (!raise)
        raise = (void (*)(void))real_dlsym()(RTLD_DEFAULT, "PyErr_NoMemory");
    if (raise)
        raise();
}

#define STAND_IN(name, failed) \
    static void *stand_in_##name(void *a, void *b, void *c, void *d, void *e) \
    { \
        if (fails(CALL_##name, HERE)) { \
            raise_no_memory(); \
            return (void *)(intptr_t)(failed); \
        } \
        return functions[CALL_##name](a, b, c, d, e); \
    }
#define STAND_IN_NULL(name) STAND_IN(name, 0)
#define STAND_IN_INT(name) STAND_IN(name, -1)
CPYTHON(STAND_IN_NULL)
CPYTHON_INT(STAND_IN_INT)

#define STANDS_IN(name) {CALL_##name, stand_in_##name},
static const struct {
    enum call call;
    function function;
} stand_ins[] = {CPYTHON(STANDS_IN) CPYTHON_INT(STANDS_IN)};

void *dlsym(void *restrict handle, const char *restrict name)
{
    prepare();
    bool ours = (uintptr_t)HERE >= begin && (uintptr_t)HERE < end;
    if (fails(CALL_dlsym, HERE))
        return NULL;
    void *found = real_dlsym()(handle, name);
    for (size_t i = 0; ours && found && i < sizeof stand_ins / sizeof *stand_ins; i++)
        if (strcmp(names[stand_ins[i].call], name) == 0) {
            functions[stand_ins[i].call] = (function)found;
            return (void *)stand_ins[i].function;
        }
    return found;
}
