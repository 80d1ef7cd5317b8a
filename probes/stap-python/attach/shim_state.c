/*
 * SPDX-License-Identifier: MIT
 */

#include "attach/shim_state.h"

#include "attach/attach.h"
#include "lib/files.h"
#include "lib/processes.h"
#include "lib/util.h"
#include "shared/offsets_page.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- a shim elsewhere */

const char *shim_elsewhere(const struct process *process)
{
    const char *path = process->shim_code;
    return (process->has_other_shim || process->has_copy) && path && strstr(path, "/map_files/")
               ? path
               : NULL;
}

char *shim_place(const struct process *process, const char *path)
{
    return format("that is a copy in its root: bpftrace and perf find it as /proc/%d/root%s, stap "
                  "if it is of the same build and not on overlayfs",
                  process->pid, printable(path));
}

/* Whether bpftrace would be refused that shim, since others can change its file. */
static bool is_others_file(const char *path)
{
    struct stat status;
    int fd = open_regular(path, &status);
    bool others = fd >= 0 && others_can_change(fd, &status);
    if (fd >= 0)
        close(fd);
    return others;
}

/* Tracers find probes by the file at the shim's path, and the process runs another file. */
static char *why_elsewhere(const struct process *process)
{
    bool deleted = strstr(process->shim, " (deleted)");
    const char *path = shim_elsewhere(process);
    return format("%s, and tracers look in %s: restart the program%s",
                  deleted ? "its file was replaced or deleted while the program runs"
                          : format("it is another file, %s", printable(process->shim)),
                  printable(shim_file()),
                  path && is_others_file(path)
                      ? ""
                      : format(", or trace it by --backend bpftrace -x %d as root", process->pid));
}

/* ---------------------------------------------------------------- the state */

static struct shim_status silent(const char *why)
{
    return (struct shim_status){SHIM_SILENT, why};
}

static struct shim_status without_watcher(const struct process *process)
{
    const char *why = environment_refusal(process);
    if (why)
        return silent(format("%s: restart it without", why));
    if (process->has_pages)
        return (struct shim_status){
            SHIM_UNKNOWN, "Python has not begun there, is about to end, or was forked by a thread "
                          "other than the main one, where the shim does nothing"};
    if (!started_environment_is_whole(process->pid))
        return silent("it is off, and why can't be told, as the program has overwritten its "
                      "environment: restart it without PYTHON_STAP=off");
    return silent("it found no CPython there that it supports: PYTHON_STAP_DEBUG=1 in the "
                  "program's environment says why");
}

/* The page has the current state, but reading it needs the right to trace the process.  The
 * watcher's name may be older. */
static bool lacks_id(const struct process *process, const char *name)
{
    struct filter_page page;
    const char *why;
    int memory = page_open(process, &why);
    bool read = memory >= 0 && page_read(memory, process, &page, &why);
    if (memory >= 0)
        close(memory);
    return read ? page.lacks_id : strcmp(name, SHIM_THREAD_NAME_NO_IDS) == 0;
}

char *shim_complaint(const struct shim_status *status)
{
    return format(status->state == SHIM_UNKNOWN
                      ? "whether the shim becomes active is unknown: %s"
                      : "the shim is loaded, but tracers don't see it: %s",
                  status->why);
}

struct shim_status shim_status(const struct process *process, long ms)
{
    if (!process->shim)
        return (struct shim_status){SHIM_ABSENT, NULL};
    if (process_is_detached(process))
        return (struct shim_status){SHIM_DETACHED, NULL};
    const char *name = process_watcher(process, ms), *why;
    if (name && strcmp(name, SHIM_THREAD_NAME_END) == 0)
        return (struct shim_status){SHIM_DETACHES, NULL};
    if (name && strcmp(name, SHIM_THREAD_NAME_NEW) == 0)
        return (struct shim_status){SHIM_WAITS, NULL};
    if (!name)
        return without_watcher(process);
    if (process->has_other_shim)
        return silent(why_elsewhere(process));
    if ((why = silenced_by_seccomp(process->pid)))
        return silent(why);
    if (lacks_id(process, name))
        return silent("other tools hold all ids of sys.monitoring, so that there are no markers of "
                      "functions, lines, C functions and exceptions: end one of them");
    return (struct shim_status){SHIM_ACTIVE,
                                process->has_copy ? shim_place(process, process->shim) : NULL};
}
