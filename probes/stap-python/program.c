/*
 * See program.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "text.h"

char *program_in_path(const char *word)
{
    struct stat status;
    char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/local/bin:/usr/bin:/bin");
    if (strchr(word, '/'))
        return access(word, X_OK) == 0 ? strdup(word) : NULL;
    for (char *folder; path && (folder = strsep(&path, ":"));) {
        char *file = format("%s/%s", *folder ? folder : ".", word);
        if (access(file, X_OK) == 0 && stat(file, &status) == 0 && S_ISREG(status.st_mode))
            return file;
    }
    return NULL;
}

/* In the child: its stdin is /dev/null, its stdout and stderr are this descriptor. */
static void start_child(const char *const *arguments, int out) __attribute__((noreturn));

static void start_child(const char *const *arguments, int out)
{
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(127);
    execvp(arguments[0], (char *const *)arguments);
    _exit(127);
}

/* Reads the descriptor until its end, of which text, a zeroed buffer, keeps limit bytes; false if
 * that takes longer than so many seconds. */
static bool read_to_end(int fd, int seconds, char *text, size_t limit)
{
    size_t length = 0;
    long long end = monotonic_ms() + seconds * 1000LL, left;
    bool ended = false;
    while (!ended && (left = end - monotonic_ms()) > 0) {
        struct pollfd ready = {fd, POLLIN, 0};
        if (poll(&ready, 1, (int)left) <= 0)
            continue;
        char rest[4096];
        ssize_t got = read(fd, rest, sizeof rest);
        ended = got <= 0;
        size_t kept = got > 0 && (size_t)got < limit - length ? (size_t)got : limit - length;
        if (got > 0) {
            memcpy(text + length, rest, kept);
            length += kept;
        }
    }
    return ended;
}

bool child_has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

/* Ends a child's process group; it has two seconds to remove what it leaves elsewhere. */
static void end_group(pid_t pid)
{
    kill(-pid, SIGTERM);
    for (long long end = monotonic_ms() + 2000; monotonic_ms() < end && !child_has_ended(pid);)
        usleep(10000);
    kill(-pid, SIGKILL);
}

char *run_and_capture(const char *const *arguments, int seconds, int *status)
{
    enum { LIMIT = 65536 };
    int ends[2];
    char *text = calloc(1, LIMIT + 1);
    *status = -1;
    if (!text || pipe2(ends, O_CLOEXEC) != 0)
        return "";
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        start_child(arguments, ends[1]);
    close(ends[1]);
    bool ended = pid < 0 || read_to_end(ends[0], seconds, text, LIMIT);
    close(ends[0]);
    if (pid > 0) {
        if (!ended)
            end_group(pid);
        int result;
        if (waitpid(pid, &result, 0) == pid && ended)
            *status = result;
    }
    return text;
}

void exec_program(char **command)
{
    execvp(command[0], command);
    int status = errno == ENOENT ? 127 : 126;
    die(status, "%s: %s", command[0], strerror(errno));
}
