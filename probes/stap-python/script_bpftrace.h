/*
 * `stap-python SCRIPT --backend bpftrace`: runs the bpftrace script of that name instead of
 * SystemTap's, for machines on which stap does not work.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SCRIPT_BPFTRACE_H
#define SCRIPT_BPFTRACE_H

/* Runs a script with another tracer.  path: SystemTap's script, whose file name counts; arguments:
 * those after --backend, that is the tracer's name and the script's own, and NULL.  Does not
 * return: exits with bpftrace's status, or with an error line if the tracer is not bpftrace, has no
 * such script or is not installed, or if -x or -c are wrong. */
int script_backend(const char *path, char **arguments) __attribute__((noreturn));

#endif
