/*
 * See script_target.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "script_target.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach_load.h"
#include "attach_refusal.h"
#include "command.h"
#include "file.h"
#include "process.h"
#include "processes.h"
#include "text.h"

/* ---------------------------------------------------------------- CPython's own markers */

/* The marker that python.POINT probes: function__entry for function.entry. */
static char *marker_of(const char *point, size_t length)
{
    const char *dot = memchr(point, '.', length);
    if (!dot)
        return format("%.*s", (int)length, point);
    int first = (int)(dot - point);
    return format("%.*s%s__%.*s", first, point,
                  strncmp(point, "import.", 7) == 0 ? "__find__load" : "", (int)length - first - 1,
                  dot + 1);
}

static bool has_live_marker(const struct process *process, const char *marker)
{
    for (unsigned i = 0; marker_name(i); i++)
        if (strcmp(marker_name(i), marker) == 0)
            return strcmp(own_marker(&process->python, i), "live") == 0;
    return false;
}

/* Passes over what stands in a probe point for a script with more than N arguments: "%( $# > N %?
 * filtered. %)".  Whether it has as many. */
static bool is_filtered(const char **point, size_t arguments)
{
    unsigned least;
    int length = 0;
    if (sscanf(*point, "%%( $# > %u %%? filtered. %%)%n", &least, &length) < 1 || length == 0)
        return false;
    *point += length;
    return arguments > least;
}

/* How much of what a script probes CPython's own markers give it in a process. */
enum own { NOTHING, A_PART, ALL };

static enum own own_markers_for(const struct script_probes *script, const struct process *process)
{
    unsigned probed = 0, live = 0;
    const char *code = script->code;
    if (!tapset_looks_in(process->code_name) || !process_sees_our_files(process))
        return NOTHING;
    for (const char *probe = code; (probe = strstr(probe, "\nprobe python.")); probed++) {
        probe += 14;
        if (is_filtered(&probe, script->arguments))
            return NOTHING;
        size_t length = strspn(probe, "abcdefghijklmnopqrstuvwxyz.");
        live += has_live_marker(process, marker_of(probe, length));
    }
    /* None of CPython's own passes a frame. */
    return live == 0 ? NOTHING : live < probed || strstr(code, "frameptr") ? A_PART : ALL;
}

/* ---------------------------------------------------------------- with -x */

/* A process in which no CPython is seen. */
static void say_why_unknown(const struct process *process, const char *why)
{
    if (!process->start)
        die(FAILED, "%d: %s", process->pid, why);
    if (!process->is_hidden)
        warn("%d: it does not run CPython; only what it starts from now on is traced",
             process->pid);
    else
        warn("%d: whether it has the shim is unknown: %s", process->pid, why);
}

/* SystemTap traces what a process starts from then on, but not what it has started. */
static void say_what_is_left_out(pid_t pid)
{
    unsigned pythons = 0;
    const char *why;
    struct processes processes = processes_find();
    processes_choose(&processes, pid);
    processes_choose_descendants(&processes);
    for (size_t i = 0; i < processes.count; i++) {
        struct process process;
        if (processes.all[i].chosen && processes.all[i].pid != pid)
            pythons += process_open(processes.all[i].pid, &process, &why);
    }
    if (pythons)
        warn("-x does not trace the %u Python%s that %d has already started: to see %s, "
             "stap-python attach --children %d, then leave out -x",
             pythons, pythons == 1 ? "" : "s", pid, pythons == 1 ? "it" : "them", pid);
}

static void make_visible(const struct script_probes *script, pid_t pid)
{
    struct process process;
    const char *why;
    if (!process_open(pid, &process, &why)) {
        say_why_unknown(&process, why);
        return;
    }
    bool again = process.shim && process_lacks_watcher(&process);
    if (process.shim && !again) {
        if ((why = refused_by_environment(&process)))
            die(FAILED, "%d: the shim is loaded but does nothing: %s", pid, why);
        return;
    }
    enum own own = own_markers_for(script, &process);
    if (own == ALL)
        return;
    why = attach_process(&process);
    if (why && own == NOTHING)
        die(FAILED, "%d lacks the markers, and the shim can't be loaded: %s", pid, why);
    if (why)
        warn("%d has only markers of its own, as the shim can't be loaded: %s", pid, why);
    else
        warn("attached%s to %d: %s", again ? " again" : "", pid,
             process_is_active(&process, ACTIVE_MS)
                 ? "active"
                 : "loaded; it becomes active when Python code next runs there");
}

void prepare_target(const struct script_probes *script, pid_t pid)
{
    make_visible(script, pid);
    say_what_is_left_out(pid);
}

/* ---------------------------------------------------------------- without */

void say_what_runs(const struct script_probes *script)
{
    unsigned all = 0, with_shim = 0, with_own = 0;
    if (!exists(rooted("/proc")))
        return;
    struct processes processes = processes_find();
    for (size_t i = 0; i < processes.count; i++) {
        struct process process;
        const char *why;
        if (!process_open(processes.all[i].pid, &process, &why))
            continue;
        all++;
        if (process.shim && !process_is_detached(&process))
            with_shim++;
        else if (own_markers_for(script, &process) == ALL)
            with_own++;
    }
    /* Others may have some that we can't look into. */
    const char *whose = geteuid() == 0 ? "" : " of yours";
    if (!all)
        warn("no Python%s runs; stap-python run CMD starts one with the shim", whose);
    else
        warn("%u Python%s%s run%s, %u with the shim%s%s", all, all == 1 ? "" : "s", whose,
             all == 1 ? "s" : "", with_shim,
             with_own ? format(", %u with live markers of CPython's own", with_own) : "",
             with_shim + with_own == all
                 ? ""
                 : "; stap-python attach --all loads it into the rest, which stap-python ps lists");
}
