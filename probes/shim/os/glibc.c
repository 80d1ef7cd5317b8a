/*
 * Makes the shim load with each glibc from 2.17 on, or from the architecture's first one, whatever
 * glibc it was built with.  A container may have an older glibc than the host.  Two things would
 * prevent this.  The linker binds the newest version of a function.  Up to 2.33 threads and dlsym()
 * are in libpthread and libdl.  A program that lacks these must start all the same with the shim
 * preloaded.
 *
 * So the moved functions are looked up at run time.  The functions here have their names, and are
 * hidden: other files call them as usual.  What the shim does about functions newer than 2.17:
 *
 *   MOVED_DL, MOVED_THREADS      moved in 2.32 to 2.34: looked up
 *   gettid()                     2.30: the system call
 *   stat(), fstat(), statx()     2.33, 2.28: not used
 *   strtol(), sscanf()           2.38 has others for new programs (__isoc23_strtol()):
 *                                number_at() of shared/versions.h, period_of() of hooks/memory.c
 *
 * test/fast/glibc.bats names any further function that is too new.
 *
 * SPDX-License-Identifier: MIT
 */

#include "os/glibc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* clang-format off */
#define MOVED_DL(DO) DO(dladdr) DO(dladdr1) DO(dlopen)
#define MOVED_THREADS(DO) \
    DO(pthread_attr_getstack) DO(pthread_attr_setstacksize) DO(pthread_create) \
    DO(pthread_detach) DO(pthread_getattr_np) DO(pthread_getcpuclockid) DO(pthread_getspecific) \
    DO(pthread_join) DO(pthread_key_create) DO(pthread_key_delete) DO(pthread_mutex_trylock) \
    DO(pthread_once) DO(pthread_setname_np) DO(pthread_setspecific) DO(pthread_sigmask) \
    DO(pthread_tryjoin_np)
/* clang-format on */

#define POINTER(name) __typeof__(name) *name;
static struct {
    MOVED_DL(POINTER) MOVED_THREADS(POINTER)
} libc;

#ifndef __GLIBC_PREREQ
#define __GLIBC_PREREQ(major, minor) 0
#endif

/* The version of dlsym() that each glibc for this architecture has.  From 2.34 on the linker would
 * bind a newer one.  Up to 2.33 dlsym() is in libdl, which the shim is not linked with, and so has
 * no version here.  On architectures that are not listed the shim needs 2.34. */
#if !__GLIBC_PREREQ(2, 34)
#elif defined(__x86_64__) && defined(__LP64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__i386__)
#define FIRST_VERSION "GLIBC_2.0"
#elif defined(__arm__)
#define FIRST_VERSION "GLIBC_2.4"
#elif defined(__s390x__)
#define FIRST_VERSION "GLIBC_2.2"
#elif defined(__aarch64__) || (defined(__powerpc64__) && defined(__LITTLE_ENDIAN__))
#define FIRST_VERSION "GLIBC_2.17"
#elif defined(__riscv) && __riscv_xlen == 64
#define FIRST_VERSION "GLIBC_2.27"
#endif

/* The C library's dlsym(); NULL in a program without libdl.  The Makefile compiles this file
 * without -flto, which would lose the version. */
#ifdef FIRST_VERSION
extern void *libc_dlsym(void *, const char *) __attribute__((weak));
__asm__(".symver libc_dlsym, dlsym@" FIRST_VERSION);

void *dlsym(void *library, const char *name)
{
    return libc_dlsym ? libc_dlsym(library, name) : NULL;
}
#else
#define libc_dlsym dlsym
#endif

/* A libpython that the program loaded by RTLD_LOCAL may have loaded libpthread.  The shim then
 * finds libpthread only by its name. */
bool glibc_find(void)
{
    static bool found;
    if (found || !libc_dlsym)
        return found;
#define LOOK_UP(name) libc.name = (__typeof__(libc.name))libc_dlsym(library, #name);
    void *library = RTLD_DEFAULT;
    MOVED_DL(LOOK_UP)
    bool for_all = libc_dlsym(RTLD_DEFAULT, "pthread_create");
    if (!for_all && !(library = dlopen("libpthread.so.0", RTLD_LAZY | RTLD_NOLOAD)))
        return false;
    MOVED_THREADS(LOOK_UP)
#undef LOOK_UP
#define AND(name) &&libc.name
    found = true MOVED_THREADS(AND);
#undef AND
    return found;
}

pid_t gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* ---------------------------------------------------------------- may be called at any time */

int dladdr(const void *address, Dl_info *info)
{
    return libc.dladdr ? libc.dladdr(address, info) : 0;
}

int dladdr1(const void *address, Dl_info *info, void **more, int flags)
{
    return libc.dladdr1 ? libc.dladdr1(address, info, more, flags) : 0;
}

void *dlopen(const char *file, int mode)
{
    return libc.dlopen ? libc.dlopen(file, mode) : NULL;
}

/* ---------------------------------------------------------------- only after glibc_find() */

int pthread_attr_getstack(const pthread_attr_t *attributes, void **base, size_t *size)
{
    return libc.pthread_attr_getstack(attributes, base, size);
}

int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size)
{
    return libc.pthread_attr_setstacksize(attributes, size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    return libc.pthread_create(thread, attributes, run, argument);
}

int pthread_detach(pthread_t thread)
{
    return libc.pthread_detach(thread);
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    return libc.pthread_getattr_np(thread, attributes);
}

int pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
    return libc.pthread_getcpuclockid(thread, clock);
}

void *pthread_getspecific(pthread_key_t key)
{
    return libc.pthread_getspecific(key);
}

int pthread_join(pthread_t thread, void **result)
{
    return libc.pthread_join(thread, result);
}

int pthread_key_create(pthread_key_t *key, void (*at_end)(void *))
{
    return libc.pthread_key_create(key, at_end);
}

int pthread_key_delete(pthread_key_t key)
{
    return libc.pthread_key_delete(key);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return libc.pthread_mutex_trylock(mutex);
}

int pthread_once(pthread_once_t *once, void (*run)(void))
{
    return libc.pthread_once(once, run);
}

int pthread_setname_np(pthread_t thread, const char *name)
{
    return libc.pthread_setname_np(thread, name);
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
    return libc.pthread_setspecific(key, value);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    return libc.pthread_sigmask(how, set, before);
}

int pthread_tryjoin_np(pthread_t thread, void **result)
{
    return libc.pthread_tryjoin_np(thread, result);
}
