/*
 * SPDX-License-Identifier: MIT
 */

#include "lib/processes.h"

#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"
#include "shared/filter_page.h"
#include "shared/offsets_page.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- process */

pid_t parse_pid(const char *word)
{
    char *end;
    errno = 0;
    long number = strtol(word, &end, 10);
    return isdigit((unsigned char)*word) && !*end && !errno && number > 0 && number <= INT_MAX
               ? (pid_t)number
               : 0;
}

char *proc_file(pid_t pid, const char *name)
{
    char *text = read_file(under_root(format("/proc/%d/%s", pid, name)), 65536);
    return text ? text : "";
}

/* Reads /proc/PID/FILE, a stat file, from this field on; "" if that can't be read. */
static void read_stat(pid_t pid, const char *file, int field, char *to, size_t size)
{
    char *text = read_file(under_root(format("/proc/%d/%s", pid, file)), 4096);
    /* The second field, the name in parentheses, may contain any character. */
    char *at = text ? strrchr(text, ')') : NULL;
    for (int i = 2; at && i < field; i++)
        at = strchr(at + 1, ' ');
    snprintf(to, size, "%s", at ? at + 1 : "");
    free(text);
}

unsigned long long process_start(pid_t pid)
{
    char start[32];
    read_stat(pid, "stat", 22, start, sizeof start);
    return strtoull(start, NULL, 10);
}

char thread_state(pid_t pid, pid_t tid)
{
    char state[2];
    read_stat(pid, format("task/%d/stat", tid), 3, state, sizeof state);
    return strchr("ZXx", *state) ? '\0' : *state;
}

/* The processor time of the process, in milliseconds. */
static long long processor_ms(pid_t pid)
{
    unsigned long long user = 0, system = 0;
    char times[64];
    read_stat(pid, "stat", 14, times, sizeof times);
    sscanf(times, "%llu %llu", &user, &system);
    return (long long)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

bool process_has_ended(const struct process *process)
{
    char program[2];
    return process_start(process->pid) != process->start ||
           readlink(under_root(format("/proc/%d/exe", process->pid)), program, sizeof program) < 0;
}

/* ---------------------------------------------------------------- maps */

struct mapping {
    unsigned long start, end, offset, inode;
    unsigned device[2];
    char rights[5];
    char name[PATH_MAX]; /* "": none */
};

/* The next mapping, from the lines of /proc/PID/maps.  Cuts off the line first: sscanf() looks for
 * the end of all of its text, and a program may have 65,530 mappings. */
static bool next_mapping(char **text, struct mapping *mapping)
{
    char *line;
    while ((line = strsep(text, "\n"))) {
        int at = 0;
        if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &mapping->start, &mapping->end,
                   mapping->rights, &mapping->offset, &mapping->device[0], &mapping->device[1],
                   &mapping->inode, &at) == 7 &&
            at) {
            snprintf(mapping->name, sizeof mapping->name, "%s", line + at);
            return true;
        }
    }
    return false;
}

/* The inode does not tell: who serves a file of FUSE chooses its number, even 0. */
static bool is_file(const struct mapping *mapping)
{
    return mapping->device[0] || mapping->device[1] || mapping->inode;
}

static bool is_page_of_shim(unsigned long start, unsigned long end)
{
    for (int i = 0; i < FILTER_ADDRESSES; i++)
        if (start <= filter_addresses[i] && filter_addresses[i] < end)
            return true;
    return false;
}

/* The lines of /proc/PID/maps; NULL: they can't be read. */
static char *read_lines_of_maps(pid_t pid)
{
    return read_file(under_root(format("/proc/%d/maps", pid)), 16 << 20);
}

/* Whether the mapping has the shim's page (shared/filter_page.h).  read_only: as a detached shim
 * leaves it, a mapping of its own.  At the page's other addresses the program may have a mapping: a
 * large heap, a sanitizer's shadow. */
static bool has_page(const struct mapping *mapping, bool read_only)
{
    return !is_file(mapping) &&
           (read_only ? is_page_of_shim(mapping->start, mapping->start + 1) &&
                            strcmp(mapping->rights, "r--p") == 0
                      : is_page_of_shim(mapping->start, mapping->end) && *mapping->rights == 'r');
}

/* The kernel adds the mark to the name of a file that was deleted, or over which another file was
 * renamed, as updates do. */
static bool is_deleted(const char *name)
{
    static const char mark[] = " (deleted)";
    size_t length = strlen(name);
    return length > sizeof mark && strcmp(name + length - (sizeof mark - 1), mark) == 0;
}

