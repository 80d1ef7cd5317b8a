/*
 * Prepares the process of -x for a script, and says which Pythons a script without -x sees.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/shim_state.h"
#include "lib/files.h"
#include "lib/interpreters.h"
#include "lib/processes.h"
#include "lib/util.h"
#include "script/script.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- native markers for a script */

/* The marker of the probe point python.POINT: function__entry for function.entry. */
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
            return strcmp(native_marker_state(&process->python, i), "live") == 0;
    return false;
}

/* Skips "%( $# > N %? filtered. %)" in a probe point.  Whether the script has more than N
 * arguments, and therefore probes a filtered marker. */
static bool is_filtered(const char **point, size_t arguments)
{
    unsigned least;
    int length = 0;
    if (sscanf(*point, "%%( $# > %u %%? filtered. %%)%n", &least, &length) < 1 || length == 0)
        return false;
    *point += length;
    return arguments > least;
}

/* How many of the markers that a script probes are live native ones in a process. */
enum own { NATIVE_NONE, NATIVE_SOME, NATIVE_ALL };

static enum own own_markers_for(const struct script_probes *script, const struct process *process)
{
    unsigned probed = 0, live = 0;
    const char *code = script->code;
    if (!tapset_searches(process->code_name) || !process_shares_our_mounts(process))
        return NATIVE_NONE;
    for (const char *probe = code; (probe = strstr(probe, "\nprobe python.")); probed++) {
        probe += 14;
        if (is_filtered(&probe, script->arguments))
            return NATIVE_NONE;
        size_t length = strspn(probe, "abcdefghijklmnopqrstuvwxyz.");
        live += has_live_marker(process, marker_of(probe, length));
    }
    /* Native markers pass no frameptr. */
    return live == 0                                   ? NATIVE_NONE
           : live < probed || strstr(code, "frameptr") ? NATIVE_SOME
                                                       : NATIVE_ALL;
}

/* ---------------------------------------------------------------- the process of -x */

/* For a process in which process_open() found no CPython. */
static void say_why_unknown(const struct process *process, const char *why)
{
    if (!process->start)
        die(FAILED, "%d: %s", process->pid, why);
    if (!process->is_hidden)
        warn("%d: %s; only what it starts from now on is traced", process->pid, why);
    else
        warn("%d: whether it has the shim is unknown: %s", process->pid, why);
}

/* How many of the processes that are marked (chosen) are Pythons, except pid. */
static unsigned pythons_beside(const struct processes *processes, pid_t pid)
{
    unsigned pythons = 0;
    const char *why;
    for (size_t i = 0; i < processes->count; i++) {
        struct process process;
        if (processes->all[i].chosen && processes->all[i].pid != pid)
            pythons += process_open(processes->all[i].pid, &process, &why);
    }
    return pythons;
}

/* The command whose --children is the cure, or NULL. */
static const char *with_children;

void script_has_children(const char *command)
{
    with_children = command;
}

/* How to see a process and the Pythons that it has started. */
static char *cure(pid_t pid)
{
    return with_children ? format("stap-python %s --children -p %d", with_children, pid)
                         : format("stap-python attach --children %d, then leave out -x", pid);
}

/* Warns if pid's parent runs the same program: pid is then one of several workers, and which of
 * them does the work is unknown. */
static void say_what_works_beside(pid_t pid)
{
    struct process process, parent;
    const char *why;
    struct processes processes = processes_find();
    pid_t master = processes_parent(&processes, pid);
    if (!master || !process_open(pid, &process, &why) || !process_open(master, &parent, &why) ||
        strcmp(process.python.path, parent.python.path) != 0)
        return;
    processes_choose(&processes, master);
    processes_choose_descendants(&processes);
    unsigned pythons = pythons_beside(&processes, pid);
    if (pythons > 1) { /* the parent is one of them */
        pythons--;
        warn("%s traces %d alone, not the %u other Python%s of its parent %d: to see all, %s",
             with_children ? "-p" : "-x", pid, pythons, pythons == 1 ? "" : "s", master,
             cure(master));
    }
}

/* -x traces the children that a process starts from now on, not those that it started before. */
static void say_what_is_left_out(pid_t pid)
{
    struct processes processes = processes_find();
    processes_choose(&processes, pid);
    processes_choose_descendants(&processes);
    unsigned pythons = pythons_beside(&processes, pid);
    if (pythons)
        warn("%s does not trace the %u Python%s that %d has already started: to see %s, %s",
             with_children ? "-p" : "-x", pythons, pythons == 1 ? "" : "s", pid,
             pythons == 1 ? "it" : "them", cure(pid));
}

