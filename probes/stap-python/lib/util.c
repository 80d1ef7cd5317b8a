/*
 * SPDX-License-Identifier: MIT
 */

#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- text */

char *format(const char *text, ...)
{
    char *result;
    va_list values;
    va_start(values, text);
    if (vasprintf(&result, text, values) < 0)
        abort();
    va_end(values);
    return result;
}

/* The length of the UTF-8 character at text; 0 if the bytes are invalid, overlong, a surrogate, or
 * above U+10FFFF. */
static size_t character_at(const unsigned char *text)
{
    size_t length = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if (text[i] >> 6 != 2)
            return 0;
    bool wrong = (*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] >= 0xa0) ||
                 (*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] >= 0x90);
    return *text < 0xf5 && !wrong ? length : 0;
}

/* Whether a terminal could take the character for a command: C0, DEL, or C1 in UTF-8. */
static bool is_control(const unsigned char *text)
{
    return *text < ' ' || *text == 0x7f || (*text == 0xc2 && text[1] < 0xa0);
}

char *printable(const char *text)
{
    char *result = malloc(4 * strlen(text) + 1), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    while (*at) {
        size_t length = character_at(at);
        bool escaped = !length || is_control(at);
        length = length ? length : 1;
        if (escaped)
            for (size_t i = 0; i < length; i++)
                end += sprintf(end, "\\x%02x", at[i]);
        else
            end = mempcpy(end, at, length);
        at += length;
    }
    *end = '\0';
    return result;
}

char *json_string(const char *text)
{
    char *result = malloc(6 * strlen(text) + 3), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    *end++ = '"';
    while (*at) {
        size_t length = character_at(at);
        if (!length)
            end = stpcpy(end, "\\ufffd");
        else if (is_control(at))
            end += sprintf(end, "\\u%04x", length == 2 ? at[1] : at[0]);
        else {
            if (strchr("\"\\", *at))
                *end++ = '\\';
            end = mempcpy(end, at, length);
        }
        at += length ? length : 1;
    }
    strcpy(end, "\"");
    return result;
}

char *replaced(const char *text, const char *old, const char *new)
{
    char *made = "";
    for (const char *at; (at = strstr(text, old)); text = at + strlen(old))
        made = format("%s%.*s%s", made, (int)(at - text), text, new);
    return format("%s%s", made, text);
}

size_t utf8_length(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += (unsigned char)*text >> 6 != 2;
    return count;
}

char *utf8_prefix(const char *text, size_t most)
{
    size_t length = 0;
    while (text[length] && (most || (unsigned char)text[length] >> 6 == 2)) {
        most -= (unsigned char)text[length] >> 6 != 2;
        length++;
    }
    return format("%.*s", (int)length, text);
}

char *status_field(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line && *line; line += strspn(line, "\n")) {
        if (strncmp(line, name, length) != 0 || line[length] != ':') {
            line += strcspn(line, "\n");
            continue;
        }
        line += length + 1;
        line += strspn(line, " \t");
        return strndup(line, strcspn(line, "\n"));
    }
    return NULL;
}

char *shell_quoted(const char *word)
{
    char *result = malloc(4 * strlen(word) + 3), *end = result;
    if (!result)
        abort();
    *end++ = '\'';
    for (; *word; word++)
        end = *word == '\'' ? stpcpy(end, "'\\''") : (*end = *word, end + 1);
    strcpy(end, "'");
    return result;
}

char *shell_word(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=@%.,:/";
    return *word && !word[strspn(word, plain)] ? format("%s", word) : shell_quoted(word);
}

void texts_add(struct texts *texts, const char *text)
{
    texts->all = reallocarray(texts->all, texts->count + 2, sizeof *texts->all);
    if (!texts->all)
        abort();
    /* execvp() and its like take a list without const. */
    texts->all[texts->count++] = (char *)text;
    texts->all[texts->count] = NULL;
}

void texts_add_two(struct texts *texts, const char *first, const char *second)
{
    texts_add(texts, first);
    texts_add(texts, second);
}

/* ---------------------------------------------------------------- command */

static void print_line(const char *text, va_list values) __attribute__((format(printf, 1, 0)));

static void print_line(const char *text, va_list values)
{
    char *line;
    fflush(stdout);
    if (vasprintf(&line, text, values) < 0)
        abort();
    fprintf(stderr, "stap-python: %s\n", printable(line));
}

void die(int status, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    print_line(text, values);
    va_end(values);
    exit(status);
}

void warn(const char *text, ...)
{
    va_list values;
    /* The error is then that of stdout, which finish() reports. */
    if (fflush(stdout) != 0 || ferror(stdout))
        return;
    va_start(values, text);
    print_line(text, values);
    va_end(values);
}

void finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        die(FAILED, "stdout: %s", strerror(errno));
    exit(status);
}

void help_if_asked(char **arguments, const char *usage)
{
    if (!arguments[0] || (strcmp(arguments[0], "--help") != 0 && strcmp(arguments[0], "-h") != 0))
        return;
    fputs(usage, stdout);
    finish(0);
}

/* ---------------------------------------------------------------- clock */

long long monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---------------------------------------------------------------- program */

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

bool child_has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

/* The signals that end this program first end the process group of the program that it runs, so
 * that stap, for example, removes its files and ends its compiler. */
static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
enum { INTERRUPTS = sizeof interrupts / sizeof *interrupts };
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

void exec_program(char **command)
{
    execvp(command[0], command);
    int status = errno == ENOENT ? 127 : 126;
    die(status, "%s: %s", command[0], strerror(errno));
}
