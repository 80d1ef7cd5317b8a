/*
 * SPDX-License-Identifier: MIT
 */

#include "profile/push.h"

#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"
#include "profile/http.h"
#include "profile/pprof.h"
#include "profile/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- what is sent to where */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
static char *ingest, host[256];

/* The text as a service or as a label's value: Pyroscope takes no other characters in a service
 * (https://github.com/grafana/pyroscope/blob/main/api/model/labelset/validate.go). */
static char *as_label(const char *text, size_t length)
{
    char *label = strndup(text, length);
    if (!label)
        abort();
    for (char *at = label; *at; at++)
        if (!strchr(letters, *at) && !strchr("_.-/", *at))
            *at = '_';
    return label;
}

static void add_url(const char *url)
{
    const char *rest = strstr(url, "://");
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        die(USAGE, "record: the URL to push to begins with http:// or https://, not '%s'", url);
    if (memchr(rest + 3, '@', strcspn(rest + 3, "/")))
        die(USAGE, "record: a password in the URL is seen by all users in the list of processes: "
                   "use --push-auth-file");
    if (strpbrk(url, "?# "))
        die(USAGE, "record: the URL to push to is that of the server, without a query: '%s'", url);
    int length = (int)strlen(url);
    while (url[length - 1] == '/')
        length--;
    ingest = format("%.*s%s", length, url, ends_with(url, "/ingest") ? "" : "/ingest");
}

/* Credentials, of which each line is "USER:PASSWORD" or a header, "NAME: VALUE". */
static void add_credentials(const char *from, char *text)
{
    struct texts headers = {0};
    char *password = NULL;
    texts_add(&headers, "Accept:");
    for (char *line; (line = strsep(&text, "\r\n"));) {
        const char *colon = strchr(line, ':');
        if (*line && !colon)
            die(USAGE, "record: %s: a line is neither USER:PASSWORD nor a header, NAME: VALUE",
                from);
        if (*line && colon[1] == ' ')
            texts_add(&headers, line);
        else if (*line)
            password = line;
    }
    http_set(headers.all, password);
}

static char *credentials_in(const char *path)
{
    struct stat status;
    int fd = open_regular(path, &status);
    if (fd < 0)
        die(FAILED, "record: cannot read %s: %s", path,
            errno == EINVAL ? "it is not a regular file" : strerror(errno));
    close(fd);
    if (status.st_mode & S_IRWXO)
        die(FAILED, "record: %s has a password and is open to all users: chmod o= %s", path, path);
    char *text = read_file(path, 65536);
    if (!text)
        die(FAILED, "record: cannot read %s: %s", path, strerror(errno));
    return text;
}

void push_prepare(const struct push *push)
{
    static const char variable[] = "STAP_PYTHON_PUSH_AUTH";
    const char *given = getenv(variable);
    char *text = push->auth ? credentials_in(push->auth) : strdup(given ? given : "");
    add_url(push->url);
    if (push->service && (!*push->service || strcmp(as_label(push->service, strlen(push->service)),
                                                    push->service) != 0))
        die(USAGE, "record: a service has letters, digits and any of _.-/ in its name, not '%s'",
            push->service);
    http_load();
    add_credentials(push->auth ? push->auth : variable, text);
    /* The traced program and what stap starts need not know it. */
    unsetenv(variable);
    if (gethostname(host, sizeof host - 1) != 0)
        strcpy(host, "unknown");
}

/* ---------------------------------------------------------------- queue */

/* The memory that a server may cost that is down for long.  The oldest profile goes first. */
enum { QUEUE_MOST = 256, QUEUE_BYTES = 32 << 20 };

struct item {
    char *url;
    void *body;
    size_t size;
    struct item *next;
};

static struct {
    struct item *first, *last;
    size_t count, bytes;
} queue;

static bool is_sending; /* the first one */
static unsigned long long sent, dropped, dropped_said;

/* Removes the one behind before, or the first one if before is NULL. */
static void dequeue(struct item *before)
{
    struct item *item = before ? before->next : queue.first;
    *(before ? &before->next : &queue.first) = item->next;
    if (!item->next)
        queue.last = before;
    queue.count--;
    queue.bytes -= item->size;
    free(item->url);
    free(item->body);
    free(item);
}

static void enqueue(char *url, void *body, size_t size)
{
    struct item *item = calloc(1, sizeof *item);
    if (!item)
        abort();
    *item = (struct item){url, body, size, NULL};
    *(queue.last ? &queue.last->next : &queue.first) = item;
    queue.last = item;
    queue.count++;
    queue.bytes += size;
    while (queue.count > 1u + is_sending &&
           (queue.count > QUEUE_MOST || queue.bytes > QUEUE_BYTES)) {
        dequeue(is_sending ? queue.first : NULL);
        dropped++;
    }
}

/* ---------------------------------------------------------------- sending */

