/*
 * `stap-python list`: the interpreters that are here, the processes that run them, and who provides
 * the markers of each.  Nothing of them is run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stap_python.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "native_table.h"
#include "installed.h"
#include "watcher.h"

static const char usage[] =
    "usage: stap-python list [PYTHON|PID|FILE]\n"
    "\n"
    "Shows the markers of an interpreter (a name in PATH, or the path of a program or of a\n"
    "libpython) or of a process, and who provides them; without an argument of every interpreter\n"
    "found. CPython's own markers are\n"
    "\n"
    "  live    they fire as they should\n"
    "  partly  not at each event, or an entry has no return\n"
    "  fires   the marker fires, but SystemTap can't make use of it\n"
    "  dead    the marker is there and never fires\n"
    "  -       absent\n"
    "  ?       the version is not known\n"
    "\n"
    "and python.* in a script has the event from CPython or from the shim, or nobody.\n";

enum { OLDEST = 6, NEWEST = 16 };
enum { FORK_MS = 300 }; /* no fork takes longer, and the shim's thread is away for it */

/* ---------------------------------------------------------------- what is known of versions */

const char *own_marker(const struct interpreter *python, unsigned marker)
{
    if (!(python->file.markers & 1u << marker))
        return "-";
    for (size_t i = 0; i < sizeof native / sizeof *native; i++)
        if (strcmp(native[i].marker, marker_name(marker)) == 0 &&
            python->file.minor >= native[i].first && python->file.minor <= native[i].last)
            return native[i].kind;
    return python->file.minor < 0 ? "?" : "dead";
}

/* The pattern of native.list with a minor version for its %d. */
static char *pattern_for(const char *path, int minor)
{
    const char *mark = strstr(path, "%d");
    return mark ? format("%.*s%d%s", (int)(mark - path), path, minor, mark + 2) : strdup(path);
}

bool tapset_looks_in(const char *path)
{
    for (size_t i = 0; i < sizeof native_paths / sizeof *native_paths; i++)
        for (int minor = OLDEST; minor <= NEWEST; minor++) {
            glob_t found;
            bool is = false;
            char real[PATH_MAX];
            if (fnmatch(pattern_for(rooted(native_paths[i]), minor), path, FNM_PATHNAME) == 0)
                return true;
            /* /usr/bin/python3.11 may be a link. */
            if (glob(pattern_for(rooted(native_paths[i]), minor), 0, NULL, &found) == 0) {
                for (size_t j = 0; j < found.gl_pathc; j++)
                    is |= realpath(found.gl_pathv[j], real) && strcmp(real, path) == 0;
                globfree(&found);
            }
            if (is)
                return true;
        }
    return false;
}

const char *unfit(const struct elf_file *file)
{
    struct elf_file self;
    const char *why;
    if (!file->is_exported)
        return "it does not export CPython's functions";
    if (file->is_static)
        return "it is static";
    if (file->is_musl)
        return "its C library is musl";
    if (elf_read("/proc/self/exe", &self, &why) &&
        (file->wide != self.wide || file->machine != self.machine))
        return "it is for another machine than the shim";
    if (file->minor >= 0 && file->minor < OLDEST)
        return "it is older than CPython 3.6";
    if (file->minor > NEWEST)
        return format("it is newer than CPython 3.%d", NEWEST);
    if (file->free_threaded)
        return "it is free-threaded";
    return NULL;
}

/* ---------------------------------------------------------------- finding them */

/* The libpython that a program needs, where the dynamic linker would find it. */
static char *find_libpython(const char *program, const struct elf_file *file)
{
    char *folders = format(
        "%s:../lib:/usr/local/%s:/usr/local/lib64:/usr/local/lib:/usr/%s:/usr/lib64:/usr/lib",
        file->runpath ? file->runpath : "", MULTIARCH, MULTIARCH);
    char *origin = dirname(strdup(program));
    for (char *folder; (folder = strsep(&folders, ":"));) {
        char *path = NULL;
        const char *rest = strncmp(folder, "$ORIGIN", 7) == 0     ? folder + 7
                           : strncmp(folder, "${ORIGIN}", 9) == 0 ? folder + 9
                                                                  : NULL;
        if (rest)
            path = format("%s%s/%s", origin, rest, file->libpython);
        else if (*folder == '/')
            path = format("%s/%s", rooted(folder), file->libpython);
        else if (*folder)
            path = format("%s/%s/%s", origin, folder, file->libpython);
        if (path && exists(path))
            return path;
    }
    return NULL;
}

static bool identify(struct interpreter *python)
{
    struct stat status;
    char real[PATH_MAX];
    if (stat(python->code, &status) != 0)
        return false;
    python->dev = status.st_dev;
    python->ino = status.st_ino;
    if (realpath(python->code, real))
        python->code = strdup(real);
    return true;
}