/* Warns if tracers don't see the loaded shim; exits if no native marker serves the script either.
 */
static void look_at_shim(const struct process *process, enum own own)
{
    struct shim_status status = shim_status(process, ACTIVATION_TIMEOUT_MS);
    if (status.state == SHIM_SILENT && own == NATIVE_NONE)
        die(FAILED, "%d: %s", process->pid, shim_complaint(&status));
    if (status.state == SHIM_SILENT || status.state == SHIM_UNKNOWN)
        warn("%d: %s", process->pid, shim_complaint(&status));
    else if (status.why)
        warn("%d: %s", process->pid, status.why);
    else if (status.state == SHIM_WAITS)
        warn("%d: the shim becomes active when Python code next runs there", process->pid);
}

static void say_attached(const struct process *process, bool again)
{
    struct shim_status status;
    const char *why = status_after_attach(process, &status);
    if (why)
        die(FAILED, "%d: %s", process->pid, why);
    warn("attached%s to %d: %s", again ? " again" : "", process->pid,
         status.state == SHIM_ACTIVE
             ? "active"
             : "loaded; it becomes active when Python code next runs there");
}

void script_attach(const struct script_probes *script, pid_t pid)
{
    struct process process;
    const char *why;
    if (!process_open(pid, &process, &why)) {
        say_why_unknown(&process, why);
        return;
    }
    enum own own = own_markers_for(script, &process);
    if (own == NATIVE_ALL)
        return;
    bool again = process.shim && process_lacks_watcher(&process);
    if (process.shim && !again) {
        look_at_shim(&process, own);
        return;
    }
    why = attach_process(&process);
    if (why && own == NATIVE_NONE)
        die(FAILED, "%d lacks the markers, and the shim can't be loaded: %s", pid, why);
    if (why)
        warn("%d has only markers of its own, as the shim can't be loaded: %s", pid, why);
    else
        say_attached(&process, again);
}

void script_prepare_target(const struct script_probes *script, pid_t pid)
{
    if (in_pid_namespace())
        warn("the kernel knows %d by another PID, which this PID namespace does not show: -x sees "
             "nothing here: run this outside of the container, or leave out -x",
             pid);
    script_attach(script, pid);
    say_what_is_left_out(pid);
    say_what_works_beside(pid);
}

/* ---------------------------------------------------------------- without -x */

void script_list_running(const struct script_probes *script)
{
    unsigned all = 0, with_shim = 0, silent = 0, with_own = 0;
    unsigned others = 0;
    const char *other = "";
    if (!file_exists(under_root("/proc")))
        return;
    struct processes processes = processes_find();
    for (size_t i = 0; i < processes.count; i++) {
        struct process process;
        const char *why;
        if (!process_open(processes.all[i].pid, &process, &why)) {
            others += process.python.file.other != NULL;
            other = process.python.file.other ? process.python.file.other : other;
            continue;
        }
        all++;
        struct shim_status status = shim_status(&process, 0);
        if (status.state == SHIM_SILENT || status.state == SHIM_UNKNOWN)
            silent++;
        else if (process.shim && !process_lacks_watcher(&process))
            with_shim++;
        else if (own_markers_for(script, &process) == NATIVE_ALL)
            with_own++;
    }
    /* This user may be unable to read other users' processes. */
    const char *whose = geteuid() == 0 ? "" : " of yours";
    if (!all)
        warn("no Python%s runs; stap-python run CMD starts one with the shim", whose);
    else
        warn("%u Python%s%s run%s, %u with the shim%s%s%s", all, all == 1 ? "" : "s", whose,
             all == 1 ? "s" : "", with_shim,
             silent ? format(", %u in which it is silent: stap-python ps says why", silent) : "",
             with_own ? format(", %u with live markers of CPython's own", with_own) : "",
             with_shim + silent + with_own == all
                 ? ""
                 : "; stap-python attach --all loads it into the rest, which stap-python ps lists");
    if (others)
        warn("%u process%s %s, not CPython: nothing can be seen of %s", others,
             others == 1 ? " runs" : "es run", other, others == 1 ? "it" : "them");
}
