/*
 * Runs on the program's threads and on the watcher's.  What the watcher calls must not call
 * malloc() (core/watcher.c).
 *
 * SPDX-License-Identifier: MIT
 */

#include "os/process.h"

#include "shared/versions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- debug */

bool debug_on;

void debug_log(const char *format, ...)
{
    if (!debug_on)
        return;
    int saved = errno;
    char line[560];
    size_t start = (size_t)snprintf(line, sizeof line, "libpython-stap[%d]: ", (int)getpid());
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + start, sizeof line - start - 1, format, arguments);
    va_end(arguments);
    size_t size = strlen(line);
    line[size++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, size);
    (void)written;
    errno = saved;
}

/* ---------------------------------------------------------------- pages at fixed addresses */

#ifndef MAP_FIXED_NOREPLACE /* before glibc 2.27; to kernels before 4.17 the address is a hint */
#define MAP_FIXED_NOREPLACE 0x100000
#endif

void *map_fixed_page(const uint64_t *addresses, size_t count, size_t size, int protection)
{
    for (size_t i = 0; i < count; i++) {
        void *requested = (void *)(uintptr_t)addresses[i];
        if ((uintptr_t)requested != addresses[i])
            continue;
        void *place = mmap(requested, size, protection,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (place == requested)
            return place;
        if (place != MAP_FAILED)
            munmap(place, size);
    }
    return NULL;
}

/* ---------------------------------------------------------------- detection of forks */

#ifndef MADV_WIPEONFORK /* glibc before 2.26; Linux 4.14 */
#define MADV_WIPEONFORK 18
#endif

int *zero_in_child_word(void)
{
    enum { PAGE = 4096 };
    int *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
        munmap(page, PAGE);
        return NULL;
    }
    *page = 1;
    return page;
}

/* ---------------------------------------------------------------- the main thread's end */

static pthread_t main_thread;
static bool main_known;

void main_thread_remember(void)
{
    if (gettid() == getpid()) {
        main_thread = pthread_self();
        main_known = true;
    }
}

/* num_threads, field 20 of /proc/self/stat; field 2 is the name in parentheses. */
int thread_count(void)
{
    char text[512];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    /* Not read(): if the watcher shares the program's descriptors, fd may be a pipe by now. */
    ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (fd >= 0)
        close(fd);
    text[size < 0 ? 0 : size] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 20; field++)
        at = strchr(at + 1, ' ');
    return at ? (int)number_at(at + 1, NULL) : 0;
}

bool is_last_thread(void)
{
    clockid_t clock;
    /* A thread has a clock while it lives.  This makes no system call. */
    if (!main_known || pthread_getcpuclockid(main_thread, &clock) != ESRCH)
        return false;
    int left = thread_count();
    return left == 1 || left == 2; /* the main thread and this one */
}

/* ---------------------------------------------------------------- seccomp filters */

/* The watcher does not change hooks once a thread has set a seccomp filter, which may forbid system
 * calls that hooks cause.  Hooks need memory.  A thread that waits for the GIL makes its holder
 * call futex(). */

/* Reads the part of a thread's status from "Seccomp:" on into text.  The line of its groups, which
 * is before, may have 65536 numbers.  NULL: there is no such line. */
static const char *seccomp_lines(int fd, char *text, size_t room)
{
    enum { BOTH_LINES = 64, LONGEST = 1 << 20 };
    size_t kept = 0, filled;
    off_t at = 0;
    while (at < LONGEST) {
        /* Not read(), nor to the end of whatever it is: as in thread_count().  From where the last
         * one ended: the kernel writes the text anew for any other place. */
        ssize_t size = pread(fd, text + kept, room - 1 - kept, at);
        if (size < 0)
            return NULL;
        at += size;
        filled = kept + (size_t)size;
        text[filled] = '\0';
        const char *mode = strstr(text, "\nSeccomp:");
        if (filled < room - 1 || (mode && text + filled - mode > BOTH_LINES))
            return mode;
        kept = mode ? (size_t)(text + filled - mode) : BOTH_LINES;
        memmove(text, text + filled - kept, kept);
    }
    return NULL;
}

/* A number that grows with the filters of a thread; -1: /proc has none. */
static long filters_in(const char *status_path)
{
    char text[4096];
    int fd = open(status_path, O_RDONLY | O_CLOEXEC);
    const char *mode = fd < 0 ? NULL : seccomp_lines(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    if (!mode)
        return -1;
    const char *count = strstr(mode, "\nSeccomp_filters:");
    return 1000 * (number_at(mode + sizeof "\nSeccomp:", NULL) != 0) +
           (count ? number_at(count + sizeof "\nSeccomp_filters:", NULL) : 0); /* Linux 5.9 */
}

/* entries: a part of /proc/self/task. */
static bool any_exceeds(long own, const char *entries, long size)
{
    const struct dirent64 *thread;
    for (long at = 0; at < size; at += thread->d_reclen) {
        thread = (const void *)(entries + at);
        char path[64 + sizeof thread->d_name];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", thread->d_name);
        if (filters_in(path) > own)
            return true;
    }
    return false;
}

long seccomp_own(void)
{
    return filters_in("/proc/thread-self/status") + 2;
}

/* Not opendir(), which calls malloc(). */
bool any_thread_has_seccomp(void)
{
    _Alignas(struct dirent64) char entries[4096];
    long own = filters_in("/proc/thread-self/status"), size;
    int fd = own < 0 ? -1 : open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    while (fd >= 0 && !found && (size = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        found = any_exceeds(own, entries, size);
    if (fd >= 0)
        close(fd);
    return found;
}

/* ---------------------------------------------------------------- ticks */

#ifdef __x86_64__
#include <cpuid.h>
#endif

bool ticks_use_counter;

/* Counter and clock at the start of the comparison. */
static uint64_t first_ticks, first_nanoseconds;
static double nanoseconds_a_tick = 1; /* by the latest comparison */
static bool measured;

/* A shorter comparison is too rough to detect that the counter was stopped or set. */
enum { LONG_ENOUGH_NS = 100000000 };

/* Whether the counter runs at one rate, and alike on all processors. */
static bool is_steady(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8); /* invariant TSC */
#elif defined(__aarch64__)
    return true; /* the architecture guarantees it */
#else
    return false;
#endif
}

static void begin(void)
{
    ticks_use_counter = is_steady();
    first_ticks = ticks_now();
    first_nanoseconds = clock_ns();
}

void ticks_choose_source(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
}

/* While the machine is suspended the clock stops, but the counter may continue or be reset. */
void ticks_calibrate(void)
{
    uint64_t ticks = ticks_now() - first_ticks, nanoseconds = clock_ns() - first_nanoseconds;
    if (!ticks_use_counter || !nanoseconds || !ticks)
        return;
    double now = (double)nanoseconds / (double)ticks;
    if (measured && (now > nanoseconds_a_tick * 1.01 || now < nanoseconds_a_tick * 0.99)) {
        first_ticks += ticks;
        first_nanoseconds += nanoseconds;
        measured = false; /* the first comparison may have been the wrong one */
        return;
    }
    nanoseconds_a_tick = now;
    measured = nanoseconds >= LONG_ENOUGH_NS;
}

uint64_t ticks_to_ns(uint64_t ticks)
{
    return (uint64_t)((double)ticks * nanoseconds_a_tick + 0.5);
}
