/*
 * See process.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "process.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "filter_page.h"
#include "text.h"
#include "watcher.h"

pid_t pid_of(const char *word)
{
    char *end;
    errno = 0;
    long number = strtol(word, &end, 10);
    return isdigit((unsigned char)*word) && !*end && !errno && number > 0 && number <= INT_MAX
               ? (pid_t)number
               : 0;
}

char *process_text(pid_t pid, const char *name)
{
    char *text = contents(rooted(format("/proc/%d/%s", pid, name)), 65536);
    return text ? text : "";
}

unsigned long long process_start(pid_t pid)
{
    char *text = contents(rooted(format("/proc/%d/stat", pid)), 4096);
    char *field = text ? strrchr(text, ')') : NULL;
    unsigned long long start = 0;
    /* The 22nd field; the second, a name in brackets, may contain anything. */
    for (int i = 0; field && i < 20; i++)
        field = strchr(field + 1, ' ');
    if (field)
        sscanf(field, "%llu", &start);
    free(text);
    return start;
}

bool process_has_ended(const struct process *process)
{
    char program[2];
    return process_start(process->pid) != process->start ||
           readlink(rooted(format("/proc/%d/exe", process->pid)), program, sizeof program) < 0;
}

/* ---------------------------------------------------------------- its maps */

struct mapping {
    unsigned long start, end, offset;
    char name[PATH_MAX];
};

/* The next mapping of a file, from the lines of /proc/PID/maps. */
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

/* The path by which we can open a mapping's file, which may be in another root or deleted. */
static char *file_of(pid_t pid, const struct mapping *mapping)
{
    char *path = rooted("/")[1]
                     ? NULL
                     : format("/proc/%d/map_files/%lx-%lx", pid, mapping->start, mapping->end);
    if (path && access(path, R_OK) == 0)
        return path;
    return format("%s", rooted(format("/proc/%d/root%s", pid, mapping->name)));
}

static void note_libc(struct process *process, const struct mapping *mapping)
{
    char *file = file_of(process->pid, mapping);
    if (!elf_symbol(file, "dlopen"))
        return;
    long address = elf_address_of(file, mapping->offset);
    process->libc = file;
    process->libc_name = strdup(mapping->name);
    process->libc_bias = address < 0 ? 0 : mapping->start - (unsigned long)address;
}

static void note_python(struct process *process, const struct mapping *mapping, const char *program)
{
    const char *why, *name = strrchr(mapping->name, '/') + 1;
    char *file = file_of(process->pid, mapping);
    struct elf_file elf;
    if (!elf_read(file, &elf, &why) || !elf.is_cpython)
        return;
    /* file's own name may have no version, as in map_files. */
    if (elf.minor < 0)
        sscanf(strstr(name, "python3.") ? strstr(name, "python3.") : "", "python3.%2d", &elf.minor);
    process->python = (struct interpreter){strdup(program), file, elf, 0, 0};
    process->code_name = strdup(mapping->name);
}

static void note_mapping(struct process *process, const struct mapping *mapping,
                         const char *program)
{
    const char *name = strrchr(mapping->name, '/') + 1;
    if (strncmp(name, "libpython-stap.so", 17) == 0 || strncmp(name, "python_stap.", 12) == 0) {
        process->shim = strdup(mapping->name);
        process->shim_start = mapping->start;
        process->shims++;
    } else if (strncmp(name, "libc.so.6", 9) == 0 || strncmp(name, "libdl.so.2", 10) == 0 ||
               strncmp(name, "libc-2.", 7) == 0 || strncmp(name, "libdl-2.", 8) == 0)
        note_libc(process, mapping);
    else if (strncmp(name, "libpython3.", 11) == 0 || strcmp(mapping->name, program) == 0)
        note_python(process, mapping, program);
}

/* Whether it runs as our user; if so, something else denies us access. */
static bool is_our_users(pid_t pid)
{
    unsigned user;
    char *users = field_of(process_text(pid, "status"), "Uid");
    return users && sscanf(users, "%*u %u", &user) == 1 && user == geteuid();
}