enum { LONGEST_PAUSE_MS = 60000 };

static long long next_try;           /* monotonic_ms() */
static long pause_ms;                /* before the next try; 0: the last one has succeeded */
static char why[512], why_said[512]; /* the last failure; the last one that was told */

static void say_failure(const char *text, bool is_refused)
{
    snprintf(why, sizeof why, "%s", text);
    if (strcmp(why, why_said) == 0)
        return;
    memcpy(why_said, why, sizeof why_said);
    warn("record: a profile is not sent to %s: %s: %s", ingest, why,
         is_refused ? "it is dropped" : "trying again");
}

/* Whether a server that answers so will not take the same profile later. */
static bool is_final(long status)
{
    return status >= 300 && status <= 499 && status != 408 && status != 429;
}

static void after_post(const struct http_result *result)
{
    is_sending = false;
    if (!result->why || is_final(result->status)) {
        if (result->why)
            say_failure(result->why, true);
        *(result->why ? &dropped : &sent) += 1;
        dequeue(NULL);
        if (!result->why && pause_ms)
            warn("record: profiles are sent to %s again; dropped meanwhile: %llu", ingest,
                 dropped - dropped_said);
        dropped_said = result->why ? dropped_said : dropped;
        if (!result->why)
            *why_said = '\0';
        pause_ms = 0;
        return;
    }
    say_failure(result->why, false);
    pause_ms = pause_ms ? pause_ms * 2 : 1000;
    pause_ms = pause_ms < LONGEST_PAUSE_MS ? pause_ms : LONGEST_PAUSE_MS;
    /* Of a thousand machines not all are to come back in the same moment. */
    next_try = monotonic_ms() + pause_ms / 2 + random() % pause_ms;
}

/* Sends, and waits at most so many milliseconds for the server, or until there is something to read
 * from fd. */
static struct http_result step(int fd, int ms)
{
    if (!is_sending && queue.first && monotonic_ms() >= next_try) {
        http_post(queue.first->url, queue.first->body, queue.first->size);
        is_sending = true;
    }
    struct http_result result = http_wait(fd, ms);
    if (result.has_ended)
        after_post(&result);
    return result;
}

/* Sends what is left after the end of sampling, until the first failure and for at most GRACE_MS.
 */
static void send_rest(int fd)
{
    enum { GRACE_MS = 5000 };
    long long end = monotonic_ms() + GRACE_MS, left = GRACE_MS;
    next_try = 0;
    while (queue.first && (left = end - monotonic_ms()) > 0) {
        struct http_result result = step(fd, (int)left);
        if (result.has_ended && result.why && !is_final(result.status))
            break;
    }
    http_cancel();
    if (queue.first && left <= 0)
        snprintf(why, sizeof why, "the server has not answered within %d s", GRACE_MS / 1000);
    dropped += queue.count;
}

/* ---------------------------------------------------------------- intervals */

struct interval {
    unsigned rate, pid;
    unsigned long long begin, length;
};

static char *url_encoded(const char *text)
{
    char *all = calloc(3, strlen(text) + 1), *at = all;
    if (!all)
        abort();
    for (; *text; text++)
        at += sprintf(at, strchr(letters, *text) || strchr("-._~", *text) ? "%c" : "%%%02X",
                      (unsigned char)*text);
    return all;
}

static char *url_for(const char *service, const struct interval *interval)
{
    char *machine = as_label(host, strlen(host));
    char *pid = interval->pid ? format(",pid=%u", interval->pid) : strdup("");
    char *labels = format("%s{host=%s%s}", service, machine, pid), *name = url_encoded(labels);
    char *url =
        format("%s?name=%s&from=%llu&until=%llu&format=pprof&sampleRate=%u&spyName=stap-python",
               ingest, name, interval->begin, interval->begin + interval->length, interval->rate);
    free(machine);
    free(pid);
    free(labels);
    free(name);
    return url;
}

/* In a child, whose memory is gone when it ends. */
static void write_pprof(const struct interval *interval, const char *text, size_t size, int fd)
    __attribute__((noreturn));

static void write_pprof(const struct interval *interval, const char *text, size_t size, int fd)
{
    struct profile *profile = profile_new();
    FILE *output = fdopen(fd, "w");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    profile->rate = interval->rate;
    profile->begin = interval->begin;
    profile->length = interval->length;
    if (!output || profile_read_folded(profile, 0, text, size))
        _exit(FAILED);
    profile_sum(profile);
    profile_write_pprof(profile, output);
    _exit(ferror(output) || fclose(output) ? FAILED : 0);
}

