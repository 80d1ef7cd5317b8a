/*
 * See doctor_kernel.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor_kernel.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "doctor_fix.h"
#include "doctor_report.h"
#include "file.h"
#include "program.h"
#include "text.h"

static const char *kernel_release(void)
{
    static struct utsname name;
    char *text = contents(rooted("/proc/sys/kernel/osrelease"), 128);
    if (text) {
        text[strcspn(text, "\n")] = '\0';
        return text;
    }
    uname(&name);
    return name.release;
}

/* ---------------------------------------------------------------- headers */

char *kernel_headers(void)
{
    return format("/lib/modules/%s/build", kernel_release());
}

bool has_headers(void)
{
    return exists(rooted(format("%s/Makefile", kernel_headers()))) ||
           exists(rooted(format("%s/.config", kernel_headers())));
}

static char *install_headers(const char *release)
{
    /* openSUSE's packages have the version without the flavour: 6.4.0-150600.23.7 */
    size_t version = strcspn(release, "-");
    size_t length = version + strcspn(release + version + 1, "-") + 1;
    return install(format("linux-headers-%s", release), format("kernel-devel-%s", release),
                   format("kernel-default-devel=%.*s", (int)length, release));
}

static void check_headers(void)
{
    const char *release = kernel_release();
    if (has_headers())
        report(OK, "headers", NULL, "%s", kernel_headers());
    else if (!exists(rooted(format("/lib/modules/%s", release))))
        report(
            WRONG, "headers", other_kernel(),
            "no headers for the running kernel, %s, which is not from this distribution's packages",
            release);
    else
        report(WRONG, "headers", install_headers(release), "no headers for the running kernel, %s",
               release);
}

/* ---------------------------------------------------------------- its configuration */

/* y, m, n; 0: unknown. */
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
                                  format("%s/.config", kernel_headers()), "/proc/config"};
    if (exists(rooted("/proc/config.gz"))) {
        int status;
        /* output_of() keeps 64 KB; the whole file has more. */
        const char *const command[] = {
            "sh", "-c",
            "gzip -dc \"$0\" | grep -E '^(# )?CONFIG_(MODULES|UPROBES|UPROBE_EVENTS)[ =]'",
            rooted("/proc/config.gz"), NULL};
        char *text = output_of(command, 10, &status);
        if (status == 0)
            return text;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *text = contents(rooted(places[i]), LIMIT);
        if (text)
            return text;
    }
    return "";
}

/* ---------------------------------------------------------------- modules */

static bool starts_with(const char *path, char letter)
{
    char *text = contents(path, 64);
    return text && *text == letter;
}

static bool secure_boot(void)
{
    glob_t found;
    bool on = false;
    if (glob(rooted("/sys/firmware/efi/efivars/SecureBoot-*"), 0, NULL, &found) == 0) {
        /* Four bytes of attributes, then the value. */
        unsigned char *text = (unsigned char *)contents(found.gl_pathv[0], 8);
        on = text && text[4] == 1;
        globfree(&found);
    }
    return on;
}

static bool may_load_modules(void)
{
    enum { CAP_SYS_MODULE = 16 };
    char *capabilities = field_of(contents(rooted("/proc/self/status"), 65536), "CapBnd");
    return !capabilities || (strtoull(capabilities, NULL, 16) >> CAP_SYS_MODULE & 1);
}

static void check_modules(const char *config)
{
    char *lockdown = contents(rooted("/sys/kernel/security/lockdown"), 256);
    bool is_locked = lockdown && !strstr(lockdown, "[none]") && strchr(lockdown, '[');
    if (option_value(config, "CONFIG_MODULES") == 'n' || !exists(rooted("/proc/modules")))
        report(WRONG, "modules", other_kernel(),
               "this kernel cannot load modules (CONFIG_MODULES is not set)");
    else if (starts_with(rooted("/proc/sys/kernel/modules_disabled"), '1'))
        report(WRONG, "modules", format("%sreboot", sudo()),
               "loading modules is disabled until the next boot (kernel.modules_disabled is 1; see "
               "/etc/sysctl.d)");
    else if (!may_load_modules())
        report(WRONG, "modules",
               "run stap on the host of this container, or start the container with --privileged",
               "this is a container without CAP_SYS_MODULE");
    else if (is_locked || starts_with(rooted("/sys/module/module/parameters/sig_enforce"), 'Y'))
        report(
            WRONG, "modules", format("%smokutil --disable-validation && %sreboot", sudo(), sudo()),
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
    if (uprobes == 'y' || (!uprobes && exists(rooted("/sys/bus/event_source/devices/uprobe"))))
        report(OK, "uprobes", NULL, "the kernel has uprobes (CONFIG_UPROBES)");
    else if (uprobes == 'n')
        report(WRONG, "uprobes", other_kernel(),
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