/* The path by which we can open a mapping's file, even in another root.  A deleted file has a path
 * only for root, or if it is the process's program; else NULL.  program: its name in the maps. */
static char *file_of(pid_t pid, const struct mapping *mapping, const char *program)
{
    char *path = under_root("/")[1]
                     ? NULL
                     : format("/proc/%d/map_files/%lx-%lx", pid, mapping->start, mapping->end);
    if (path && access(path, R_OK) == 0)
        return path;
    path = format("%s", under_root(format("/proc/%d/exe", pid)));
    if (strcmp(mapping->name, program) == 0 && access(path, R_OK) == 0)
        return path;
    if (is_deleted(mapping->name))
        return NULL;
    return format("%s", under_root(format("/proc/%d/root%s", pid, mapping->name)));
}

/* Sets name, of size bytes, to the program's path as the maps have it: with \012 for a newline.
 * "": it is unknown, or too long. */
static void program_name(const char *exe, char *name, size_t size)
{
    char path[PATH_MAX];
    ssize_t length = readlink(exe, path, sizeof path);
    size_t end = 0;
    for (ssize_t i = 0; i < length && end + strlen("\\012") < size; i++)
        end += (size_t)sprintf(name + end, path[i] == '\n' ? "\\012" : "%c", path[i]);
    name[end] = '\0';
}

/* The state of reading a process's maps. */
struct reading {
    struct process *process;
    char program[PATH_MAX]; /* the program's name in the maps; "": unknown */
    struct elf_file own;    /* the program's file, if it could be read */
    bool has_own;           /* the program itself is a CPython, and exports its functions */
    bool has_needed;        /* the libpython that the program needs was found */
    const char *gone;       /* the name of a libpython that has no path for us any more */
};

static void note_libc(struct reading *reading, const struct mapping *mapping)
{
    struct process *process = reading->process;
    char *file = file_of(process->pid, mapping, reading->program);
    if (!file)
        process->libc_is_gone = true;
    if (!file || !elf_symbol(file, "dlopen"))
        return;
    long address = elf_mapping_to_address(file, mapping->offset, mapping->rights[2] == 'x');
    process->libc = file;
    process->libc_name = strdup(mapping->name);
    process->libc_bias = address < 0 ? 0 : mapping->start - (unsigned long)address;
}

/* If several CPythons are mapped, the one runs whose symbols the dynamic linker finds first: the
 * program's own, else that of the libpython that the program needs.  Else it is taken to be the one
 * with the highest address, as the kernel places the first dlopen() above the others. */
static void note_python(struct reading *reading, const struct mapping *mapping)
{
    struct process *process = reading->process;
    const char *why, *name = strrchr(mapping->name, '/') + 1, *needed = reading->own.libpython;
    bool is_program = strcmp(mapping->name, reading->program) == 0;
    bool is_needed = needed && strncmp(name, needed, strlen(needed)) == 0;
    char *file = file_of(process->pid, mapping, reading->program);
    struct elf_file elf = reading->own;
    if (!file && !is_program)
        reading->gone = strdup(name);
    if (!file || reading->has_own || (!is_program && !elf_read(file, &elf, &why)))
        return;
    if (elf.other && !process->python.code)
        process->python = (struct interpreter){.path = strdup(reading->program), .file = elf};
    if (!elf.is_cpython)
        return;
    if (is_program)
        reading->has_own = elf.is_exported;
    else if (reading->has_needed)
        return;
    else
        reading->has_needed = is_needed;
    process->pythons = reading->has_own || reading->has_needed ? 1 : process->pythons + 1;
    /* elf_read() finds no version in a path of map_files: use the name in the maps. */
    if (elf.minor < 0)
        sscanf(strstr(name, "python3.") ? strstr(name, "python3.") : "", "python3.%2d", &elf.minor);
    process->python = (struct interpreter){strdup(reading->program), file, elf, 0, 0};
    process->code_name = strdup(mapping->name);
}

