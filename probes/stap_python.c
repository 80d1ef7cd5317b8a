/*
 * stap-python, the launcher: starts programs with the shim and scripts on them; says what stands
 * between a machine and its first probe.
 *
 * Here: the words of the command line, `run`, the scripts, and what all subcommands use.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stap_python.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "installed.h"

static const char usage[] =
    "usage: stap-python COMMAND [ARGUMENTS...]\n"
    "       stap-python SCRIPT [STAP'S ARGUMENTS...]\n"
    "\n"
    "  run [--] CMD...         start CMD with the shim, which gives its Python the markers\n"
    "  doctor                  say what stands between this machine and a first probe\n"
    "  list [PYTHON|PID|FILE]  show the markers of an interpreter, and who provides them\n"
    "  attach PID              load the shim into a Python that runs\n"
    "  enable [PYTHON]         let every start of an interpreter load the shim; disable\n"
    "  disable [PYTHON]        ends that\n"
    "  --list-scripts          the scripts' names, and what they show\n"
    "  --help, --version       each command has a --help too\n"
    "\n"
    "A SCRIPT is run by stap with the arguments that follow; what its -c starts has the shim.\n"
    "\n"
    "environment: STAP is the stap to run.\n";

static const char run_usage[] =
    "usage: stap-python run [--] CMD...\n"
    "\n"
    "Starts CMD with the shim preloaded, so that each Python that it runs has the markers.\n"
    "What is in LD_PRELOAD stays there. The exit status is CMD's; 127 if there is no such\n"
    "program, 126 if it can't be started.\n";

const char *source_tree;

/* ---------------------------------------------------------------- what all use */

void die(int status, const char *text, ...)
{
    va_list values;
    char *line;
    va_start(values, text);
    fflush(stdout);
    if (vasprintf(&line, text, values) < 0)
        abort();
    fprintf(stderr, "stap-python: %s\n", printable(line));
    va_end(values);
    exit(status);
}

/* With that status, if all that was printed is where it should be. */
static void finish(int status) __attribute__((noreturn));

static void finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        die(FAILED, "stdout: %s", strerror(errno));
    exit(status);
}

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

/* The length of the UTF-8 character at text, 0 where there is none. */
static size_t character_at(const unsigned char *text)
{
    size_t length = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if (text[i] >> 6 != 2)
            return 0;
    return *text < 0xf5 ? length : 0;
}

