/*
 * SPDX-License-Identifier: MIT
 */

#include "lib/program.h"

#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- this process */

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

void exec_program(char **command)
{
    execvp(command[0], command);
    int status = errno == ENOENT ? 127 : 126;
    die(status, "%s: %s", command[0], strerror(errno));
}

/* ---------------------------------------------------------------- children */

pid_t fork_with_pipe(const char *program, int own, int *end)
{
    int ends[2];
    pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid < 0)
        die(FAILED, "cannot start %s: %s", program, strerror(errno));
    own = pid > 0 ? own : !own;
    *end = ends[own];
    close(ends[!own]);
    return pid;
}

bool child_has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

bool wait_for_child(pid_t pid, int *status)
{
    int result;
    while (waitpid(pid, &result, 0) < 0)
        if (errno != EINTR)
            return false;
    *status = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
    return true;
}

bool child_ends_well(pid_t pid, long long deadline)
{
    int status;
    pid_t ended;
    for (useconds_t pause = 50; (ended = waitpid(pid, &status, WNOHANG)) == 0;) {
        if (monotonic_ms() >= deadline)
            return false;
        usleep(pause);
        pause = pause < 5000 ? 2 * pause : pause;
    }
    return ended == pid && status == 0;
}

static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
enum { INTERRUPTS = sizeof interrupts / sizeof *interrupts };

/* ---------------------------------------------------------------- output */

/* Runs in the child, with stdin from /dev/null, and stdout and stderr to the descriptor out. */
static void start_child(const char *const *arguments, int out, pid_t parent)
    __attribute__((noreturn));

static void start_child(const char *const *arguments, int out, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(127);
    execvp(arguments[0], (char *const *)arguments);
    _exit(127);
}

/* Reads the descriptor to its end, and keeps the first limit bytes in text, a zeroed buffer.  False
 * if reading takes longer than so many seconds. */
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

/* The signals that end this program first end the process group of the program that it runs, so
 * that stap, for example, removes its files and ends its compiler. */
static struct sigaction before[INTERRUPTS];
static volatile sig_atomic_t running, interrupted;

static void end_running(int number)
{
    int error = errno;
    if (running)
        kill(-running, interrupted ? SIGKILL : SIGTERM);
    interrupted = number;
    errno = error;
}

static void catch_interrupts(void)
{
    const struct sigaction action = {.sa_handler = end_running, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < INTERRUPTS; i++)
        if (sigaction(interrupts[i], NULL, &before[i]) == 0 && before[i].sa_handler == SIG_DFL)
            sigaction(interrupts[i], &action, NULL);
}

/* Does not return if a signal came meanwhile. */
static void release_interrupts(void)
{
    running = 0;
    for (size_t i = 0; i < INTERRUPTS; i++)
        sigaction(interrupts[i], &before[i], NULL);
    if (interrupted)
        exit(128 + interrupted);
}

void end_by_signal(void)
{
    if (interrupted)
        raise(interrupted);
}

/* Ends a child's process group: the child has two seconds to clean up after SIGTERM. */
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
    catch_interrupts();
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        start_child(arguments, ends[1], parent);
    close(ends[1]);
    if (pid > 0) {
        setpgid(pid, pid);
        running = pid;
        if (interrupted)
            kill(-pid, SIGTERM);
    }
    bool ended = pid < 0 || read_to_end(ends[0], seconds, text, LIMIT);
    if (pid > 0) {
        if (!ended)
            end_group(pid);
        int result;
        if (waitpid(pid, &result, 0) == pid && ended)
            *status = result;
    }
    /* A program that ends may still have something to say. */
    close(ends[0]);
    release_interrupts();
    return text;
}

/* ---------------------------------------------------------------- foreground */

static sigset_t mask_before; /* the signal mask before hold_interrupts() */
static bool are_held;
static volatile pid_t foreground;

void hold_interrupts(void)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < INTERRUPTS; i++)
        sigaddset(&held, interrupts[i]);
    if (!are_held)
        sigprocmask(SIG_BLOCK, &held, &mask_before);
    are_held = true;
}

/* Passes on what a process sent (si_code <= 0): a terminal's signals have reached the program. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code <= 0 && foreground > 0)
        kill(foreground, signal);
}

void start_in_foreground(char **command)
{
    const struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    hold_interrupts();
    foreground = fork();
    if (foreground < 0)
        die(FAILED, "cannot start %s: %s", command[0], strerror(errno));
    if (foreground == 0) {
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
        prctl(PR_SET_PDEATHSIG, SIGINT);
        exec_program(command);
    }
    for (size_t i = 0; i < INTERRUPTS; i++)
        sigaction(interrupts[i], &action, NULL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
    are_held = false;
}

bool foreground_has_ended(void)
{
    return child_has_ended(foreground);
}

int wait_in_foreground(void)
{
    int status;
    if (!wait_for_child(foreground, &status))
        die(FAILED, "waiting for a program: %s", strerror(errno));
    foreground = 0;
    return status;
}

int run_in_foreground(char **command)
{
    start_in_foreground(command);
    return wait_in_foreground();
}