/* The pprof file of these lines; NULL: there is none. */
static void *pprof_of(const struct interval *interval, const char *text, size_t size,
                      size_t *body_size)
{
    int fd = memfd_create("profile", MFD_CLOEXEC), status = FAILED;
    void *body = NULL;
    off_t end;
    pid_t pid = fd < 0 ? -1 : fork();
    if (pid == 0)
        write_pprof(interval, text, size, fd);
    if (pid > 0 && wait_for_child(pid, &status) && status == 0 &&
        (end = lseek(fd, 0, SEEK_END)) > 0 && (body = malloc((size_t)end))) {
        *body_size = (size_t)end;
        if (pread(fd, body, *body_size, 0) != (ssize_t)*body_size) {
            free(body);
            body = NULL;
        }
    }
    close(fd);
    return body;
}

/* A service for each of the first 20 programs; what begins with another name is of the last one.
 * Names of processes are the programs' own, and each service is a series of the server. */
enum { SERVICES = 20, OTHER = SERVICES };
static char *services[SERVICES + 1];

static int service_of(const struct push *push, const char *line)
{
    int n = 0;
    bool has_frames = line[strcspn(line, ";\n")] == ';';
    const char *name = push->service ? push->service : has_frames ? line : "other";
    if (*name == ';')
        name = "unnamed";
    char *label = as_label(name, strcspn(name, ";\n"));
    while (n < SERVICES && services[n] && strcmp(services[n], label) != 0)
        n++;
    if (n == OTHER || services[n]) {
        free(label);
        if (n == OTHER)
            services[OTHER] = "other";
    } else {
        services[n] = label;
    }
    return n;
}

/* Puts the lines of an interval into the queue, as a profile for each service. */
static void enqueue_interval(const struct push *push, const struct interval *interval,
                             const char *text, size_t size)
{
    FILE *parts[SERVICES + 1] = {NULL};
    char *part[SERVICES + 1];
    size_t sizes[SERVICES + 1], body_size;
    const char *end = text + size;
    for (const char *line = text, *next; line < end; line = next) {
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next + 1 : end;
        int n = service_of(push, line);
        if (!parts[n] && !(parts[n] = open_memstream(&part[n], &sizes[n])))
            abort();
        fwrite(line, 1, (size_t)(next - line), parts[n]);
    }
    for (int n = 0; n <= SERVICES; n++) {
        if (!parts[n])
            continue;
        fclose(parts[n]);
        void *body = pprof_of(interval, part[n], sizes[n], &body_size);
        if (body)
            enqueue(url_for(services[n], interval), body, body_size);
        else
            dropped++;
        free(part[n]);
    }
}

/* ---------------------------------------------------------------- pyprof's output */

/* The bytes of the interval that is not complete. */
static struct {
    char *text;
    size_t size, room, line; /* line: where the last line begins */
} pending;

static void end_line(const struct push *push)
{
    struct interval interval;
    char newline;
    if (pending.text[pending.line] == '#' &&
        sscanf(pending.text + pending.line, "# %u %llu %llu %u%c", &interval.rate, &interval.begin,
               &interval.length, &interval.pid, &newline) == 5 &&
        newline == '\n') {
        enqueue_interval(push, &interval, pending.text, pending.line);
        pending.size = 0;
    }
    pending.line = pending.size;
}

static void add_byte(const struct push *push, char byte)
{
    if (pending.size + 2 > pending.room) {
        pending.room = pending.room ? pending.room * 2 : 65536;
        if (!(pending.text = realloc(pending.text, pending.room)))
            abort();
    }
    pending.text[pending.size++] = byte;
    pending.text[pending.size] = '\0';
    if (byte == '\n')
        end_line(push);
}

static void read_intervals(const struct push *push, int fd)
{
    char bytes[65536];
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < got; i++)
            add_byte(push, bytes[i]);
}

static void say_counts(void)
{
    if (dropped)
        warn("record: profiles sent to %s: %llu; dropped: %llu: %s", ingest, sent, dropped,
             *why ? why : "there was no memory for them");
    else if (sent)
        warn("record: profiles sent to %s: %llu", ingest, sent);
    else
        warn("record: there were no samples: nothing was sent");
}

int push_run(const struct push *push, char **stap, const char *path)
{
    /* O_RDWR: without a writer, each wait would end at once. */
    int fd = mkfifo(path, 0600) == 0 ? open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd < 0)
        die(FAILED, "record: %s: cannot make a FIFO for the samples: %s", path, strerror(errno));
    srandom((unsigned)getpid() ^ (unsigned)monotonic_ms());
    start_in_foreground(stap);
    signal(SIGPIPE, SIG_IGN); /* of a TLS connection that the server has closed */
    bool has_ended = false;
    while (!has_ended) {
        has_ended = foreground_has_ended();
        step(fd, has_ended ? 0 : 250);
        read_intervals(push, fd);
    }
    int status = wait_in_foreground();
    if (pending.size)
        warn("record: stap has ended within an interval, whose samples are lost");
    send_rest(fd);
    say_counts();
    return status == 0 && dropped ? FAILED : status;
}
