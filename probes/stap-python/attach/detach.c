/*
 * `stap-python detach`: writes a request into the shim's page (shared/filter_page.h), and waits
 * until the watcher has taken the hooks out and ended.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/inject.h"
#include "attach/shim_state.h"
#include "lib/processes.h"
#include "lib/util.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: stap-python detach [--children] [--name PATTERN]... PID...\n"
    "       stap-python detach [--children] --name PATTERN...\n"
    "       stap-python detach --all\n"
    "\n"
    "Undoes attach, and run and enable in processes that run: the shim takes its hooks out and "
    "ends\n"
    "its thread. Tracers get no events of these processes any more. The library stays mapped, and\n"
    "does nothing; attach, or a script's -x, makes it active again. You must be root or the\n"
    "program's user, and be allowed to trace it.\n"
    "\n"
    "  --name PATTERN  each Python with the shim that matches, as for attach\n"
    "  --children      the descendants of these processes that have the shim, too; a PID may then\n"
    "                  be that of another program, a shell say\n"
    "  --all           every Python that has the shim\n"
    "\n"
    "Prints a line for each: \"detached\" if no hook and no thread of the shim is left (up to 3.11 "
    "a\n"
    "thread that waits in C keeps an idle trace function until it runs Python code). While its\n"
    "threads wait in C with hooks of a tracer in place, a process is \"detaching\": it has no "
    "events\n"
    "any more, and the rest ends when Python code next runs there. The exit status is 1 if one is\n"
    "not detached yet, or can't be.\n";

/* FORK_MS: longer than any fork, during which the watcher does not run.  DETACH_MS: time for a
 * thread to run Python code, which takes the hooks out. */
enum { FORK_MS = 300, DETACH_MS = 2000 };

/* The reason why seccomp may forbid the watcher's end; NULL: it does not. */
static const char *refused_to_end(const struct process *process, pid_t watcher)
{
    const char *why = seccomp_refusal(process->pid);
    if (!why && has_seccomp_filter(process->pid))
        why = refused_to_thread(process->pid, watcher);
    /* Without the advice after the colon, which is for attach. */
    return why ? format("%.*s: its hooks and the shim's thread stay", (int)strcspn(why, ":"), why)
               : NULL;
}

static pid_t watcher_within(const struct process *process, long ms)
{
    pid_t watcher;
    for (long long end = monotonic_ms() + ms; !(watcher = process_watcher_thread(process));
         sleep_ms(10))
        if (monotonic_ms() > end || process_start(process->pid) != process->start)
            return 0;
    return watcher;
}

static bool is_detached_within(const struct process *process, long ms)
{
    long long end = monotonic_ms() + ms;
    while (!process_is_detached(process)) {
        if (monotonic_ms() > end || process_start(process->pid) != process->start)
            return false;
        sleep_ms(10);
    }
    return true;
}

/* Requests the detach of a shim that is not detached, and waits for it.  NULL, or the reason why
 * the shim is not detached.  *raised: the sum of the shim's semaphores. */
static const char *request_detach(const struct process *process, int memory, pid_t watcher,
                                  unsigned *raised)
{
    struct filter_page page;
    const char *why;
    const uint32_t request = REQUEST_DETACH;
    uint64_t at = page_read(memory, process, &page, &why);
    if (!at)
        return "the shim in it is of another version, or the program uses the address of its page: "
               "it stays until the program ends";
    if (process_start(process->pid) != process->start)
        return "it has ended";
    if (page.request == REQUEST_NONE &&
        (why = page_write(memory, at + offsetof(struct filter_page, request), &request,
                          sizeof request)))
        return why;
    if (is_detached_within(process, DETACH_MS)) {
        *raised = page_read(memory, process, &page, &why) ? page.raised : 0;
        return NULL;
    }
    if (process_has_ended(process))
        return "it has ended";
    if (shim_status(process, 0).state == SHIM_DETACHES)
        return "detaching: it has no events any more; hooks and thread end when Python code next "
               "runs there";
    if (!watcher)
        return "no thread of the shim's runs in it: if one starts, when Python code next runs "
               "there, it detaches; none does in a child that another thread than the main one has "
               "forked";
    return "requested, but the shim's thread has not reacted yet: run stap-python list again";
}

static const char *detach_from(pid_t pid)
{
    struct process process;
    const char *why = open_for_attach(pid, &process);
    unsigned raised = 0;
    if (why)
        return why;
    if (!process.shim)
        return "it has no shim: nothing to detach";
    if (process_is_detached(&process)) {
        printf("%d: already detached: %s\n", pid, printable(process.shim));
        return NULL;
    }
    if ((why = unsupported_reason(&process.python.file)) || (why = environment_refusal(&process))) {
        printf("%d: the shim does nothing in it: %s\n", pid, why);
        return NULL;
    }
    if ((why = refusal_to_detach(&process)))
        return why;
    pid_t watcher = watcher_within(&process, FORK_MS);
    if (watcher && (why = refused_to_end(&process, watcher)))
        return why;
    int memory = page_open(&process, &why);
    if (memory < 0)
        return why;
    why = request_detach(&process, memory, watcher, &raised);
    close(memory);
    if (why)
        return why;
    printf("%d: detached: %s; the library stays mapped, stap-python attach %d makes it active "
           "again\n",
           pid, printable(process.shim), pid);
    if (raised)
        printf("%d: a tracer still probes its markers, and gets no events of it\n", pid);
    return NULL;
}

static bool is_for(const struct attach_target *chosen, bool again)
{
    (void)again;
    return chosen->is_named || (chosen->has_shim && !chosen->is_detached);
}

int detach_main(char **arguments)
{
    static const struct action detaching = {.name = "detach",
                                            .did = "detached",
                                            .act = detach_from,
                                            .is_for = is_for,
                                            .none = "no such Python has an active shim",
                                            .none_is_fine = true};
    help_if_asked(arguments, usage);
    return attach_many(&detaching, arguments);
}