bool process_open(pid_t pid, struct process *process, const char **why)
{
    struct mapping mapping;
    *process = (struct process){.pid = pid, .start = process_start(pid)};
    *why = "no such process";
    if (!process->start)
        return false;
    *why = is_our_users(pid)
               ? "the kernel denies access: it has more rights than its user (set-user-ID, "
                 "capabilities), or has asked for that (prctl()): use sudo"
               : "cannot read its maps: run this as its user or root";
    char *maps = contents(rooted(format("/proc/%d/maps", pid)), 16 << 20), *text = maps;
    process->is_hidden = !text && process_start(pid) == process->start;
    if (!text)
        return false;
    /* Also a zombie, or a thread of the kernel. */
    *why = "it does not run CPython";
    char last[PATH_MAX] = "", program[PATH_MAX] = "";
    ssize_t length = readlink(rooted(format("/proc/%d/exe", pid)), program, sizeof program - 1);
    if (length > 0)
        program[length] = '\0';
    while (next_mapping(&text, &mapping)) {
        if (strcmp(mapping.name, last) == 0)
            continue;
        strcpy(last, mapping.name);
        note_mapping(process, &mapping, program);
    }
    free(maps);
    return process->python.code != NULL;
}

/* ---------------------------------------------------------------- questions about it */

bool process_has_shim(const struct process *process)
{
    struct process now;
    const char *why;
    return process_open(process->pid, &now, &why) && now.start == process->start && now.shim;
}

/* One of its threads whose name matches the shell pattern; 0: there is none. */
static pid_t thread_named(pid_t pid, const char *pattern)
{
    glob_t names;
    pid_t found = 0;
    if (glob(rooted(format("/proc/%d/task/*/comm", pid)), GLOB_NOSORT, NULL, &names) != 0)
        return 0;
    for (size_t i = 0; i < names.gl_pathc && !found; i++) {
        char *name = contents(names.gl_pathv[i], 64);
        if (name && fnmatch(pattern, name, 0) == 0)
            found = (pid_t)atoi(strstr(names.gl_pathv[i], "/task/") + strlen("/task/"));
    }
    globfree(&names);
    return found;
}

bool process_watches(const struct process *process)
{
    return thread_named(process->pid, WATCHER_NAME "\n");
}

bool process_detaches(const struct process *process)
{
    return thread_named(process->pid, WATCHER_DETACHES "\n");
}

pid_t process_watcher(const struct process *process)
{
    return thread_named(process->pid, WATCHER_NAME "*\n");
}

bool process_is_active(const struct process *process, long ms)
{
    for (long long end = now_ms() + ms; !process_watches(process); sleep_ms(10))
        if (now_ms() > end || process_start(process->pid) != process->start)
            return false;
    return true;
}

static bool is_page_of_shim(unsigned long start, unsigned long end)
{
    for (int i = 0; i < FILTER_ADDRESSES; i++)
        if (start <= filter_addresses[i] && filter_addresses[i] < end)
            return true;
    return false;
}

/* By its page (filter_page.h), which is read-only then. */
bool process_is_detached(const struct process *process)
{
    char *maps = contents(rooted(format("/proc/%d/maps", process->pid)), 16 << 20), *text = maps,
         *line, rights[5];
    unsigned long start, end, inode;
    bool found = false;
    while (!found && process->shim && (line = strsep(&text, "\n")))
        found = sscanf(line, "%lx-%lx %4s %*s %*s %lu", &start, &end, rights, &inode) == 4 &&
                inode == 0 && strcmp(rights, "r--p") == 0 && is_page_of_shim(start, end);
    free(maps);
    return found;
}

bool process_has_our_root(const struct process *process)
{
    struct stat here, there;
    return stat(rooted("/"), &here) == 0 &&
           stat(rooted(format("/proc/%d/root", process->pid)), &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

bool process_sees_our_files(const struct process *process)
{
    char ours[64] = "", its[64] = "";
    return process_has_our_root(process) &&
           readlink(rooted("/proc/self/ns/mnt"), ours, sizeof ours - 1) > 0 &&
           readlink(rooted(format("/proc/%d/ns/mnt", process->pid)), its, sizeof its - 1) > 0 &&
           strcmp(ours, its) == 0;
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
