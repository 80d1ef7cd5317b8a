/*
 * `stap-python top` on a terminal: runs the script as a child, reads its table of each second, and
 * draws it on the terminal's alternate screen, until the script ends.  Its keys are read meanwhile.
 * Signals are blocked and read like a file, so that nothing runs at any time.
 *
 * SPDX-License-Identifier: MIT
 */

#include "commands.h"
#include "lib/files.h"
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
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* ---------------------------------------------------------------- table */

struct row {
    unsigned long own, total;
    const char *name;
};

struct text {
    char *bytes; /* ends with '\0'; NULL: none yet */
    size_t length;
};

struct table {
    char *text;                                           /* has the names of the rows */
    unsigned long samples, unknown, all_samples, seconds; /* the last two since the start */
    struct row *rows;
    size_t count;
};

static void add_text(struct text *text, const char *bytes, size_t length)
{
    text->bytes = realloc(text->bytes, text->length + length + 1);
    if (!text->bytes)
        abort();
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

/* Takes the next table from what the script has printed: a line "SAMPLES", lines "OWN TOTAL NAME",
 * and an empty one.  False: there is no whole table. */
static bool take_table(struct text *text, struct table *table)
{
    char *end = text->bytes ? strstr(text->bytes, "\n\n") : NULL, *line, *rest;
    if (!end)
        return false;
    size_t length = (size_t)(end - text->bytes);
    free(table->text);
    free(table->rows);
    *table = (struct table){.text = rest = strndup(text->bytes, length)};
    if (!rest)
        abort();
    text->length -= length + 2;
    memmove(text->bytes, end + 2, text->length + 1);
    line = strsep(&rest, "\n");
    table->samples = strtoul(line, NULL, 10);
    while ((line = strsep(&rest, "\n"))) {
        struct row row = {.own = strtoul(line, &line, 10), .total = strtoul(line, &line, 10)};
        row.name = line + strspn(line, " ");
        table->unknown += strcmp(row.name, "[unknown]") == 0 ? row.own : 0;
        table->rows = reallocarray(table->rows, table->count + 1, sizeof row);
        if (!table->rows)
            abort();
        table->rows[table->count++] = row;
    }
    return true;
}

static enum { BY_OWN, BY_TOTAL, BY_NAME } order;

static int compare_rows(const void *a, const void *b)
{
    const struct row *one = a, *other = b;
    unsigned long first = order == BY_TOTAL ? one->total : one->own;
    unsigned long second = order == BY_TOTAL ? other->total : other->own;
    if (order != BY_NAME && first != second)
        return first < second ? 1 : -1;
    if (order != BY_NAME && one->total != other->total)
        return one->total < other->total ? 1 : -1;
    return strcmp(one->name, other->name);
}

/* ---------------------------------------------------------------- screen */

static const char *target, *rate;
static struct table shown, latest;
static bool is_on, is_over, is_paused, has_help;
static struct termios before;
static struct text said; /* what the script says on stderr while the screen is on */

bool top_has_screen(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal && *terminal &&
           strcmp(terminal, "dumb") != 0;
}

/* Gives up where the terminal is gone: SIGHUP tells. */
static void write_all(int fd, const char *bytes, size_t length)
{
    for (ssize_t got = 0; length && got >= 0; length -= (size_t)got, bytes += got)
        got = write(fd, bytes, length);
}

/* A command of ECMA-48 for the terminal, while the screen is on. */
static const char *if_on(const char *command)
{
    return is_on ? command : "";
}

static double percent(unsigned long part)
{
    return shown.samples ? 100.0 * (double)part / (double)shown.samples : 0;
}

static void draw_title(FILE *out, bool is_order, const char *title)
{
    fprintf(out, "%s%s%s", if_on(is_order ? "\033[7m" : "\033[1m"), title, if_on("\033[m"));
}

static void draw_head(FILE *out, const char *end)
{
    fprintf(out, "%s: %s samples a second on each CPU%s", target, rate, end);
    fprintf(out, "%lu s: %lu samples, %.1f %% unknown; %lu so far%s%s", shown.seconds,
            shown.samples, percent(shown.unknown), shown.all_samples, is_paused ? ", paused" : "",
            end);
    /* The last line that was said. */
    const char *line = said.length ? memrchr(said.bytes, '\n', said.length - 1) : NULL;
    line = line ? line + 1 : said.bytes;
    if (has_help)
        fputs("o own, t total, f function: the order; p pause; q quit; ? this line", out);
    else if (line && is_on) {
        char *safe = strndup(line, strcspn(line, "\n")), *text = printable(safe);
        fputs(text, out);
        free(text);
        free(safe);
    } else
        fputs(if_on("? for the keys"), out);
    fputs(end, out);
    fputs(" ", out);
    draw_title(out, order == BY_OWN, "OWN(%)");
    fputs(" ", out);
    draw_title(out, order == BY_TOTAL, "TOTAL(%)");
    fputs("  ", out);
    draw_title(out, order == BY_NAME, "FUNCTION");
}

/* Draws the screen, or, when it is off, prints what was on it. */
static void draw(void)
{
    enum { HEAD = 4, HOT = 20, LINES = 24 };
    const char *end = is_on ? "\033[K\n" : "\n";
    struct winsize size = {0};
    char *text;
    size_t length, lines;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        abort();
    lines = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : LINES;
    qsort(shown.rows, shown.count, sizeof *shown.rows, compare_rows);
    fputs(if_on("\033[H"), out);
    draw_head(out, end);
    for (size_t i = 0; i < shown.count && i + HEAD < lines; i++) {
        const struct row *row = &shown.rows[i];
        char *name = printable(row->name);
        fprintf(out, "%s%s%7.1f %8.1f  %s%s", end, if_on(percent(row->own) >= HOT ? "\033[1m" : ""),
                percent(row->own), percent(row->total), name, if_on("\033[m"));
        free(name);
    }
    fputs(is_on ? "\033[J" : "\n", out);
    fclose(out);
    write_all(STDOUT_FILENO, text, length);
    free(text);
}

static void enter(void)
{
    static const char commands[] = "\033[?1049h\033[?7l\033[?25l"; /* no wrapping, no cursor */
    struct termios keys;
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return;
    keys = before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
    write_all(STDOUT_FILENO, commands, strlen(commands));
    is_on = true;
}

static void leave(void)
{
    static const char commands[] = "\033[?25h\033[?7h\033[?1049l";
    if (!is_on)
        return;
    is_on = false;
    write_all(STDOUT_FILENO, commands, strlen(commands));
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* Leaves the screen for good, and keeps what was on it in sight. */
static void end_screen(void)
{
    if (is_on) {
        leave();
        draw();
        write_all(STDERR_FILENO, said.bytes, said.length);
    }
    is_over = true;
}

/* ---------------------------------------------------------------- events */

static pid_t script;

static void stop(void)
{
    bool was_on = is_on;
    leave();
    raise(SIGSTOP);
    if (was_on)
        enter();
}

/* A terminal's signals have reached the script, too: what a process sent is passed on. */
static void take_signal(int signals)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != sizeof info || info.ssi_signo == SIGCHLD)
        return;
    if (info.ssi_signo == SIGTSTP)
        stop();
    else if (info.ssi_signo != SIGWINCH) {
        if (info.ssi_code <= 0)
            kill(script, (int)info.ssi_signo);
        end_screen();
    }
    if (is_on)
        draw();
}