static bool is_where_tracers_look(const char *path)
{
    struct stat ours, its;
    return stat(under_root(shim_file()), &ours) == 0 && stat(path, &its) == 0 &&
           ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

/* Called for executable mappings: a program may map the shim's file as data, too. */
static void note_shim(struct reading *reading, const struct mapping *mapping)
{
    struct process *process = reading->process;
    process->shim = strdup(mapping->name);
    process->shims++;
    process->shim_code = file_of(process->pid, mapping, reading->program);
    long address =
        process->shim_code ? elf_mapping_to_address(process->shim_code, mapping->offset, true) : -1;
    process->shim_start = mapping->start - (address < 0 ? mapping->offset : (unsigned long)address);
    bool ours = is_where_tracers_look(process->shim_code ? process->shim_code : mapping->name),
         sees_ours = process_shares_our_mounts(process);
    process->has_other_shim = is_deleted(mapping->name) || (sees_ours && !ours);
    process->has_copy = !process->has_other_shim && !ours && process->shim_code;
}

static bool is_shims_name(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    return strncmp(name, "libpython-stap.so", 17) == 0 || strncmp(name, "python_stap.", 12) == 0;
}

/* Called for the first mapping of each file but the shim.  Whether it is a file that was read. */
static bool note_mapping(struct reading *reading, const struct mapping *mapping)
{
    const char *name = strrchr(mapping->name, '/') + 1;
    if (strncmp(name, "libc.so.6", 9) == 0 || strncmp(name, "libdl.so.2", 10) == 0 ||
        strncmp(name, "libc-2.", 7) == 0 || strncmp(name, "libdl-2.", 8) == 0)
        note_libc(reading, mapping);
    else if (strncmp(name, "libpython3.", 11) == 0 || strncmp(name, "libpypy", 7) == 0 ||
             strcmp(mapping->name, reading->program) == 0)
        note_python(reading, mapping);
    else
        return false;
    return true;
}

static bool is_our_users(pid_t pid)
{
    unsigned user;
    char *users = status_field(proc_file(pid, "status"), "Uid");
    return users && sscanf(users, "%*u %u", &user) == 1 && user == geteuid();
}

/* Of a process that maps thousands of files with these names the first ones are read: each may have
 * a gigabyte. */
enum { FILES_MAX = 32 };

static void read_maps(struct process *process, char *maps, struct reading *reading)
{
    struct mapping mapping;
    char last[PATH_MAX] = "";
    const char *exe = under_root(format("/proc/%d/exe", process->pid)), *why;
    reading->process = process;
    program_name(exe, reading->program, sizeof reading->program);
    if (*reading->program)
        elf_read(exe, &reading->own, &why);
    for (int files = 0; next_mapping(&maps, &mapping);) {
        process->has_pages |= has_page(&mapping, false);
        if (*mapping.name != '/' || files >= FILES_MAX)
            continue;
        bool is_first = strcmp(mapping.name, last) != 0;
        strcpy(last, mapping.name);
        if (is_shims_name(mapping.name) && mapping.rights[2] == 'x') {
            note_shim(reading, &mapping);
            files++;
        } else if (is_first && !is_shims_name(mapping.name))
            files += note_mapping(reading, &mapping);
    }
}

bool process_open(pid_t pid, struct process *process, const char **why)
{
    *process = (struct process){.pid = pid, .start = process_start(pid)};
    *why = "no such process";
    if (!process->start)
        return false;
    *why = is_our_users(pid)
               ? "the kernel denies access: it has more rights than its user (set-user-ID, "
                 "capabilities), or has asked for that (prctl()): use sudo"
               : "cannot read its maps: run this as its user or root";
    char *maps = read_lines_of_maps(pid);
    process->is_hidden = !maps && process_start(pid) == process->start;
    if (!maps)
        return false;
    struct reading reading = {0};
    read_maps(process, maps, &reading);
    free(maps);
    /* Also for a zombie, or a kernel thread. */
    *why = "it does not run CPython";
    if (!process->python.code && reading.gone) {
        process->is_hidden = true;
        *why = format("its %.*s was replaced or deleted while it runs, and only root can read what "
                      "it has of that: run this as root, or restart it",
                      (int)strcspn(reading.gone, " "), printable(reading.gone));
    }
    if (!process->python.code && process->python.file.other)
        *why = format("it runs %s, not CPython: nothing can be seen of it",
                      process->python.file.other);
    return process->python.code != NULL;
}

bool process_has_changed(const struct process *process)
{
    struct process now;
    const char *why;
    return !process_open(process->pid, &now, &why) || now.libc_bias != process->libc_bias ||
           now.shim_start != process->shim_start;
}

/* ---------------------------------------------------------------- the shim in a process */

bool process_has_shim(const struct process *process)
{
    struct process now;
    const char *why;
    return process_open(process->pid, &now, &why) && now.start == process->start && now.shim;
}

static bool is_watchers_name(const char *name)
{
    static const char *const names[] = {SHIM_THREAD_NAME, SHIM_THREAD_NAME_NEW,
                                        SHIM_THREAD_NAME_NO_IDS, SHIM_THREAD_NAME_FILTERED,
                                        SHIM_THREAD_NAME_END};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Whether a thread with a watcher's name is the watcher: the program may use the name, too.  The
 * watcher is never the main thread, and blocks each signal that the C library lets it block. */
static bool is_watcher(pid_t pid, pid_t thread)
{
    enum { SIGKILL_BIT = 1 << 8, SIGSTOP_BIT = 1 << 18 };
    static const unsigned long long libcs = 3ull << 31; /* SIGCANCEL, SIGSETXID */
    char *blocked = status_field(proc_file(pid, format("task/%d/status", thread)), "SigBlk");
    return thread != pid && blocked &&
           (strtoull(blocked, NULL, 16) | SIGKILL_BIT | SIGSTOP_BIT | libcs) == ~0ull;
}

/* The watcher's TID, and its name in *watcher; 0: there is none. */
static pid_t watcher_of(pid_t pid, char **watcher)
{
    glob_t threads;
    pid_t found = 0;
    if (glob(under_root(format("/proc/%d/task/*/comm", pid)), GLOB_NOSORT, NULL, &threads) != 0)
        return 0;
    for (size_t i = 0; i < threads.gl_pathc && !found; i++) {
        char *name = read_file(threads.gl_pathv[i], 64);
        if (!name)
            continue;
        name[strcspn(name, "\n")] = '\0';
        pid_t thread = (pid_t)atoi(strstr(threads.gl_pathv[i], "/task/") + strlen("/task/"));
        if (!is_watchers_name(name) || !is_watcher(pid, thread))
            continue;
        found = thread;
        *watcher = name;
    }
    globfree(&threads);
    return found;
}

/* Whether a thread has a processor, or waits for one. */
static bool can_run(pid_t pid)
{
    glob_t threads;
    bool can = false;
    if (glob(under_root(format("/proc/%d/task/*", pid)), GLOB_NOSORT, NULL, &threads) != 0)
        return false;
    for (size_t i = 0; i < threads.gl_pathc && !can; i++)
        can = thread_state(pid, (pid_t)atoi(strrchr(threads.gl_pathv[i], '/') + 1)) == 'R';
    globfree(&threads);
    return can;
}

pid_t process_watcher_thread(const struct process *process)
{
    char *name;
    return watcher_of(process->pid, &name);
}

char *process_watcher(const struct process *process, long ms)
{
    enum { BUSY = 60 };
    const long long began = monotonic_ms(), before = ms ? processor_ms(process->pid) : 0;
    char *name = NULL;
    for (; !watcher_of(process->pid, &name) || strcmp(name, SHIM_THREAD_NAME_NEW) == 0;
         sleep_ms(10)) {
        const long long waited = monotonic_ms() - began;
        if (process_start(process->pid) != process->start ||
            (waited >= ms && (waited >= BUSY * ms || processor_ms(process->pid) - before > ms ||
                              !can_run(process->pid))))
            break;
    }
    return name;
}

bool process_is_detached(const struct process *process)
{
    struct mapping mapping;
    bool is = false;
    char *maps = process->shim ? read_lines_of_maps(process->pid) : NULL, *rest = maps;
    while (!is && next_mapping(&rest, &mapping))
        is = has_page(&mapping, true);
    free(maps);
    return is && !process_watcher_thread(process);
}

bool process_has_our_root(const struct process *process)
{
    struct stat here, there;
    return stat(under_root("/"), &here) == 0 &&
           stat(under_root(format("/proc/%d/root", process->pid)), &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

bool process_shares_our_mounts(const struct process *process)
{
    const char *ours = link_target(under_root("/proc/self/ns/mnt"));
    const char *its = link_target(under_root(format("/proc/%d/ns/mnt", process->pid)));
    return process_has_our_root(process) && ours && its && strcmp(ours, its) == 0;
}

bool process_has_remote_exec(const struct process *process)
{
    struct stat ours, its;
    const char *name = strrchr(process->python.path, '/');
    return process->python.file.minor >= 14 && name && strncmp(name, "/python3", 8) == 0 &&
           stat(process->python.path, &ours) == 0 &&
           stat(format("/proc/%d/exe", process->pid), &its) == 0 && ours.st_dev == its.st_dev &&
           ours.st_ino == its.st_ino;
}

/* ---------------------------------------------------------------- processes */

static int by_pid(const void *one, const void *other)
{
    pid_t a = ((const struct process_entry *)one)->pid,
          b = ((const struct process_entry *)other)->pid;
    return (a > b) - (a < b);
}

static void add(struct processes *processes, pid_t pid)
{
    char *parent = status_field(proc_file(pid, "status"), "PPid");
    processes->all = reallocarray(processes->all, processes->count + 1, sizeof *processes->all);
    if (!processes->all)
        abort();
    processes->all[processes->count++] =
        (struct process_entry){pid, parent ? (pid_t)atoi(parent) : 0, false};
}

struct processes processes_find(void)
{
    struct processes processes = {0};
    struct dirent *entry;
    DIR *folder = opendir(under_root("/proc"));
    while (folder && (entry = readdir(folder)))
        if (parse_pid(entry->d_name) && parse_pid(entry->d_name) != getpid())
            add(&processes, parse_pid(entry->d_name));
    if (folder)
        closedir(folder);
    if (processes.count)
        qsort(processes.all, processes.count, sizeof *processes.all, by_pid);
    return processes;
}

static struct process_entry *find(const struct processes *processes, pid_t pid)
{
    struct process_entry wanted = {.pid = pid};
    return processes->count
               ? bsearch(&wanted, processes->all, processes->count, sizeof *processes->all, by_pid)
               : NULL;
}

bool processes_choose(struct processes *processes, pid_t pid)
{
    struct process_entry *process = find(processes, pid);
    if (process)
        process->chosen = true;
    return process;
}

pid_t processes_parent(const struct processes *processes, pid_t pid)
{
    struct process_entry *process = find(processes, pid);
    return process ? process->parent : 0;
}

bool in_pid_namespace(void)
{
    /* PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h */
    static const char outermost[] = "pid:[4026531836]";
    const char *ours = link_target("/proc/self/ns/pid");
    return ours && strcmp(ours, outermost) != 0;
}

void processes_choose_descendants(struct processes *processes)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < processes->count; i++) {
            struct process_entry *process = &processes->all[i],
                                 *parent = find(processes, process->parent);
            if (!process->chosen && parent && parent->chosen)
                changed = process->chosen = true;
        }
    }
}

void processes_warn_of_hidden(size_t count)
{
    if (count)
        warn("%zu process%s could not be looked at: %s", count, count == 1 ? "" : "es",
             geteuid() == 0 ? "the kernel denies access (a container without CAP_SYS_PTRACE?)"
                            : "run this as root");
}

/* ---------------------------------------------------------------- started */

char **proc_strings(pid_t pid, const char *name)
{
    enum { LIMIT = 1 << 20 };
    char *text = calloc(1, LIMIT + 1), *copy;
    int fd = open(under_root(format("/proc/%d/%s", pid, name)), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t length = 0, count = 0;
    ssize_t got;
    if (!text)
        abort();
    while (fd >= 0 && length < LIMIT && (got = read(fd, text + length, LIMIT - length)) > 0)
        length += (size_t)got;
    if (fd >= 0)
        close(fd);
    for (const char *at = text; at < text + length; at += strlen(at) + 1)
        count++;
    char **strings = malloc((count + 1) * sizeof *strings + length + 1);
    if (!strings)
        abort();
    copy = memcpy(strings + count + 1, text, length + 1);
    for (size_t i = 0; i < count; i++, copy += strlen(copy) + 1)
        strings[i] = copy;
    strings[count] = NULL;
    free(text);
    return strings;
}

char *proc_command_line(pid_t pid)
{
    char *line = NULL, **words = proc_strings(pid, "cmdline");
    size_t size;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        abort();
    for (char **word = words; *word; word++)
        fprintf(out, "%s%s", word == words ? "" : " ", *word);
    fclose(out);
    free(words);
    /* A program that has overwritten its command line may have filled it with blanks. */
    for (size_t end = strlen(line); end && line[end - 1] == ' ';)
        line[--end] = '\0';
    return line;
}

char *proc_environ(pid_t pid, const char *name)
{
    enum { LIMIT = 65536 };
    size_t length = strlen(name);
    char **strings = proc_strings(pid, "environ"), *value = NULL;
    for (char **string = strings; *string && !value; string++)
        if (strncmp(*string, name, length) == 0 && (*string)[length] == '=')
            value = strndup(*string + length + 1, LIMIT);
    free(strings);
    return value;
}

bool started_environment_is_whole(pid_t pid)
{
    char **strings = proc_strings(pid, "environ"), **string = strings;
    while (*string && strchr(*string, '='))
        string++;
    bool is_whole = !*string;
    free(strings);
    return is_whole;
}

/* Whether its program's name begins with python: others may contain CPython, too. */
static bool is_called_python(const struct process *process)
{
    const char *name = strrchr(process->python.path, '/');
    return name && strncmp(name, "/python", 7) == 0;
}

/* Whether its program takes Python's command line: it is called python, or contains or needs
 * CPython's main function. */
static bool is_pythons_program(const struct process *process)
{
    static const char *const mains[] = {"Py_BytesMain", "Py_Main"};
    if (is_called_python(process))
        return true;
    const char *program = under_root(format("/proc/%d/exe", process->pid));
    for (size_t i = 0; i < sizeof mains / sizeof *mains; i++)
        if (elf_names(program, mains[i]))
            return true;
    return false;
}

/* An unchanged command line is taken to have several words, of which the first can be a program's
 * name: a title is one string, or contains a blank, a colon or a bracket, and no slash. */
char *started_title(const struct process *process)
{
    char **words = proc_strings(process->pid, "cmdline"), *first = words[0];
    bool whole = first && (strchr(first, '/') || !strpbrk(first, " :[")) && words[1];
    bool has_title = first && !whole;
    free(words);
    return has_title ? proc_command_line(process->pid) : NULL;
}

/* ---------------------------------------------------------------- a process's script */

/* The kind of a word in Python's command line: 's': a script; 'm': -m; 'c': -c or stdin; 'o':
 * another option.  *words: how many words it takes.  The module of 'm' is in the next word, or if
 * *words is 1 in this word at *at. */
static char option_kind(const char *word, size_t *at, int *words)
{
    *words = 1;
    if (*word != '-')
        return 's';
    if (!word[1])
        return 'c';
    if (word[1] == '-') {
        *words = strcmp(word, "--check-hash-based-pycs") == 0 ? 2 : 1;
        return 'o';
    }
    *at = strcspn(word, "cmWX");
    char option = word[*at];
    bool whole = option && !word[++*at];
    *words = whole ? 2 : 1;
    return option == 'c' || option == 'm' ? option : 'o';
}

/* An absolute path for a path relative to the process's working directory, in the process's root.
 */
static char *absolute(pid_t pid, const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    const char *cwd = *path == '/' ? NULL : link_target(under_root(format("/proc/%d/cwd", pid)));
    return cwd ? format("%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path) : strdup(path);
}

/* The script or module among the words of Python's command line; NULL: there is none. */
static char *script_among(pid_t pid, char **word)
{
    while (*word) {
        size_t at = 0;
        int words;
        switch (option_kind(*word, &at, &words)) {
        case 's':
            return absolute(pid, *word);
        case 'c':
            return NULL;
        case 'm':
            return words == 1 ? strdup(*word + at) : word[1] ? strdup(word[1]) : NULL;
        default:
            for (; words && *word; words--)
                word++;
        }
    }
    return NULL;
}

char *proc_script(const struct process *process)
{
    char **words = proc_strings(process->pid, "cmdline");
    char *script =
        *words && is_pythons_program(process) ? script_among(process->pid, words + 1) : NULL;
    free(words);
    return script;
}

/* ---------------------------------------------------------------- a virtual environment */

/* Whether a file of any kind is at path in the process's root.  lstat(): a link there may lead to a
 * file that does not exist in our root. */
static bool is_there(pid_t pid, const char *path)
{
    struct stat status;
    char *file = format("/proc/%d/root%s", pid, path);
    bool is = lstat(under_root(file), &status) == 0;
    free(file);
    return is;
}

/* The path of the program called so, in the folders of the process's PATH, of which a program can
 * make up hundreds of thousands; NULL: none. */
static char *in_its_path(pid_t pid, const char *name)
{
    char *folders = proc_environ(pid, "PATH"), *rest = folders, *folder, *path = NULL;
    while (!path && rest && (folder = strsep(&rest, ":"))) {
        path = *folder == '/' ? format("%s/%s", folder, name) : NULL;
        if (path && !is_there(pid, path)) {
            free(path);
            path = NULL;
        }
    }
    free(folders);
    return path;
}

/* The path by which the program was called, absolute in the process's root; NULL: unknown, as the
 * command line was overwritten. */
static char *called_as(const struct process *process)
{
    pid_t pid = process->pid;
    char **words = proc_strings(pid, "cmdline"), *word = words[0], *path = NULL, *cwd;
    if (word && *word && strnlen(word, PATH_MAX) < PATH_MAX) {
        if (*word == '/')
            path = strdup(word);
        else if (!strchr(word, '/'))
            path = in_its_path(pid, word);
        else if ((cwd = link_target(under_root(format("/proc/%d/cwd", pid)))))
            path = format("%s/%s", cwd, word);
    }
    free(words);
    return path && is_there(pid, path) ? path : NULL;
}

/* The value of the option for a virtual environment among uwsgi's words; NULL: it is not there. */
static const char *uwsgi_option(char **words)
{
    static const char *const options[] = {"-H", "--home", "--pyhome", "--venv", "--virtualenv"};
    for (char **word = words; *word; word++)
        for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
            size_t length = strlen(options[i]);
            if (strncmp(*word, options[i], length) != 0)
                continue;
            if (!(*word)[length])
                return word[1];
            if ((*word)[length] == '=')
                return *word + length + 1;
        }
    return NULL;
}

/* The virtual environment in uwsgi's command line; NULL if there is none. */
static char *uwsgi_venv(pid_t pid)
{
    const char *program = link_target(under_root(format("/proc/%d/exe", pid)));
    const char *name = program ? strrchr(program, '/') : NULL;
    if (!name || strncmp(name, "/uwsgi", 6) != 0)
        return NULL;
    char **words = proc_strings(pid, "cmdline");
    const char *value = uwsgi_option(words);
    char *venv = value ? strdup(value) : NULL;
    free(words);
    return venv;
}

char *proc_venv(const struct process *process)
{
    pid_t pid = process->pid;
    char *called = is_called_python(process) ? called_as(process) : NULL;
    if (called) {
        char *folder = dirname(strdup(called)), *home = dirname(strdup(folder));
        return is_there(pid, format("%s/pyvenv.cfg", folder)) ||
                       is_there(pid, format("%s/pyvenv.cfg", home))
                   ? home
                   : NULL;
    }
    char *venv = uwsgi_venv(pid);
    venv = venv ? venv : proc_environ(pid, "VIRTUAL_ENV");
    return venv && *venv == '/' && strnlen(venv, PATH_MAX) < PATH_MAX &&
                   is_there(pid, format("%s/pyvenv.cfg", venv))
               ? venv
               : NULL;
}

/* ---------------------------------------------------------------- container */

/* The control groups of container managers, the most specific first: the text before the
 * container's name or ID, and our word for its kind. */
static const struct {
    const char *before, *kind;
} groups[] = {
    {"/cri-containerd-", "pod"},    {"/crio-", "pod"},      {"/docker-", "docker"},
    {"/docker/", "docker"},         {"/libpod-", "podman"}, {"/libpod/", "podman"},
    {"/lxc.payload.", "lxc"},       {"/lxc/", "lxc"},       {"/lxc.payload/", "lxc"},
    {"/systemd-nspawn@", "nspawn"},
};

enum { ID = 64, SHORT_ID = 12 };

/* The length of the hexadecimal container ID at text; 0: none. */
static size_t id_at(const char *text)
{
    size_t length = strspn(text, "0123456789abcdef");
    return length == ID ? length : 0;
}

/* A Kubernetes group may have no prefix before the ID: .../kubepods/.../podUID/ID. */
static char *bare_id(const char *line)
{
    const char *last = strrchr(line, '/');
    return strstr(line, "/kubepods") && last && id_at(last + 1)
               ? format("pod:%.*s", SHORT_ID, last + 1)
               : NULL;
}

/* The container that a line of /proc/PID/cgroup names, or NULL. */
static char *container_in(const char *line)
{
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const char *at = strstr(line, groups[i].before);
        if (!at)
            continue;
        at += strlen(groups[i].before);
        /* Not libpod-conmon-ID, the container's monitor. */
        size_t length = id_at(at) ? SHORT_ID : strcspn(at, "/.");
        const char *kind = groups[i].kind;
        bool named = strcmp(kind, "lxc") == 0 || strcmp(kind, "nspawn") == 0;
        if (length && (named || id_at(at)))
            return format("%s:%.*s", kind, (int)length, at);
    }
    return bare_id(line);
}

const char *container_name(const struct process *process)
{
    if (process_shares_our_mounts(process))
        return NULL;
    char *groups_text = proc_file(process->pid, "cgroup"), *line, *name;
    for (char *rest = strdup(groups_text); rest && (line = strsep(&rest, "\n"));)
        if ((name = container_in(line)))
            return name;
    return process_has_our_root(process) ? "other mounts" : "other root";
}

/* ---------------------------------------------------------------- pages */

enum { ACCESS_MS = 10000 };

static bool access_here(int memory, bool writes, uint64_t address, void *bytes, size_t size)
{
    ssize_t done = writes ? pwrite(memory, bytes, size, (off_t)address)
                          : pread(memory, bytes, size, (off_t)address);
    return done == (ssize_t)size;
}

/* Reads or writes bytes of a process's memory.  As root, who is to see and survive what hostile
 * users do, in a child, for ten seconds at most: at the address may be a page of a file, and then
 * the kernel waits for whoever serves the file (FUSE). */
static bool access_memory(int memory, bool writes, uint64_t address, void *bytes, size_t size)
{
    if (geteuid() != 0)
        return access_here(memory, writes, address, bytes, size);
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    memcpy(shared, bytes, size);
    pid_t child = fork();
    if (child == 0) {
        /* Who reads what this command prints must not wait for the child. */
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            close(fd);
        _exit(!access_here(memory, writes, address, shared, size));
    }
    bool is_done = child > 0 && child_ends_well(child, monotonic_ms() + ACCESS_MS);
    if (is_done && !writes)
        memcpy(bytes, shared, size);
    munmap(shared, size);
    return is_done;
}

/* Reads bytes of one mapping that is no file's, as the shim's pages are. */
static bool read_anonymous(int memory, pid_t pid, uint64_t address, void *to, size_t size)
{
    struct mapping mapping;
    bool is_in = false;
    char *maps = read_lines_of_maps(pid), *rest = maps;
    while (!is_in && next_mapping(&rest, &mapping))
        is_in = mapping.start <= address && address + size <= mapping.end;
    free(maps);
    return is_in && !is_file(&mapping) && access_memory(memory, false, address, to, size);
}

char *process_lacks(const struct process *process)
{
    static const uint64_t addresses[] = {OFFSETS_ADDRESS, OFFSETS_LOW_ADDRESS};
    static char page[OFFSETS_LACKS + OFFSETS_LACKS_SIZE], *lacks = page + OFFSETS_LACKS;
    int memory = open(format("/proc/%d/mem", process->pid), O_RDONLY | O_CLOEXEC);
    uint32_t magic = 0;
    for (int i = 0; memory >= 0 && magic != OFFSETS_MAGIC && i < 2; i++)
        if (read_anonymous(memory, process->pid, addresses[i], page, sizeof page))
            memcpy(&magic, page, sizeof magic);
    if (memory >= 0)
        close(memory);
    page[sizeof page - 1] = '\0';
    return magic == OFFSETS_MAGIC && *lacks ? strdup(lacks) : NULL;
}

int page_open(const struct process *process, const char **why)
{
    int memory = open(format("/proc/%d/mem", process->pid), O_RDWR | O_CLOEXEC);
    if (memory < 0)
        *why = format("its memory can't be opened (%s): run as root", strerror(errno));
    return memory;
}

uint64_t page_read(int memory, const struct process *process, struct filter_page *page,
                   const char **why)
{
    for (int i = 0; process->shim && i < FILTER_ADDRESSES; i++) {
        if (!read_anonymous(memory, process->pid, filter_addresses[i], page, sizeof *page) ||
            page->magic != FILTER_MAGIC)
            continue;
        page->patterns[sizeof page->patterns - 1] = '\0';
        return filter_addresses[i];
    }
    *why =
        format("the shim of this version isn't active in it: stap-python attach %d", process->pid);
    return 0;
}

const char *page_write(int memory, uint64_t at, const void *data, size_t size)
{
    return access_memory(memory, true, at, (void *)data, size) ? NULL
                                                               : "its memory can't be written";
}

/* A new generation makes the shim read the patterns; an odd one makes it wait for the writer. */
const char *page_write_patterns(int memory, uint64_t page, uint32_t generation,
                                const char *patterns)
{
    uint32_t during = (generation + 1) | 1, after = during + 1;
    const char *why;
    (void)((why = page_write(memory, page + offsetof(struct filter_page, generation), &during,
                             sizeof during)) ||
           (why = page_write(memory, page + offsetof(struct filter_page, patterns), patterns,
                             strlen(patterns) + 1)) ||
           (why = page_write(memory, page + offsetof(struct filter_page, generation), &after,
                             sizeof after)));
    return why;
}

const char *process_replace_patterns(pid_t pid, const char *patterns, const char *only_if,
                                     char **before)
{
    struct process process;
    struct filter_page page;
    const char *why;
    if (!process_open(pid, &process, &why))
        return why;
    if (process_is_detached(&process))
        return "the shim is detached";
    int memory = page_open(&process, &why);
    uint64_t at = memory < 0 ? 0 : page_read(memory, &process, &page, &why);
    if (at) {
        *before = strdup(page.patterns);
        why = only_if && strcmp(page.patterns, only_if) != 0
                  ? "it has other patterns"
                  : page_write_patterns(memory, at, page.generation, patterns);
    }
    if (memory >= 0)
        close(memory);
    return why;
}
