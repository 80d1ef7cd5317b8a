/*
 * Attaches to one process: by sys.remote_exec() from CPython 3.14 on; with ptrace() before 3.14, if
 * sys.remote_exec() fails (remote debugging may be off), and if the main thread does not run Python
 * code soon.
 *
 * SPDX-License-Identifier: MIT
 */

#include "attach/attach.h"
#include "attach/inject.h"
#include "attach/shim_state.h"
#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- sys.remote_exec() */

static const char remote_exec[] = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])";

/* The script that the process runs, perhaps twice.  The shim is the only module that it loads: a
 * program has the others already.  It is active when the script ends: were it only soon after, a
 * program that forks meanwhile would be warned of the shim's thread. */
static const char removing[] = "def load():\n"
                               "    import _frozen_importlib, _imp, posix\n"
                               "    try:\n"
                               "        posix.unlink(%s)\n"
                               "    except OSError:\n"
                               "        pass\n";
static const char loading[] =
    "    shim = _imp.create_dynamic(_frozen_importlib.ModuleSpec(%s, None, origin=%s))\n"
    "    _imp.exec_dynamic(shim)\n";
static const char calling[] = "load()\n"
                              "del load\n";

bool can_run_its_python(const struct process *process)
{
    if (!process_shares_our_mounts(process))
        return false;
    return (geteuid() != 0 && !user_refusal(process->pid)) || !unsafe_python(process->python.path);
}

static char *python_string(const char *text)
{
    char *result = malloc(2 * strlen(text) + 3), *end = result;
    if (!result)
        abort();
    *end++ = '\'';
    for (; *text; text++) {
        if (strchr("\\'", *text))
            *end++ = '\\';
        *end++ = *text;
    }
    strcpy(end, "'");
    return result;
}

/* The sticky bit keeps systemd-tmpfiles from removing the script: another user could then create a
 * file of its name.  The script stays its maker's: the PID may be that of a program with more
 * rights when the script runs, by exec() of a set-user-ID program, or of another user's. */
enum { SCRIPT_MODE = S_ISVTX | 0644 };

