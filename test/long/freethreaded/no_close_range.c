/*
 * Preloaded, it makes syscall() as it is before Linux 5.9, without close_range(): so the shim's
 * thread has the process's table of descriptors.  ThreadSanitizer opens the file for its reports
 * once, on the thread that is first to have one, and would write to that number in whatever table.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long argument[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_close_range) {
        errno = ENOSYS;
        return -1;
    }
    return next(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                argument[5]);
}
