/*
 * See flamegraph.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "flamegraph.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "file.h"
#include "program.h"
#include "text.h"
#include "trust.h"

/* Where packages have it that is not in PATH: Debian's and Fedora's Perl modules. */
static const char *const elsewhere[] = {
    "/usr/share/perl5/Devel/NYTProf/flamegraph.pl",
    "/usr/lib64/perl5/vendor_perl/Devel/NYTProf/flamegraph.pl",
};

char *flamegraph_program(void)
{
    char *path = program_in_path("flamegraph.pl");
    for (size_t i = 0; !path && i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (access(under_root(elsewhere[i]), X_OK) == 0)
            path = strdup(under_root(elsewhere[i]));
    if (!path)
        die(FAILED, "record: flamegraph.pl, which draws an SVG, is not installed: it is in "
                    "libdevel-nytprof-perl (Debian) and flamegraph (Fedora); it reads what "
                    "--format folded writes");
    const char *why = geteuid() == 0 ? unsafe_path(path) : NULL;
    if (why)
        die(FAILED, "record: %s: root does not run it: %s", path, why);
    return path;
}

static char *folder;

static void remove_folder(void)
{
    unlink(format("%s/folded", folder));
    rmdir(folder);
}

char *flamegraph_folded(void)
{
    const char *parent = secure_getenv("TMPDIR");
    folder = format("%s/stap-python.XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        die(FAILED, "record: %s: cannot make a folder for the samples: %s", folder,
            strerror(errno));
    atexit(remove_folder);
    return format("%s/folded", folder);
}

/* ---------------------------------------------------------------- running */

static volatile pid_t child;

/* What a terminal sends to both has reached stap already. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code <= 0 && child > 0)
        kill(child, signal);
}

/* The exit status of a program that runs, as a shell has it. */
static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            die(FAILED, "record: waiting for a program: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_stap(char **command)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t all, before;
    sigemptyset(&all);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&all, signals[i]);
    /* what comes before there is a child reaches it, too */
    sigprocmask(SIG_BLOCK, &all, &before);
    child = fork();
    if (child < 0)
        die(FAILED, "record: cannot start %s: %s", command[0], strerror(errno));
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        exec_program(command);
    }
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return wait_for(child);
}

static int run_program(const char *program, int input, int output)
{
    char *command[] = {strdup(program), NULL};
    pid_t pid = fork();
    if (pid < 0)
        die(FAILED, "record: cannot start %s: %s", program, strerror(errno));
    if (pid == 0) {
        if (dup2(input, 0) >= 0 && dup2(output, 1) >= 0)
            exec_program(command);
        _exit(126);
    }
    return wait_for(pid);
}

int flamegraph_draw(const char *program, char **stap, const char *folded, int output)
{
    struct stat written = {.st_size = 0};
    int status = run_stap(stap), input = open_regular(folded, &written), drawn = 0;
    bool empty = input < 0 || written.st_size == 0;
    if (!empty)
        drawn = run_program(program, input, output);
    if (empty && status == 0)
        die(FAILED, "record: there were no samples: nothing is drawn");
    if (drawn)
        die(FAILED, "record: %s ended with status %d", program, drawn);
    return status;
}
