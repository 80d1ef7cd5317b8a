/*
 * Checks the running kernel: its headers, whether it loads modules, and whether it has uprobes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "doctor/doctor.h"
#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"
#include "systemtap/systemtap.h"

#include <glob.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- headers */

/* The newest kernel that is installed, if it is newer than the running one; else NULL. */
static const char *newer_kernel(const char *running)
{
    static const char *const patterns[] = {"/boot/vmlinuz-*", "/lib/modules/*/vmlinuz"};
    const char *newest = running;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        glob_t found;
        if (glob(under_root(patterns[i]), 0, NULL, &found) != 0)
            continue;
        for (size_t j = 0; j < found.gl_pathc; j++) {
            const char *path = found.gl_pathv[j];
            const char *release =
                i == 0 ? strrchr(path, '/') + strlen("/vmlinuz-") : basename(dirname(strdup(path)));
            if (strverscmp(release, newest) > 0)
                newest = strdup(release);
        }
        globfree(&found);
    }
    return newest == running ? NULL : newest;
}

/* The last part of a release of Debian's or Ubuntu's, which their kernel packages have in their
 * names: cloud-amd64 in 6.1.0-9-cloud-amd64 and in 6.12.38+deb13-cloud-amd64. */
static const char *flavour(const char *release)
{
    while (*release >= '0' && *release <= '9' && strchr(release, '-'))
        release = strchr(release, '-') + 1;
    return release;
}

/* A distribution removes the packages of a kernel for which it has an update. */
static char *without_package(const char *release)
{
    const char *newer = newer_kernel(release), *kind = flavour(newer ? newer : release);
    char *headers = format("linux-headers-%s", kind);
    if (newer)
        return format("if there is no such package any more: %sreboot (the kernel %s is installed, "
                      "and newer than the running one), then %s",
                      sudo_prefix(), newer,
                      install_fix(headers, "kernel-devel", "kernel-default-devel").text);
    return format("if there is no such package any more, a newer kernel has it: %s && %sreboot",
                  install_fix(format("linux-image-%s %s", kind, headers), "kernel kernel-devel",
                              "kernel-default kernel-default-devel")
                      .text,
                  sudo_prefix());
}

static struct fix install_headers(const char *release)
{
    /* openSUSE's version lacks the flavour: 6.4.0-150600.23.7 for 6.4.0-150600.23.7-default. */
    size_t version = strcspn(release, "-");
    size_t length = version + strcspn(release + version + 1, "-") + 1;
    char *apt = format("linux-headers-%s", release), *dnf = format("kernel-devel-%s", release),
         *zypper = format("kernel-default-devel=%.*s", (int)length, release);
    struct fix fix = install_fix(shell_word(apt), shell_word(dnf), shell_word(zypper));
    fix.if_fails = without_package(release);
    return fix;
}

static void check_headers(void)
{
    const char *release = kernel_release();
    if (has_headers(release))
        report(OK, "headers", NULL, "%s", kernel_headers(kernel_release()));
    else if (!file_exists(under_root(format("/lib/modules/%s", release))))
        report(
            WRONG, "headers", stock_kernel_command(),
            "no headers for the running kernel, %s, which is not from this distribution's packages",
            release);
    else
        report_fix(WRONG, "headers", install_headers(release),
                   "no headers for the running kernel, %s", release);
}

/* ---------------------------------------------------------------- configuration */

/* The option's value, y, m or n; 0: unknown. */
static char option_value(const char *config, const char *option)
{
    size_t length = strlen(option);
    for (const char *at = config; at && (at = strstr(at, option)); at += length) {
        if (at > config && at[-1] != '\n' && at[-1] != ' ')
            continue;
        if (at[length] == '=')
            return at[length + 1];
        if (strncmp(at + length, " is not set", 11) == 0)
            return 'n';
    }
    return 0;
}