char *printable(const char *text)
{
    char *result = malloc(4 * strlen(text) + 1), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    while (*at) {
        size_t length = character_at(at);
        /* C0, DEL, and C1 as UTF-8 has them. */
        bool escaped = !length || *at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0);
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

const char *rooted(const char *path)
{
    const char *root = secure_getenv("STAP_PYTHON_ROOT");
    return root && *root && *path == '/' ? format("%s%s", root, path) : path;
}

bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int open_regular(const char *path, struct stat *status)
{
    char link[64];
    int fd = -1, place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    errno = EINVAL;
    if (fstat(place, status) == 0 && S_ISREG(status->st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", place);
        fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    int error = errno;
    close(place);
    errno = error;
    return fd;
}

char *contents(const char *path, size_t limit)
{
    struct stat status;
    int fd = open_regular(path, &status);
    if (fd < 0)
        return NULL;
    char *text = malloc(limit + 1);
    size_t length = 0;
    ssize_t got = 0;
    while (text && length < limit && (got = read(fd, text + length, limit - length)) > 0)
        length += (size_t)got;
    close(fd);
    if (!text || got < 0) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    /* limit may be many times the length; what is asked for in bytes is kept. */
    char *fitting = limit < 4096 ? NULL : realloc(text, length + 1);
    return fitting ? fitting : text;
}

long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

char *output_of(const char *const *arguments, int seconds, int *status)
{
    enum { LIMIT = 65536 };
    int ends[2];
    char *text = calloc(1, LIMIT + 1);
    *status = -1;
    if (!text || pipe2(ends, O_CLOEXEC) != 0)
        return "";
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDONLY);
        setpgid(0, 0);
        if (null < 0 || dup2(null, 0) < 0 || dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0)
            _exit(127);
        execvp(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    close(ends[1]);
    size_t length = 0;
    long end = now_ms() + seconds * 1000L, left;
    bool ended = pid < 0;
    while (!ended && (left = end - now_ms()) > 0) {
        struct pollfd ready = {ends[0], POLLIN, 0};
        if (poll(&ready, 1, (int)left) <= 0)
            continue;
        char rest[4096];
        ssize_t got = read(ends[0], rest, sizeof rest);
        ended = got <= 0;
        size_t kept = got > 0 && (size_t)got < LIMIT - length ? (size_t)got : LIMIT - length;
        if (got > 0) {
            memcpy(text + length, rest, kept);
            length += kept;
        }
    }
    close(ends[0]);
    if (pid > 0) {
        if (!ended)
            kill(-pid, SIGKILL);
        int result;
        if (waitpid(pid, &result, 0) == pid && ended)
            *status = result;
    }
    return text;
}

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

static bool is_among(uid_t user, const uid_t *users, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (user == users[i])
            return true;
    return false;
}

const char *hold_in_root(const char *root, const char *path, const uid_t *users, size_t count,
                         char **file)
{
    enum { LINKS = 40 };
    char *rest = format("/.%s", path), *done = strdup("/"), target[PATH_MAX];
    /* Others may have made what is in the folder: a hard link to any file of root's. */
    bool shared = false;
    for (int links = 0; links < LINKS;) {
        struct stat status;
        rest += strspn(rest, "/");
        size_t length = strcspn(rest, "/");
        if (length == 2 && strncmp(rest, "..", 2) == 0)
            strcpy(strrchr(done, '/'), strchr(done + 1, '/') ? "" : "/");
        else if (length && (length != 1 || *rest != '.'))
            done = format("%s/%.*s", done[1] ? done : "", (int)length, rest);
        rest += length;
        *file = format("%s%s", root, done);
        if (lstat(*file, &status) != 0)
            return format("%s: %s", done, strerror(errno));
        if (!is_among(status.st_uid, users, count))
            return *root ? format("%s is of another user (id %u)", done, status.st_uid)
                         : format("it is of another user (id %u): run this as that user",
                                  status.st_uid);
        if (shared && !S_ISDIR(status.st_mode))
            return format("%s may be another user's: its folder is open to all", done);
        if (S_ISLNK(status.st_mode)) {
            ssize_t size = readlink(*file, target, sizeof target - 1);
            target[size < 0 ? 0 : size] = '\0';
            rest = format("%s/%s", target, rest);
            strcpy(strrchr(done, '/'), strchr(done + 1, '/') ? "" : "/");
            if (*target == '/')
                strcpy(done, "/");
            links++;
            continue;
        }
        shared = status.st_mode & (S_IWGRP | S_IWOTH);
        if (shared && !(S_ISDIR(status.st_mode) && status.st_mode & S_ISVTX))
            return format("others than root may change %s: chmod go-w mends that", done);
        if (!rest[strspn(rest, "/")])
            return NULL;
    }
    return strerror(ELOOP);
}

const char *hold_of_others(const char *path)
{
    static const uid_t root;
    struct stat found, named;
    char *file;
    const char *why = hold_in_root(
        "", *path == '/' ? path : format("/%s/%s", getcwd(NULL, 0), path), &root, 1, &file);
    /* The links of /proc/PID lead elsewhere than they say. */
    if (!why && (stat(file, &found) != 0 || stat(path, &named) != 0 ||
                 found.st_dev != named.st_dev || found.st_ino != named.st_ino))
        why = "it can't be told whose it is: give its path";
    return why;
}

/* In a checkout this program is in its folder build. */
static void find_source_tree(void)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    /* Its caller may have put it there by a hard link. */
    if (length <= 0 || getauxval(AT_SECURE))
        return;
    self[length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(self, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    if (exists(format("%s/probes/python.d", self)) && exists(format("%s/build/stap-python", self)))
        source_tree = strdup(self);
}

/* ---------------------------------------------------------------- the shim */

const char *shim_preload(void)
{
    return source_tree ? format("%s/build/libpython-stap.so.0", source_tree) : SHIM_PATH;
}

/* $LIB is lib64 for ld.so, or lib, or Debian's lib/x86_64-linux-gnu; where none has it, by what the
 * compiler says. */
const char *shim_file(void)
{
    static const char *const folders[] = {MULTIARCH, "lib64", "lib"};
    const char *path = shim_preload(), *lib = strstr(path, "$LIB");
    if (!lib)
        return path;
    char *file, *first = NULL;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        file = format("%.*s%s%s", (int)(lib - path), path, folders[i], lib + strlen("$LIB"));
        if (exists(rooted(file)))
            return file;
        first = first ? first : file;
    }
    return first;
}

char *preload_value(void)
{
    const char *shim = shim_preload(), *others = getenv("LD_PRELOAD");
    size_t length = strlen(shim);
    if (!exists(shim_file()))
        die(FAILED, "the shim is not there: %s: %s", shim_file(),
            source_tree ? "run make" : "install systemtap-cpython anew");
    if (strpbrk(shim, " :"))
        die(FAILED, "%s: LD_PRELOAD takes no path with a space or colon: move the checkout", shim);
    if (!others || !*others)
        return strdup(shim);
    if (strncmp(others, shim, length) == 0 && strchr(" :", others[length]))
        return strdup(others);
    return format("%s:%s", shim, others);
}

/* ---------------------------------------------------------------- run */

void help_if_asked(char **arguments, const char *text)
{
    if (!arguments[0] || (strcmp(arguments[0], "--help") != 0 && strcmp(arguments[0], "-h") != 0))
        return;
    fputs(text, stdout);
    finish(0);
}

static void run_program(char **command)
{
    execvp(command[0], command);
    int status = errno == ENOENT ? 127 : 126;
    die(status, "%s: %s", command[0], strerror(errno));
}

static int run_main(char **arguments)
{
    help_if_asked(arguments, run_usage);
    if (arguments[0] && strcmp(arguments[0], "--") == 0)
        arguments++;
    else if (arguments[0] && arguments[0][0] == '-')
        die(USAGE, "run: unknown option '%s' (see stap-python run --help)", arguments[0]);
    if (!arguments[0])
        die(USAGE, "run: which command? (see stap-python run --help)");
    setenv("LD_PRELOAD", preload_value(), 1);
    run_program(arguments);
    return FAILED;
}

/* ---------------------------------------------------------------- the scripts */

static const char *scripts_folder(void)
{
    return source_tree ? format("%s/scripts", source_tree) : SCRIPTS_DIR;
}

static int is_script(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".stp") == 0;
}

static char *title_of(const char *name)
{
    char *text = contents(format("%s/%s.meta", scripts_folder(), name), 65536);
    if (!text || strncmp(text, "title: ", 7) != 0)
        return "";
    text += 7;
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static int list_scripts(void)
{
    struct dirent **entries;
    int count = scandir(scripts_folder(), &entries, is_script, alphasort);
    if (count <= 0)
        die(FAILED, "there are no scripts in %s", scripts_folder());
    for (int i = 0; i < count; i++) {
        char *name = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - 4);
        printf("%-12s %s\n", name, title_of(name));
    }
    return 0;
}

/* The path of a script by its name, with or without .stp; NULL: there is none. */
static char *script_file(const char *word)
{
    size_t length = strlen(word);
    if (strchr(word, '/') || word[0] == '.' || word[0] == '-')
        return NULL;
    bool whole = length > 4 && strcmp(word + length - 4, ".stp") == 0;
    char *path = format("%s/%s%s", scripts_folder(), word, whole ? "" : ".stp");
    return exists(path) ? path : NULL;
}

/* The word for a shell, in single quotes. */
static char *quoted(const char *word)
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

/* A -c command of stap's, with the shim.  stap has a shell run what is more than words. */
static char *with_shim(const char *command)
{
    char *preload = quoted(format("LD_PRELOAD=%s", preload_value()));
    if (strpbrk(command, "|&;<>()`\n"))
        return format("env %s sh -c %s", preload, quoted(command));
    return format("env %s %s", preload, command);
}

/* The letters of stap's options that have a value, in the same word or the next. */
static const char with_value[] = "aBcdDeEGIlLmopRrsSTx";

/* Puts the shim before the command of -c. */
static void add_shim(char **arguments)
{
    for (char **argument = arguments; *argument && strcmp(*argument, "--") != 0; argument++) {
        const char *word = *argument;
        if (word[0] != '-' || word[1] == '-')
            continue;
        size_t at = 1 + strcspn(word + 1, with_value);
        if (!word[at])
            continue;
        bool next = !word[at + 1];
        if (next && !argument[1])
            return;
        if (word[at] == 'c' && next)
            argument[1] = with_shim(argument[1]);
        else if (word[at] == 'c')
            *argument = format("%.*s%s", (int)at + 1, word, with_shim(word + at + 1));
        argument += next;
    }
}

static int script_main(const char *script, char **arguments)
{
    const char *stap = secure_getenv("STAP");
    stap = stap && *stap ? stap : "stap";
    size_t count = 0;
    while (arguments[count])
        count++;
    char **command = calloc(count + 3, sizeof *command);
    if (!command)
        abort();
    add_shim(arguments);
    command[0] = strdup(stap);
    command[1] = strdup(script);
    memcpy(command + 2, arguments, count * sizeof *arguments);
    if (source_tree)
        setenv("SYSTEMTAP_TAPSET", format("%s/build/tapset", source_tree), 0);
    if (!program_in_path(stap))
        die(127, "%s is not there: see stap-python doctor", stap);
    run_program(command);
    return FAILED;
}

/* ---------------------------------------------------------------- the command line */

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        int (*main)(char **);
    } commands[] = {{"run", run_main},       {"doctor", doctor_main}, {"list", list_main},
                    {"attach", attach_main}, {"enable", enable_main}, {"disable", disable_main}};
    (void)count;
    find_source_tree();
    if (!arguments[0] || !arguments[1])
        die(USAGE, "which command? (see stap-python --help)");
    const char *word = *++arguments;
    help_if_asked(arguments, usage);
    if (strcmp(word, "--version") == 0) {
        puts("stap-python " PACKAGE_VERSION);
        finish(0);
    }
    if (strcmp(word, "--list-scripts") == 0)
        finish(list_scripts());
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(word, commands[i].name) == 0)
            finish(commands[i].main(arguments + 1));
    char *script = script_file(word);
    if (script)
        finish(script_main(script, arguments + 1));
    die(USAGE, "'%s' is neither a command nor a script (see stap-python --help)", word);
}
