/*
 * See container.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "container.h"

#include <string.h>
#include <sys/stat.h>

#include "file.h"
#include "text.h"

/* How managers of containers name control groups, the most special first: what stands before the
 * container's name or id, and what we say for it. */
static const struct {
    const char *before, *kind;
} groups[] = {
    {"/cri-containerd-", "pod"},    {"/crio-", "pod"},      {"/docker-", "docker"},
    {"/docker/", "docker"},         {"/libpod-", "podman"}, {"/libpod/", "podman"},
    {"/lxc.payload.", "lxc"},       {"/lxc/", "lxc"},       {"/lxc.payload/", "lxc"},
    {"/systemd-nspawn@", "nspawn"},
};

enum { ID = 64, SHORT_ID = 12 };

/* The length of the id, of hexadecimal digits, at text; 0: it is not one. */
static size_t id_at(const char *text)
{
    size_t length = strspn(text, "0123456789abcdef");
    return length == ID ? length : 0;
}

/* Under Kubernetes the group may be .../kubepods/.../podUID/ID. */
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
        /* libpod-conmon-ID is what watches the container. */
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
