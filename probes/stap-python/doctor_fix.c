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
    char *text = contents(rooted("/etc/os-release"), 65536);
    text = text ? text : contents(rooted("/usr/lib/os-release"), 65536);
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

const char *sudo(void)
{
    return geteuid() == 0 ? "" : "sudo ";
}

char *install(const char *apt, const char *dnf, const char *zypper)
{
    switch (manager()) {
    case APT:
        return format("%sapt-get install %s", sudo(), apt);
    case DNF:
        return format("%sdnf install %s", sudo(), dnf);
    case ZYPPER:
        return format("%szypper install %s", sudo(), zypper);
    default:
        return format("install %s with this system's package manager", dnf);
    }
}

char *reinstall(void)
{
    static const char packages[] = "systemtap-cpython systemtap-cpython-tapset";
    if (source_tree)
        return format("make -C %s", source_tree);
    switch (manager()) {
    case APT:
        return format("%sapt-get install --reinstall %s", sudo(), packages);
    case DNF:
        return format("%sdnf reinstall %s", sudo(), packages);
    case ZYPPER:
        return format("%szypper install --force %s", sudo(), packages);
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

char *other_kernel(void)
{
    static const char debian[] = "linux-image-" DEBIAN_KERNEL " linux-headers-" DEBIAN_KERNEL;
    if (source_tree)
        return format("STAP=%s/test/vm/stap stap-python SCRIPT", source_tree);
    char *release = contents(rooted("/etc/os-release"), 65536);
    bool is_ubuntu = release && strstr(release, "ID=ubuntu");
    return format("%s && %sreboot",
                  install(is_ubuntu ? "linux-generic" : debian, "kernel kernel-devel",
                          "kernel-default kernel-default-devel"),
                  sudo());
}
