/*
 * Raises the shim's semaphores as a tracer would, from inside the traced process: for runs that no
 * tracer can see into (valgrind) or need none (sanitizers).  Preloaded beside the shim.
 *
 * SEMAPHORES=ADDRESS,ADDRESS... are their addresses in the shim's file; with SEMAPHORES_TOGGLE=MS a
 * thread takes them down and up again every so many milliseconds, like tracers that attach and
 * detach.
 *
 * SPDX-License-Identifier: MIT
 */
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile unsigned short *semaphores[32];
static size_t count;
static useconds_t period;

static int find_base(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    if (!strstr(info->dlpi_name, "libpython-stap.so"))
        return 0;
    *(ElfW(Addr) *)base = info->dlpi_addr;
    return 1;
}

static void find_semaphores(void)
{
    ElfW(Addr) base = 0;
    const char *list = getenv("SEMAPHORES");
    if (!list || !dl_iterate_phdr(find_base, &base))
        return;
    char *next = (char *)list;
    while (*next && count < sizeof semaphores / sizeof *semaphores) {
        semaphores[count++] = (unsigned short *)(base + strtoull(next, &next, 16));
        next += *next == ',';
    }
}

/* The program may call it, too, also when it has loaded the shim itself. */
void semaphores_set(unsigned short value)
{
    if (!count)
        find_semaphores();
    for (size_t i = 0; i < count; i++)
        *semaphores[i] = value;
}

static void *toggle(void *unused)
{
    for (unsigned short on = 0;; on = !on) {
        usleep(period);
        semaphores_set(on);
    }
    return unused;
}

__attribute__((constructor)) static void raise_semaphores(void)
{
    const char *toggles = getenv("SEMAPHORES_TOGGLE");
    semaphores_set(1);
    pthread_t thread;
    sigset_t all, before;
    if (count && toggles && (period = (useconds_t)atoi(toggles) * 1000)) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_create(&thread, NULL, toggle, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}