static const char *kernel_config(void)
{
    enum { LIMIT = 4 << 20 };
    const char *const places[] = {format("/boot/config-%s", kernel_release()),
                                  format("/lib/modules/%s/config", kernel_release()),
                                  format("%s/.config", kernel_headers(kernel_release())),
                                  "/proc/config"};
    if (file_exists(under_root("/proc/config.gz"))) {
        int status;
        /* Only three lines: run_and_capture() keeps 64 KB, and the whole file has more. */
        const char *const command[] = {
            "sh", "-c",
            "gzip -dc \"$0\" | grep -E '^(# )?CONFIG_(MODULES|UPROBES|UPROBE_EVENTS)[ =]'",
            under_root("/proc/config.gz"), NULL};
        char *text = run_and_capture(command, 10, &status);
        if (status == 0)
            return text;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *text = read_file(under_root(places[i]), LIMIT);
        if (text)
            return text;
    }
    return "";
}

/* ---------------------------------------------------------------- modules */

static bool starts_with(const char *path, char letter)
{
    char *text = read_file(path, 64);
    return text && *text == letter;
}

static bool secure_boot(void)
{
    glob_t found;
    bool on = false;
    if (glob(under_root("/sys/firmware/efi/efivars/SecureBoot-*"), 0, NULL, &found) == 0) {
        /* Four bytes of attributes precede the value. */
        unsigned char *text = (unsigned char *)read_file(found.gl_pathv[0], 8);
        on = text && text[4] == 1;
        globfree(&found);
    }
    return on;
}

static bool may_load_modules(void)
{
    enum { CAP_SYS_MODULE = 16 };
    char *capabilities = status_field(read_file(under_root("/proc/self/status"), 65536), "CapBnd");
    return !capabilities || (strtoull(capabilities, NULL, 16) >> CAP_SYS_MODULE & 1);
}

static void check_modules(const char *config)
{
    char *lockdown = read_file(under_root("/sys/kernel/security/lockdown"), 256);
    bool is_locked = lockdown && !strstr(lockdown, "[none]") && strchr(lockdown, '[');
    if (option_value(config, "CONFIG_MODULES") == 'n' || !file_exists(under_root("/proc/modules")))
        report(WRONG, "modules", stock_kernel_command(),
               "this kernel cannot load modules (CONFIG_MODULES is not set)");
    else if (starts_with(under_root("/proc/sys/kernel/modules_disabled"), '1'))
        report(WRONG, "modules", format("%sreboot", sudo_prefix()),
               "loading modules is disabled until the next boot (kernel.modules_disabled is 1; see "
               "/etc/sysctl.d)");
    else if (!may_load_modules())
        report(WRONG, "modules",
               "run stap on the host of this container, or start the container with --privileged",
               "this is a container without CAP_SYS_MODULE");
    else if (is_locked || starts_with(under_root("/sys/module/module/parameters/sig_enforce"), 'Y'))
        report(
            WRONG, "modules",
            format("%smokutil --disable-validation && %sreboot", sudo_prefix(), sudo_prefix()),
            "the kernel loads only signed modules (%s); how to sign them: man stap, SIGNED MODULES",
            secure_boot() ? "Secure Boot" : "lockdown");
    else
        report(OK, "modules", NULL, "the kernel loads modules%s",
               secure_boot() ? ", with Secure Boot on" : "");
}

/* ---------------------------------------------------------------- uprobes */

static void check_uprobes(const char *config)
{
    char uprobes = option_value(config, "CONFIG_UPROBES");
    if (uprobes == 'y' ||
        (!uprobes && file_exists(under_root("/sys/bus/event_source/devices/uprobe"))))
        report(OK, "uprobes", NULL, "the kernel has uprobes (CONFIG_UPROBES)");
    else if (uprobes == 'n')
        report(WRONG, "uprobes", stock_kernel_command(),
               "this kernel does not have uprobes (CONFIG_UPROBES is not set)");
    else
        report(NOTE, "uprobes", NULL,
               "cannot tell whether this kernel has uprobes: /boot/config-%s does not exist",
               kernel_release());
}

void check_kernel(void)
{
    const char *config = kernel_config();
    check_headers();
    check_modules(config);
    check_uprobes(config);
}