bool interpreter_open(const char *path, struct interpreter *found, const char **why)
{
    char real[PATH_MAX];
    const char *file = realpath(path, real) ? real : path;
    *found = (struct interpreter){.path = strdup(path), .code = strdup(file)};
    if (!elf_read(file, &found->file, why))
        return false;
    if (!found->file.is_cpython && found->file.libpython) {
        char *needed = found->file.libpython, *library = find_libpython(file, &found->file);
        *why = format("%s, which it needs, is not found", needed);
        if (!library || !elf_read(library, &found->file, why))
            return false;
        found->code = library;
    }
    *why = "no CPython, and without markers of one";
    if (!found->file.is_cpython && !found->file.entries)
        return false;
    return identify(found);
}

const char *hold_of_python(const char *program)
{
    struct interpreter python;
    glob_t found;
    char real[PATH_MAX];
    const char *why = hold_of_others(program), *none;
    /* A script says nothing of what it starts. */
    if (why || !realpath(program, real) || !interpreter_open(program, &python, &none))
        return why;
    why = hold_of_others(python.code);
    char *library =
        format("%s/lib*/python3.%d*", dirname(dirname(strdup(real))), python.file.minor);
    if (why || glob(library, 0, NULL, &found) != 0)
        return why;
    for (size_t i = 0; i < found.gl_pathc && !why; i++) {
        char *encodings = format("%s/encodings", found.gl_pathv[i]);
        why = hold_of_others(exists(encodings) ? encodings : found.gl_pathv[i]);
    }
    return why;
}

struct interpreters {
    struct interpreter *all;
    size_t count;
};

static void add(struct interpreters *list, const char *path)
{
    struct interpreter found;
    const char *why;
    if (!interpreter_open(path, &found, &why) || !found.file.is_cpython)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (list->all[i].dev == found.dev && list->all[i].ino == found.ino)
            return;
    list->all = reallocarray(list->all, list->count + 1, sizeof *list->all);
    if (!list->all)
        abort();
    list->all[list->count++] = found;
}

static void add_matching(struct interpreters *list, const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        /* Not python3.11-config. */
        if (!strchr(name, '-'))
            add(list, found.gl_pathv[i]);
    }
    globfree(&found);
}

size_t interpreters_find(struct interpreter **found)
{
    struct interpreters list = {0};
    for (size_t i = 0; i < sizeof native_paths / sizeof *native_paths; i++)
        for (int minor = OLDEST; minor <= NEWEST; minor++) {
            /* 3.13's free-threaded build beside the other. */
            add_matching(&list, pattern_for(rooted(native_paths[i]), minor));
            if (native_paths[i][strlen(native_paths[i]) - 1] == 'd')
                add_matching(&list, format("%st", pattern_for(rooted(native_paths[i]), minor)));
        }
    char *path = strdup(getenv("PATH") ? getenv("PATH") : "");
    for (char *folder; path && (folder = strsep(&path, ":"));)
        if (*folder == '/')
            add_matching(&list, format("%s/python3*", rooted(folder)));
    const char *home = getenv("PYENV_ROOT");
    if (!home && getenv("HOME"))
        home = format("%s/.pyenv", getenv("HOME"));
    if (home)
        add_matching(&list, format("%s/versions/*/bin/python3", rooted(home)));
    add_matching(&list, rooted("/opt/*/bin/python3"));
    *found = list.all;
    return list.count;
}

char *enabled_by(const char *python)
{
    static const char *const patterns[] = {"%s/lib*/python3.%d*/*-packages/python_stap.pth",
                                           "%s/local/lib*/python3.%d*/*-packages/python_stap.pth"};
    struct interpreter found;
    const char *why;
    char real[PATH_MAX];
    if (!realpath(python, real) || !interpreter_open(python, &found, &why))
        return NULL;
    /* A virtual environment has a link to the program. */
    for (int by_link = 0; by_link < 2; by_link++)
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
            glob_t files;
            char *prefix = dirname(dirname(strdup(by_link ? python : real)));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            char *pattern = format(patterns[i], prefix, found.file.minor);
#pragma GCC diagnostic pop
            if (glob(pattern, 0, NULL, &files) == 0)
                return files.gl_pathv[0];
        }
    return NULL;
}

/* ---------------------------------------------------------------- a process */

pid_t pid_of(const char *word)
{
    char *end;
    errno = 0;
    long number = strtol(word, &end, 10);
    return isdigit((unsigned char)*word) && !*end && !errno && number > 0 && number <= INT_MAX
               ? (pid_t)number
               : 0;
}

char *field_of(const char *text, const char *name)
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

