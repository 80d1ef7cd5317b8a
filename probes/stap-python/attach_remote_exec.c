/*
 * See attach_remote_exec.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attach_remote_exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach_refusal.h"
#include "program.h"
#include "shim.h"
#include "text.h"

static const char remote_exec[] = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])";

/* What the process runs.  It imports nothing but the shim that a program does not have already, and
 * may run twice. */
static const char loading[] =
    "def load():\n"
    "    import _frozen_importlib, _imp, posix\n"
    "    try:\n"
    "        posix.unlink(%s)\n"
    "    except OSError:\n"
    "        pass\n"
    "    _imp.create_dynamic(_frozen_importlib.ModuleSpec(%s, None, origin=%s))\n"
    "load()\n"
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

/* The path of a script that only the process's user can read; NULL and errno if it can't be made.
 */
static char *make_script(const struct process *process)
{
    char *path = strdup("/tmp/stap-python-XXXXXX.py");
    const char *status = proc_file(process->pid, "status"), *uids = status_field(status, "Uid"),
               *gids = status_field(status, "Gid");
    unsigned uid, gid;
    int fd = mkstemps(path, strlen(".py"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const char *module = process->shim ? "'python_stap_attach'" : "'python_stap'";
    char *text = format(loading, python_string(path), module, python_string(shim_file()));
#pragma GCC diagnostic pop
    ssize_t length = (ssize_t)strlen(text);
    if (fd < 0)
        return NULL;
    /* The sticky bit keeps systemd-tmpfiles from removing it: another user could take the name. */
    bool done = uids && gids && sscanf(uids, "%*u %u", &uid) == 1 &&
                sscanf(gids, "%*u %u", &gid) == 1 &&
                (geteuid() != 0 || fchown(fd, uid, gid) == 0) && fchmod(fd, S_ISVTX | 0600) == 0 &&
                write(fd, text, (size_t)length) == length;
    close(fd);
    if (!done)
        unlink(path);
    return done ? path : NULL;
}

/* What a traceback ends with: the exception. */
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
    char *path = make_script(process), *pid = format("%d", process->pid);
    if (!path)
        return format("cannot create a script in /tmp: %s", strerror(errno));
    const char *const command[] = {process->python.path, "-IS", "-c", remote_exec, pid, path, NULL};
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
