/*
 * Prints doctor's lines, and makes the commands that fix what they report.
 *
 * SPDX-License-Identifier: MIT
 */

#include "doctor/doctor.h"
#include "lib/files.h"
#include "lib/util.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- commands that fix */

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

/* The suffix of Debian's kernel packages for this architecture. */
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

/* ---------------------------------------------------------------- report */

static bool colours;
static unsigned problems;

void report_start(void)
{
    const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    colours = isatty(1) && !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
    problems = 0;
}

void report(enum verdict verdict, const char *topic, const char *fix, const char *text, ...)
{
    static const char *const words[] = {"ok", "note", "wrong"}, *const colour[] = {"32", "33",
                                                                                   "31"};
    va_list values;
    char *line;
    if (colours)
        printf("\033[%sm%-6s\033[m", colour[verdict], words[verdict]);
    else
        printf("%-6s", words[verdict]);
    printf("%-9s ", topic);
    va_start(values, text);
    if (vasprintf(&line, text, values) < 0)
        abort();
    va_end(values);
    puts(printable(line));
    if (fix)
        printf("%-16sfix: %s\n", "", printable(fix));
    problems += verdict == WRONG;
}

unsigned report_end(void)
{
    if (problems == 1)
        printf("\n1 problem; fix it and rerun\n");
    else if (problems)
        printf("\n%u problems; fix the first and rerun\n", problems);
    else
        printf("\nno problems; try: stap-python pyflow -c 'python3 PROGRAM.py'\n");
    return problems;
}