/* False: there are no more keys. */
static bool take_keys(void)
{
    char keys[64] = "";
    ssize_t count = read(STDIN_FILENO, keys, sizeof keys - 1);
    for (ssize_t i = 0; i < count; i++) {
        /* An arrow key, for example, is "ESC [ A". */
        if (keys[i] == '\033') {
            i += 1 + (ssize_t)strspn(keys + i + 1, "[O0123456789;?");
            continue;
        }
        static const char orders[] = "otf123";
        const char *at = keys[i] ? strchr(orders, keys[i]) : NULL;
        if (at)
            order = (at - orders) % 3;
        is_paused ^= keys[i] == 'p' || keys[i] == ' ';
        has_help ^= keys[i] == '?';
        if (keys[i] == 'q') {
            kill(script, SIGINT);
            end_screen();
        }
    }
    if (is_on)
        draw();
    return count > 0;
}

/* Reads what there is; false: the other end is closed. */
static bool read_more(int fd, struct text *text)
{
    char bytes[65536];
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        add_text(text, bytes, (size_t)got);
    return got < 0;
}

static bool take_tables(int fd)
{
    static struct text text;
    static unsigned long seconds, samples;
    bool is_open = read_more(fd, &text), is_new = false;
    for (; take_table(&text, &latest); is_new = true) {
        latest.seconds = ++seconds;
        latest.all_samples = samples += latest.samples;
        if (!is_paused) {
            struct table old = shown;
            shown = latest;
            latest = old;
        }
    }
    if (is_new && !is_on && !is_over)
        enter();
    if (is_new && is_on)
        draw();
    return is_open;
}

