/*
 * See processes.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "processes.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "file.h"
#include "process.h"
#include "text.h"

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
    char ours[64] = "";
    return readlink("/proc/self/ns/pid", ours, sizeof ours - 1) > 0 && strcmp(ours, outermost) != 0;
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