/* Removes root's scripts for processes that have ended: only root can. */
static void remove_old_scripts(void)
{
    struct stat status;
    glob_t found;
    pid_t pid;
    if (geteuid() != 0 || glob("/tmp/stap-python-*.py", GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (sscanf(found.gl_pathv[i], "/tmp/stap-python-%d-", &pid) == 1 && !process_start(pid) &&
            lstat(found.gl_pathv[i], &status) == 0 && status.st_uid == 0 &&
            status.st_mode == (S_IFREG | SCRIPT_MODE))
            unlink(found.gl_pathv[i]);
    globfree(&found);
}

/* Creates the script; NULL and errno on failure.  done: a script whose work is done, for which this
 * one removes that file alone. */
static char *make_script(const struct process *process, const char *done)
{
    char *path = format("/tmp/stap-python-%d-XXXXXX.py", process->pid);
    int fd = mkstemps(path, strlen(".py"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const char *module = process->shim ? "'python_stap_attach'" : "'python_stap'";
    const char *removes = format(removing, python_string(done ? done : path));
    const char *loads = done ? "" : format(loading, module, python_string(shim_file()));
#pragma GCC diagnostic pop
    char *text = format("%s%s%s", removes, loads, calling);
    ssize_t length = (ssize_t)strlen(text);
    if (fd < 0)
        return NULL;
    bool written = fchmod(fd, SCRIPT_MODE) == 0 && write(fd, text, (size_t)length) == length;
    int error = errno;
    close(fd);
    if (!written)
        unlink(path);
    errno = error;
    return written ? path : NULL;
}

/* Leaves nothing of the script to do but to remove itself: it would attach the shim again after a
 * later detach, when the main thread next runs Python code. */
static void disarm_script(const struct process *process, const char *script)
{
    char *idle = file_exists(script) ? make_script(process, script) : NULL;
    if (idle && rename(idle, script) != 0)
        unlink(idle);
}

/* The last line of a traceback is the exception. */
static const char *last_line(char *text)
{
    size_t end = strlen(text);
    while (end && text[end - 1] == '\n')
        text[--end] = '\0';
    char *last = strrchr(text, '\n');
    return last ? last + 1 : text;
}

const char *attach_by_remote_exec(const struct process *process, char **script)
{
    int status;
    char *path = make_script(process, NULL), *pid = format("%d", process->pid);
    if (!path)
        return format("cannot create a script in /tmp: %s", strerror(errno));
    const char *const command[] = {process->python.path, "-IS", "-c", remote_exec, pid, path, NULL};
    remove_old_scripts();
    if (process_start(process->pid) != process->start) {
        unlink(path);
        return "it has ended";
    }
    char *answer = run_and_capture(command, 20, &status);
    *script = path;
    if (status == 0)
        return NULL;
    unlink(path);
    return format("sys.remote_exec() failed: %s", last_line(answer));
}

/* ---------------------------------------------------------------- one process */

/* Time for the main thread to run Python code. */
enum { REMOTE_MS = 2000 };

bool process_lacks_watcher(const struct process *process)
{
    enum shim_state state = shim_status(process, 0).state;
    return state == SHIM_DETACHED || state == SHIM_DETACHES;
}

/* Whether the shim is loaded, and no longer detached. */
static bool is_attached(const struct process *process)
{
    return process_has_shim(process) && !(process->shim && process_lacks_watcher(process));
}

static bool is_attached_within(const struct process *process, long ms)
{
    for (long long end = monotonic_ms() + ms; !is_attached(process); sleep_ms(10))
        if (monotonic_ms() > end || process_start(process->pid) != process->start)
            return false;
    return true;
}

const char *status_after_attach(const struct process *process, struct shim_status *status)
{
    struct process now;
    const char *why;
    if (!process_open(process->pid, &now, &why))
        return process_has_ended(process) ? why : another_program;
    *status = shim_status(&now, ACTIVATION_TIMEOUT_MS);
    if (status->state != SHIM_ACTIVE && (!now.shim || process_has_changed(&now)) &&
        !process_has_ended(&now))
        return another_program;
    return status->state == SHIM_SILENT || status->state == SHIM_UNKNOWN ? shim_complaint(status)
                                                                         : NULL;
}

/* since: "already " or ""; again: " again" or "".  NULL, or the reason why tracers don't see it. */
static const char *print_state(const char *since, const struct process *process, const char *again,
                               const char *shim)
{
    struct shim_status status;
    const char *why = status_after_attach(process, &status);
    bool active = !why && status.state == SHIM_ACTIVE;
    if (why)
        return why;
    printf("%d: %s%s%s: %s%s\n", process->pid, since, active ? "active" : "loaded", again,
           printable(shim), active ? "" : "; it becomes active when Python code next runs there");
    /* For a shim that was loaded just now, print_place() prints this line. */
    if (status.why && (*since || *again))
        printf("%d: %s\n", process->pid, status.why);
    return NULL;
}

/* Prints how tracers find the shim in another root. */
static void print_place(const struct process *process)
{
    const char *path = printable(process->load_path), *ours = printable(shim_file());
    if (process_shares_our_mounts(process) || process_has_ended(process))
        return;
    if (!load_path_is_our_shim(process))
        printf("%d: %s\n", process->pid, shim_place(process, process->load_path));
    else if (strcmp(path, ours) != 0)
        printf("%d: that is %s, mounted in its root, and found as that by bpftrace and perf; stap "
               "does not find it there\n",
               process->pid, ours);
    else if (process->is_mounted)
        printf("%d: that is our file, mounted in its root\n", process->pid);
}

/* attach_process() without its checks. */
static const char *attach(const struct process *process)
{
    char *script = NULL;
    bool asked = process_has_remote_exec(process) && can_run_its_python(process) &&
                 !has_seccomp_filter(process->pid) &&
                 (!process->shim || strcmp(process->shim, shim_file()) == 0);
    const char *failure = asked ? attach_by_remote_exec(process, &script) : NULL;
    if (failure && !HAS_REMOTE_CALLS)
        return failure;
    /* ptrace() can use another thread, if the main thread waits in C for long. */
    bool has_run = asked && !failure && is_attached_within(process, REMOTE_MS);
    const char *why = has_run ? NULL : attach_by_ptrace(process);
    if (has_run)
        unlink(script);
    else if (!why && script)
        disarm_script(process, script);
    if (!why && !is_attached_within(process, process->shim ? ACTIVATION_TIMEOUT_MS : 0))
        why = process_has_changed(process) ? another_program
              : process->shim              ? "it is still detached: try again"
                                           : "dlopen() returned, but the shim is not loaded";
    if (!why)
        return NULL;
    /* While the process runs, its main thread may still run the script.  So the script stays:
     * another user must not create a file of its name. */
    if (process_has_ended(process)) {
        if (script)
            unlink(script);
        return "it has ended";
    }
    if (script && file_exists(script))
        why = format("%s; its main thread will load it when it next runs Python code", why);
    return failure ? format("%s; before that, %s", why, failure) : why;
}

const char *attach_process(struct process *process)
{
    const char *why = attach_refusal(process);
    if (why || (!process->shim && (why = mount_shim(process))))
        return process_has_ended(process) ? "it has ended" : why;
    return attach(process);
}

const char *attach_to(pid_t pid)
{
    struct process process;
    const char *why = open_for_attach(pid, &process);
    if (why)
        return why;
    bool again = process.shim && process_lacks_watcher(&process);
    if (process.shim && !again && !unsupported_reason(&process.python.file)) {
        why = print_state("already ", &process, "", process.shim);
        if (!why || shim_status(&process, 0).state != SHIM_UNKNOWN || attach_process(&process))
            return why;
        return print_state("", &process, "", process.shim);
    }
    if ((why = attach_process(&process)))
        return why;
    if (again)
        return print_state("", &process, " again", process.shim);
    if ((why = print_state("", &process, "", process.load_path)))
        return why;
    print_place(&process);
    return NULL;
}
