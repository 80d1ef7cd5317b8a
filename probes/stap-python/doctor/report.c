/*
 * Prints doctor's lines, keeps their fixes, and makes the commands that fix what they report.
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

struct fix command_fix(char *command)
{
    bool is_shown = strcmp(printable(command), command) == 0;
    return (struct fix){.text = command, .command = is_shown ? command : NULL};
}

/* The command that installs packages, or reinstalls them: again. */
static char *package_command(const char *packages, bool again, bool unattended)
{
    const char *sudo = sudo_prefix();
    switch (manager()) {
    case APT:
        return format("%s%sapt-get install %s%s%s", sudo,
                      unattended ? "env DEBIAN_FRONTEND=noninteractive " : "",
                      unattended ? "-y " : "", again ? "--reinstall " : "", packages);
    case DNF:
        return format("%sdnf %s %s%s", sudo, again ? "reinstall" : "install",
                      unattended ? "-y " : "", packages);
    case ZYPPER:
        return format("%szypper %sinstall %s%s", sudo, unattended ? "--non-interactive " : "",
                      again ? "--force " : "", packages);
    default:
        return NULL;
    }
}

struct fix install_fix(const char *apt, const char *dnf, const char *zypper)
{
    enum manager ours = manager();
    const char *packages = ours == APT ? apt : ours == ZYPPER ? zypper : dnf;
    if (ours == UNKNOWN)
        return (struct fix){.text =
                                format("install %s with this system's package manager", packages)};
    return (struct fix){.text = package_command(packages, false, false),
                        .command = unattended_install(packages),
                        .packages = strdup(packages),
                        .downloads = true};
}

char *unattended_install(const char *packages)
{
    return package_command(packages, false, true);
}

char *update_command(void)
{
    return manager() == APT ? format("%sapt-get update", sudo_prefix()) : NULL;
}

struct fix reinstall_fix(void)
{
    static const char packages[] = "systemtap-cpython systemtap-cpython-tapset";
    if (source_tree)
        return command_fix(format("make -C %s", shell_word(source_tree)));
    if (manager() == UNKNOWN)
        return (struct fix){.text = format("reinstall %s", packages)};
    return (struct fix){.text = package_command(packages, true, false),
                        .command = package_command(packages, true, true),
                        .downloads = true};
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
                  install_fix(is_ubuntu ? "linux-generic" : debian, "kernel kernel-devel",
                              "kernel-default kernel-default-devel")
                      .text,
                  sudo_prefix());
}

/* ---------------------------------------------------------------- report */

static bool colours;
static unsigned problems;

static struct reported *fixes;
static size_t fix_count;

void report_start(void)
{
    const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    colours = isatty(1) && !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
    problems = 0;
    fixes = NULL;
    fix_count = 0;
}

static void keep(const char *topic, struct fix fix)
{
    fixes = reallocarray(fixes, fix_count + 1, sizeof *fixes);
    if (!fixes)
        abort();
    fixes[fix_count++] = (struct reported){topic, fix};
}

size_t reported_fixes(const struct reported **all)
{
    *all = fixes;
    return fix_count;
}

static void print_line(enum verdict verdict, const char *topic, struct fix fix, const char *text,
                       va_list values)
{
    static const char *const words[] = {"ok", "note", "wrong"}, *const colour[] = {"32", "33",
                                                                                   "31"};
    char *line;
    if (colours)
        printf("\033[%sm%-6s\033[m", colour[verdict], words[verdict]);
    else
        printf("%-6s", words[verdict]);
    printf("%-9s ", topic);
    if (vasprintf(&line, text, values) < 0)
        abort();
    puts(printable(line));
    if (fix.text) {
        printf("%-16sfix: %s\n", "", printable(fix.text));
        keep(topic, fix);
    }
    problems += verdict == WRONG;
}

void report(enum verdict verdict, const char *topic, const char *advice, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    print_line(verdict, topic, (struct fix){.text = advice ? strdup(advice) : NULL}, text, values);
    va_end(values);
}

void report_fix(enum verdict verdict, const char *topic, struct fix fix, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    print_line(verdict, topic, fix, text, values);
    va_end(values);
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
