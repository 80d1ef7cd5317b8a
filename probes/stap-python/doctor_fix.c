/*
 * See doctor_fix.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor_fix.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "shim.h"
#include "text.h"

enum manager { APT, DNF, ZYPPER, UNKNOWN };

static enum manager manager(void)
{
    static const struct {
        const char *id;
        enum manager manager;
    } known[] = {
        {"debian", APT}, {"ubuntu", APT}, {"fedora", DNF}, {"rhel", DNF}, {"suse", ZYPPER}};
    char *text = read_file(under_root("/etc/os-release"), 65536);
    text = text ? text : read_file(under_root("/usr/lib/os-release"), 65536);
    if (!text)
        return UNKNOWN;
    text = format("\n%s", text);
    for (char *line = text; line; line = strchr(line, '\n')) {
        line++;
        if (strncmp(line, "ID=", 3) != 0 && strncmp(line, "ID_LIKE=", 8) != 0)
            continue;
        char *ids = strndup(line, strcspn(line, "\n"));
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strstr(ids, known[i].id))
                return known[i].manager;
    }
    return UNKNOWN;
}

const char *sudo_prefix(void)
{
    return geteuid() == 0 ? "" : "sudo ";
}

char *install_command(const char *apt, const char *dnf, const char *zypper)
{
    switch (manager()) {
    case APT:
        return format("%sapt-get install %s", sudo_prefix(), apt);
    case DNF:
        return format("%sdnf install %s", sudo_prefix(), dnf);
    case ZYPPER:
        return format("%szypper install %s", sudo_prefix(), zypper);
    default:
        return format("install %s with this system's package manager", dnf);
    }
}

char *reinstall_command(void)
{
    static const char packages[] = "systemtap-cpython systemtap-cpython-tapset";
    if (source_tree)
        return format("make -C %s", source_tree);
    switch (manager()) {
    case APT:
        return format("%sapt-get install --reinstall %s", sudo_prefix(), packages);
    case DNF:
        return format("%sdnf reinstall %s", sudo_prefix(), packages);
    case ZYPPER:
        return format("%szypper install --force %s", sudo_prefix(), packages);
    default:
        return format("reinstall %s", packages);
    }
}

/* How Debian names its kernel for this architecture. */
#if defined(__x86_64__)
#define DEBIAN_KERNEL "amd64"
#elif defined(__i386__)
#define DEBIAN_KERNEL "686-pae"
#elif defined(__aarch64__)
#define DEBIAN_KERNEL "arm64"
#elif defined(__arm__)
#define DEBIAN_KERNEL "armmp"
#elif defined(__powerpc64__)
#define DEBIAN_KERNEL "powerpc64le"
#elif defined(__s390x__)
#define DEBIAN_KERNEL "s390x"
#elif defined(__riscv)
#define DEBIAN_KERNEL "riscv64"
#else
#define DEBIAN_KERNEL "$(dpkg --print-architecture)"
#endif

char *stock_kernel_command(void)
{
    static const char debian[] = "linux-image-" DEBIAN_KERNEL " linux-headers-" DEBIAN_KERNEL;
    if (source_tree)
        return format("STAP=%s/test/vm/stap stap-python SCRIPT", source_tree);
    char *release = read_file(under_root("/etc/os-release"), 65536);
    bool is_ubuntu = release && strstr(release, "ID=ubuntu");
    return format("%s && %sreboot",
                  install_command(is_ubuntu ? "linux-generic" : debian, "kernel kernel-devel",
                                  "kernel-default kernel-default-devel"),
                  sudo_prefix());
}