unsigned long long process_start(pid_t pid)
{
    char *text = contents(rooted(format("/proc/%d/stat", pid)), 4096);
    char *field = text ? strrchr(text, ')') : NULL;
    unsigned long long start = 0;
    /* The 22nd field; the second, a name, may hold anything but ends with the last bracket. */
    for (int i = 0; field && i < 20; i++)
        field = strchr(field + 1, ' ');
    if (field)
        sscanf(field, "%llu", &start);
    free(text);
    return start;
}

struct mapping {
    unsigned long start, end, offset;
    char name[PATH_MAX];
};

static bool next_mapping(char **text, struct mapping *mapping)
{
    char *line;
    while ((line = strsep(text, "\n"))) {
        int at = 0;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &mapping->start, &mapping->end,
                   &mapping->offset, &at) == 3 &&
            at && line[at] == '/') {
            snprintf(mapping->name, sizeof mapping->name, "%s", line + at);
            return true;
        }
    }
    return false;
}

static const char *name_in(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* How we open the file of a mapping, which may be in another root or be deleted. */
static char *file_of(pid_t pid, const struct mapping *mapping)
{
    char *path = rooted("/")[1]
                     ? NULL
                     : format("/proc/%d/map_files/%lx-%lx", pid, mapping->start, mapping->end);
    if (path && access(path, R_OK) == 0)
        return path;
    return format("%s", rooted(format("/proc/%d/root%s", pid, mapping->name)));
}

/* Where a mapped file's addresses begin in the process. */
static unsigned long bias_of(const char *file, const struct mapping *mapping)
{
    long address = elf_address_of(file, mapping->offset);
    return address < 0 ? 0 : mapping->start - (unsigned long)address;
}

/* Ours by its user, and yet not ours to look into. */
static bool is_barred(pid_t pid)
{
    unsigned user;
    char *status = contents(rooted(format("/proc/%d/status", pid)), 65536);
    char *users = status ? field_of(status, "Uid") : NULL;
    return users && sscanf(users, "%*u %u", &user) == 1 && user == geteuid();
}

bool process_open(pid_t pid, struct process *process, const char **why)
{
    struct mapping mapping;
    *process = (struct process){.pid = pid, .start = process_start(pid)};
    *why = "there is no such process";
    if (!process->start)
        return false;
    *why = is_barred(pid) ? "the kernel keeps you out of it: it has more rights than its "
                            "user (set-user-ID, capabilities), or has asked for that (prctl())"
                          : "its maps can't be read: is it yours?";
    char *maps = contents(rooted(format("/proc/%d/maps", pid)), 16 << 20), *text = maps;
    if (!text)
        return false;
    /* Also a zombie, or a thread of the kernel. */
    *why = "no CPython runs in it";
    char last[PATH_MAX] = "", program[PATH_MAX] = "";
    const char *why_not;
    ssize_t length = readlink(rooted(format("/proc/%d/exe", pid)), program, sizeof program - 1);
    if (length > 0)
        program[length] = '\0';
    while (next_mapping(&text, &mapping)) {
        if (strcmp(mapping.name, last) == 0)
            continue;
        strcpy(last, mapping.name);
        const char *name = name_in(mapping.name);
        if (strncmp(name, "libpython-stap.so", 17) == 0 || strncmp(name, "python_stap.", 12) == 0)
            process->shim = strdup(mapping.name);
        else if (strncmp(name, "libc.so.6", 9) == 0 || strncmp(name, "libdl.so.2", 10) == 0 ||
                 strncmp(name, "libc-2.", 7) == 0 || strncmp(name, "libdl-2.", 8) == 0) {
            char *file = file_of(pid, &mapping);
            if (elf_symbol(file, "dlopen")) {
                process->libc = file;
                process->libc_name = strdup(mapping.name);
                process->libc_bias = bias_of(file, &mapping);
            }
        } else if (strncmp(name, "libpython3.", 11) == 0 || strcmp(mapping.name, program) == 0) {
            char *file = file_of(pid, &mapping);
            struct elf_file elf;
            if (!elf_read(file, &elf, &why_not) || !elf.is_cpython)
                continue;
            /* file may say less of the version than the name. */
            if (elf.minor < 0)
                sscanf(strstr(name, "python3.") ? strstr(name, "python3.") : "", "python3.%2d",
                       &elf.minor);
            process->python = (struct interpreter){strdup(program), file, elf, 0, 0};
            process->code_name = strdup(mapping.name);
        }
    }
    free(maps);
    return process->python.code != NULL;
}

/* ---------------------------------------------------------------- what is printed */

/* The shim's markers, as its own file says. */
static unsigned shim_markers(void)
{
    struct elf_file shim;
    const char *why;
    return elf_read(rooted(shim_file()), &shim, &why) ? shim.markers : 0;
}

static void print_markers(const struct interpreter *python, const char *code_name, unsigned shims)
{
    bool looked_in = tapset_looks_in(code_name);
    printf("  %-26s %-14s %-9s %s\n", "marker", "CPython's own", "the shim",
           "python.* has it from");
    for (unsigned i = 0; marker_name(i); i++) {
        const char *own = own_marker(python, i);
        bool has = shims & 1u << i;
        const char *from = has ? "the shim" : "nobody";
        if (looked_in && (strcmp(own, "live") == 0 || (!has && strcmp(own, "partly") == 0)))
            from = "CPython";
        printf("  %-26s %-14s %-9s %s\n", marker_name(i), own, has ? "yes" : "-", from);
    }
}

static char *version_text(const struct elf_file *file)
{
    char *version = file->minor < 0 ? "of unknown version" : format("3.%d", file->minor);
    return format("CPython %s%s", version, file->free_threaded ? ", free-threaded" : "");
}

static void print_interpreter(const struct interpreter *python)
{
    const char *reason = python->file.is_cpython ? unfit(&python->file) : NULL;
    char *enabled = enabled_by(python->path);
    printf("%s: %s\n", printable(python->path),
           python->file.is_cpython ? version_text(&python->file)
                                   : "no CPython, but markers of provider python");
    if (strcmp(python->path, python->code) != 0)
        printf("  its code: %s\n", printable(python->code));
    if (reason)
        printf("  the shim does nothing in it: %s\n", reason);
    else if (enabled)
        printf("  the shim: loaded at each start, by %s\n", printable(enabled));
    else if (!exists(rooted(shim_file())))
        printf("  the shim is not there: %s\n", shim_file());
    else if (python->file.is_cpython)
        printf("  the shim: where it is started with stap-python run\n");
    print_markers(python, python->code, reason || !python->file.is_cpython ? 0 : shim_markers());
}

static bool has_watcher(pid_t pid)
{
    glob_t names;
    bool found = false;
    if (glob(rooted(format("/proc/%d/task/*/comm", pid)), GLOB_NOSORT, NULL, &names) != 0)
        return false;
    for (size_t i = 0; i < names.gl_pathc && !found; i++) {
        char *name = contents(names.gl_pathv[i], 64);
        found = name && strcmp(name, WATCHER_NAME "\n") == 0;
    }
    globfree(&names);
    return found;
}

bool process_is_active(const struct process *process, long ms)
{
    for (long end = now_ms() + ms; !has_watcher(process->pid); sleep_ms(10))
        if (now_ms() > end || process_start(process->pid) != process->start)
            return false;
    return true;
}

static void print_process(const struct process *process)
{
    const struct elf_file *file = &process->python.file;
    const char *reason = unfit(file);
    bool active = !reason && process->shim && process_is_active(process, FORK_MS);
    printf("%d: %s, %s\n", process->pid, printable(process->python.path), version_text(file));
    if (strcmp(process->python.path, process->code_name) != 0)
        printf("  its code: %s\n", printable(process->code_name));
    if (reason)
        printf("  the shim does nothing in it: %s\n", reason);
    else if (active)
        printf("  the shim: active, %s\n", printable(process->shim));
    else if (process->shim)
        printf("  the shim: loaded and not active: no Python code has run since, or PYTHON_STAP is "
               "off: %s\n",
               printable(process->shim));
    else
        printf("  the shim: not loaded; stap-python attach %d loads it\n", process->pid);
    print_markers(&process->python, process->code_name, active ? shim_markers() : 0);
}

int list_main(char **arguments)
{
    struct interpreter python, *all;
    struct process process;
    const char *why;
    help_if_asked(arguments, usage);
    const char *word = arguments[0];
    if (word && (word[0] == '-' || !*word || arguments[1]))
        die(USAGE, "list: one interpreter, PID or file (see stap-python list --help)");
    if (!word) {
        size_t count = interpreters_find(&all);
        for (size_t i = 0; i < count; i++) {
            if (i)
                putchar('\n');
            print_interpreter(&all[i]);
        }
        if (!count)
            die(FAILED, "no CPython is found here: see stap-python doctor");
        return 0;
    }
    if (pid_of(word)) {
        if (!process_open(pid_of(word), &process, &why))
            die(FAILED, "%s: %s", word, why);
        print_process(&process);
        return 0;
    }
    const char *path = strchr(word, '/') || exists(word) ? word : program_in_path(word);
    if (!path)
        die(FAILED, "%s: no such file, and none of this name in PATH", word);
    if (!interpreter_open(path, &python, &why))
        die(FAILED, "%s: %s", path, why);
    print_interpreter(&python);
    return 0;
}