static bool take_words(int fd)
{
    bool is_open = read_more(fd, &said);
    if (is_on)
        draw();
    else {
        write_all(STDERR_FILENO, said.bytes, said.length);
        said.length = 0;
    }
    return is_open;
}

/* ---------------------------------------------------------------- script */

static char *output; /* the file with the output of the command that is traced */

static void remove_output(void)
{
    unlink(output);
}

char *top_quiet_command(const char *command)
{
    output = format("%s/stap-python.XXXXXX", temporary_folder());
    int fd = mkstemp(output);
    if (fd < 0)
        die(FAILED, "top: %s: cannot make a file for the command's output: %s", output,
            strerror(errno));
    close(fd);
    atexit(remove_output);
    return format("%s >%s 2>&1", command, shell_word(output));
}

static void print_output(void)
{
    char bytes[65536];
    int fd = output ? open(output, O_RDONLY | O_CLOEXEC) : -1;
    for (ssize_t got; fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0;)
        write_all(STDOUT_FILENO, bytes, (size_t)got);
}

static void start(char **stap, int tables, int words, const sigset_t *mask)
{
    script = fork();
    if (script < 0)
        die(FAILED, "cannot start %s: %s", stap[0], strerror(errno));
    if (script > 0)
        return;
    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGINT);
    /* The keys are not for the script. */
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (none >= 0 && dup2(none, STDIN_FILENO) >= 0 && dup2(tables, STDOUT_FILENO) >= 0 &&
        dup2(words, STDERR_FILENO) >= 0)
        exec_program(stap);
    _exit(126);
}

int top_run(const char *of, const char *each_second, char **stap)
{
    enum { SIGNALS, TABLES, WORDS, KEYS, SOURCES };
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCHLD, SIGWINCH};
    int tables[2], words[2], status;
    sigset_t caught, mask;
    sigemptyset(&caught);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&caught, numbers[i]);
    sigprocmask(SIG_BLOCK, &caught, &mask);
    int signals = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0 || pipe2(tables, O_CLOEXEC) != 0 || pipe2(words, O_CLOEXEC) != 0)
        die(FAILED, "top: cannot read the script's table: %s", strerror(errno));
    target = of;
    rate = each_second;
    atexit(leave);
    start(stap, tables[1], words[1], &mask);
    close(tables[1]);
    close(words[1]);
    fcntl(tables[0], F_SETFL, O_NONBLOCK);
    fcntl(words[0], F_SETFL, O_NONBLOCK);
    struct pollfd source[SOURCES] = {[SIGNALS] = {signals, POLLIN, 0},
                                     [TABLES] = {tables[0], POLLIN, 0},
                                     [WORDS] = {words[0], POLLIN, 0},
                                     [KEYS] = {-1, POLLIN, 0}};
    bool has_keys = true;
    while (!child_has_ended(script)) {
        /* Before the screen, what is typed is for the shell. */
        source[KEYS].fd = is_on && has_keys ? STDIN_FILENO : -1;
        poll(source, SOURCES, -1);
        if (source[SIGNALS].revents)
            take_signal(signals);
        if (source[KEYS].revents)
            has_keys = take_keys();
        if (source[TABLES].revents && !take_tables(tables[0]))
            source[TABLES].fd = -1;
        if (source[WORDS].revents && !take_words(words[0]))
            source[WORDS].fd = -1;
    }
    take_tables(tables[0]);
    take_words(words[0]);
    end_screen();
    print_output();
    if (!wait_for_child(script, &status))
        die(FAILED, "waiting for %s: %s", stap[0], strerror(errno));
    return status;
}
