/*
 * `stap-python doctor`: what stands between this machine and a first probe, in the order in which
 * one meets it, with the command that mends each.
 *
 * It reads /proc, /sys, /etc, /lib/modules and so on under STAP_PYTHON_ROOT, if that is set, so
 * that tests can give it other machines.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stap_python.h"

#include <ctype.h>
#include <dlfcn.h>
#include <glob.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: stap-python doctor\n"
    "\n"
    "Says what stands between this machine and a first probe of a Python program: line by line "
    "what\n"
    "is in order (ok), what may surprise you (note) and what is wrong, each with the one command\n"
    "that mends it. The exit status is 0 if a probe would work, else 1.\n"
    "\n"
    "environment: STAP is the stap to look at; NO_COLOR, if set, keeps the output without "
    "colours;\n"
    "  SYSTEMTAP_TAPSET, SYSTEMTAP_RUNTIME and XDG_DATA_DIRS are heeded as stap does. Under\n"
    "  STAP_PYTHON_ROOT, a folder, it looks for all files, /proc and /sys too: for tests.\n";

/* ---------------------------------------------------------------- the lines */

enum verdict { OK, NOTE, WRONG };

static bool colours;
static unsigned wrong;

/* mend: the command, or NULL. */
static void say(enum verdict verdict, const char *topic, const char *mend, const char *text, ...)
    __attribute__((format(printf, 4, 5)));

static void say(enum verdict verdict, const char *topic, const char *mend, const char *text, ...)
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
    if (mend)
        printf("%-16smend: %s\n", "", printable(mend));
    wrong += verdict == WRONG;
}

/* ---------------------------------------------------------------- the distribution */

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

static const char *sudo(void)
{
    return geteuid() == 0 ? "" : "sudo ";
}

/* Installs packages, by their names for each of the three. */
static char *install(const char *apt, const char *dnf, const char *zypper)
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

/* The shim and the tapset are two packages. */
static char *reinstall(void)
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
        return format("install %s anew", packages);
    }
}

/* Its own kernel, in place of one that it doesn't know. */
static char *distribution_kernel(void)
{
#if defined(__aarch64__)
    static const char debian[] = "linux-image-arm64 linux-headers-arm64";
#else
    static const char debian[] = "linux-image-amd64 linux-headers-amd64";
#endif
    char *release = contents(rooted("/etc/os-release"), 65536);
    bool is_ubuntu = release && strstr(release, "ID=ubuntu");
    return format("%s && %sreboot",
                  install(is_ubuntu ? "linux-generic" : debian, "kernel kernel-devel",
                          "kernel-default kernel-default-devel"),
                  sudo());
}

/* In a checkout there is a guest for machines whose kernel won't do. */
static char *or_guest(char *mend)
{
    return source_tree ? format("STAP=%s/test/vm/stap stap-python SCRIPT", source_tree) : mend;
}

/* ---------------------------------------------------------------- stap */

static const char *stap_program;
static char *stap_path; /* NULL: not there */

/* Where the stap in PATH has its files. */
static char *stap_data(const char *folder)
{
    char real[PATH_MAX];
    const char *prefix = "/usr";
    if (stap_path && realpath(stap_path, real))
        prefix = dirname(dirname(strdup(real)));
    char *data = format("%s/share/systemtap/%s", prefix, folder);
    return exists(rooted(data)) ? data : format("/usr/share/systemtap/%s", folder);
}

static const char *runtime_folder(void)
{
    const char *named = getenv("SYSTEMTAP_RUNTIME");
    return named && *named ? named : stap_data("runtime");
}

static void check_stap(void)
{
    const char *named = secure_getenv("STAP");
    int status, major, minor;
    stap_program = named && *named ? named : "stap";
    stap_path = program_in_path(stap_program);
    if (!stap_path) {
        say(WRONG, "stap", install("systemtap", "systemtap", "systemtap"),
            "SystemTap is not installed: no %s in PATH", stap_program);
        return;
    }
    const char *const command[] = {stap_path, "--version", NULL};
    char *version = strstr(output_of(command, 60, &status), "version ");
    if (status != 0 || !version || sscanf(version, "version %d.%d", &major, &minor) != 2)
        say(WRONG, "stap", install("systemtap", "systemtap", "systemtap"),
            "%s --version does not say which it is", stap_path);
    else if (major < 4 || (major == 4 && minor < 8))
        say(WRONG, "stap", install("systemtap", "systemtap", "systemtap"),
            "%s is SystemTap %d.%d: 4.8 is needed", stap_path, major, minor);
    else
        say(OK, "stap", NULL, "SystemTap %d.%d, %s", major, minor, stap_path);
}

/* ---------------------------------------------------------------- the kernel */

static const char *kernel(void)
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

static char *headers(void)
{
    return format("/lib/modules/%s/build", kernel());
}

static bool has_headers(void)
{
    return exists(rooted(format("%s/Makefile", headers()))) ||
           exists(rooted(format("%s/.config", headers())));
}

static void check_headers(void)
{
    const char *release = kernel();
    if (has_headers())
        say(OK, "headers", NULL, "%s", headers());
    else if (!exists(rooted(format("/lib/modules/%s", release))))
        say(WRONG, "headers", or_guest(distribution_kernel()),
            "none for the running kernel, %s, which is none of this system's packages", release);
    else
        say(WRONG, "headers",
            install(format("linux-headers-%s", release), format("kernel-devel-%s", release),
                    format("kernel-default-devel=%.*s",
                           (int)strcspn(release, "-") +
                               (int)strcspn(release + strcspn(release, "-") + 1, "-") + 1,
                           release)),
            "none for the running kernel, %s", release);
}

/* Y, m, n; 0: not known. */
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
    const char *const places[] = {format("/boot/config-%s", kernel()),
                                  format("/lib/modules/%s/config", kernel()),
                                  format("%s/.config", headers()), "/proc/config"};
    if (exists(rooted("/proc/config.gz"))) {
        int status;
        /* The 64 KB that we take of it may end before what we look for. */
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
    char *status = contents(rooted("/proc/self/status"), 65536);
    char *capabilities = status ? field_of(status, "CapBnd") : NULL;
    return !capabilities || (strtoull(capabilities, NULL, 16) >> CAP_SYS_MODULE & 1);
}

static void check_modules(const char *config)
{
    char *lockdown = contents(rooted("/sys/kernel/security/lockdown"), 256);
    bool is_locked = lockdown && !strstr(lockdown, "[none]") && strchr(lockdown, '[');
    if (option_value(config, "CONFIG_MODULES") == 'n' || !exists(rooted("/proc/modules")))
        say(WRONG, "modules", or_guest(distribution_kernel()),
            "this kernel loads no modules (CONFIG_MODULES is not set)");
    else if (starts_with(rooted("/proc/sys/kernel/modules_disabled"), '1'))
        say(WRONG, "modules", format("%sreboot", sudo()),
            "loading is switched off until the next boot (kernel.modules_disabled is 1; see "
            "/etc/sysctl.d)");
    else if (!may_load_modules())
        say(WRONG, "modules",
            "run stap on the host of this container, or start that with --privileged",
            "this is a container without CAP_SYS_MODULE");
    else if (is_locked || starts_with(rooted("/sys/module/module/parameters/sig_enforce"), 'Y'))
        say(WRONG, "modules", format("%smokutil --disable-validation && %sreboot", sudo(), sudo()),
            "the kernel takes signed ones only (%s); \"man stap\", SIGNED MODULES, tells of "
            "signing them",
            secure_boot() ? "Secure Boot" : "lockdown");
    else
        say(OK, "modules", NULL, "the kernel loads them%s",
            secure_boot() ? ", with Secure Boot on" : "");
}

static void check_uprobes(const char *config)
{
    char uprobes = option_value(config, "CONFIG_UPROBES");
    if (uprobes == 'y' || (!uprobes && exists(rooted("/sys/bus/event_source/devices/uprobe"))))
        say(OK, "uprobes", NULL, "the kernel has them (CONFIG_UPROBES)");
    else if (uprobes == 'n')
        say(WRONG, "uprobes", or_guest(distribution_kernel()),
            "this kernel has none (CONFIG_UPROBES is not set)");
    else
        say(NOTE, "uprobes", NULL,
            "it can't be told whether this kernel has them: no config-%s in /boot", kernel());
}

/* ---------------------------------------------------------------- stap with this kernel */

static bool file_has(const char *path, const char *text)
{
    char *all = contents(rooted(path), 4 << 20);
    return all && strstr(all, text);
}

/* The kernel's function is called task_work_cancel_func since 6.1.113, 6.6.54, 6.11 and so on. */
static bool kernel_has_renamed(void)
{
    char *makefile = contents(rooted(format("%s/Makefile", headers())), 65536);
    char common[PATH_MAX] = "";
    /* Debian's build tree leads to a common one. */
    if (makefile && sscanf(makefile, "include %4000[^\n]", common) == 1 && strlen(common) > 9)
        common[strlen(common) - 9] = '\0'; /* /Makefile */
    const char *const trees[] = {headers(), format("%s/source", headers()), common};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        if (*trees[i] &&
            file_has(format("%s/include/linux/task_work.h", trees[i]), "task_work_cancel_func"))
            return true;
    return false;
}

static void check_runtime(void)
{
    const char *runtime = runtime_folder();
    if (!stap_path || !exists(rooted(runtime)))
        return;
    char *work = format("%s/stp_task_work.c", runtime),
         *relay = format("%s/transport/relay_v2.c", runtime);
    bool renamed =
        exists(rooted(work)) && kernel_has_renamed() && !file_has(work, "task_work_cancel_func");
    /* sourceware PR31117; versions with a magic number in each message recover. */
    bool loses = file_has(relay, "if (buf->offset >= buf->chan->subbuf_size) {") &&
                 !file_has(format("%s/transport/transport_msgs.h", runtime), "magic");
    /* The cache's key knows nothing of the runtime. */
    if (renamed)
        say(WRONG, "runtime",
            format(
                "%ssed -i -E 's/typeof\\(&task_work_cancel\\)/typeof(\\&task_work_cancel_func)/; "
                "s/kallsyms_lookup_name\\(\"task_work_cancel\"\\)/"
                "kallsyms_lookup_name(\"task_work_cancel_func\")/' %s && rm -rf ~/.systemtap/cache",
                sudo(), work),
            "this SystemTap compiles no probes of programs for this kernel, which has renamed "
            "task_work_cancel");
    if (loses)
        say(NOTE, "runtime",
            format("%ssed -i 's/if (buf->offset >= buf->chan->subbuf_size) {/if (buf->offset + "
                   "sizeof(struct _stp_trace) >= buf->chan->subbuf_size) {/' %s && rm -rf "
                   "~/.systemtap/cache",
                   sudo(), relay),
            "this SystemTap loses output behind the first few KB (sourceware PR31117)");
    if (!renamed && !loses)
        say(OK, "runtime", NULL, "%s, without the faults that are known", runtime);
}

/* ---------------------------------------------------------------- rights */

/* The id of a group in /etc/group; whether the user is listed in it. */
static bool find_group(const char *name, const char *user, gid_t *id, bool *listed)
{
    FILE *file = fopen(rooted("/etc/group"), "re");
    struct group *group;
    bool found = false;
    *listed = false;
    while (file && !found && (group = fgetgrent(file))) {
        if (strcmp(group->gr_name, name) != 0)
            continue;
        found = true;
        *id = group->gr_gid;
        for (char **member = group->gr_mem; *member; member++)
            *listed |= user && strcmp(*member, user) == 0;
    }
    if (file)
        fclose(file);
    return found;
}

static bool is_in_group(gid_t id)
{
    gid_t groups[1024];
    int count = getgroups(1024, groups);
    bool is = getegid() == id;
    for (int i = 0; i < count; i++)
        is |= groups[i] == id;
    return is;
}

static void check_rights(void)
{
    struct passwd *entry = getpwuid(geteuid());
    const char *user = entry ? entry->pw_name : "$USER";
    gid_t ids[2];
    bool listed[2], in[2];
    static const char *const names[] = {"stapusr", "stapdev"};
    if (geteuid() == 0) {
        say(OK, "rights", NULL, "you are root");
        return;
    }
    for (int i = 0; i < 2; i++) {
        bool found = find_group(names[i], user, &ids[i], &listed[i]);
        in[i] = found && is_in_group(ids[i]);
    }
    if (in[0] && in[1])
        say(OK, "rights", NULL, "%s is in the groups stapusr and stapdev", user);
    else if ((in[0] || listed[0]) && (in[1] || listed[1]))
        say(WRONG, "rights", format("su - %s", user),
            "%s is in stapusr and stapdev, but this session began before", user);
    else
        say(WRONG, "rights", format("sudo usermod -aG stapusr,stapdev %s && su - %s", user, user),
            "%s is neither root nor in the groups stapusr and stapdev (stapsys is not enough: "
            "it loads only what a compile server has signed)",
            user);
}

/* ---------------------------------------------------------------- interpreters */

/* The markers of an interpreter's own with that worth. */
static char *own_markers(const struct interpreter *python, const char *worth)
{
    char *names = "";
    for (unsigned i = 0; marker_name(i); i++)
        if (strcmp(own_marker(python, i), worth) == 0)
            names = format("%s%s%s", names, *names ? ", " : "", marker_name(i));
    return names;
}

static void check_interpreters(void)
{
    struct interpreter *all;
    size_t count = interpreters_find(&all), fit = 0;
    for (size_t i = 0; i < count; i++) {
        const char *reason = unfit(&all[i].file);
        char *live = own_markers(&all[i], "live"), *dead = own_markers(&all[i], "dead");
        char *text = format("%s, 3.%d: its own live markers: %s%s%s%s", all[i].path,
                            all[i].file.minor, *live ? live : "none", *dead ? "; dead: " : "", dead,
                            enabled_by(all[i].path) ? "; loads the shim at each start" : "");
        bool looked_in = *live && tapset_looks_in(all[i].code);
        fit += !reason || looked_in;
        if (reason)
            say(NOTE, "python", NULL, "%s; the shim does nothing in it: %s", text, reason);
        else
            say(OK, "python", NULL, "%s", text);
    }
    if (!count)
        say(WRONG, "python", install("python3", "python3", "python3"),
            "no CPython 3.6 or later is found");
    else if (!fit)
        say(WRONG, "python", install("python3", "python3", "python3"),
            "none of them has markers, or takes the shim");
}

/* ---------------------------------------------------------------- the shim */

/* Loads it in a child, which is no Python; NULL or the dynamic linker's message. */
static const char *load_error(const char *file)
{
    int ends[2];
    if (pipe2(ends, 0) != 0)
        return NULL;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        if (!dlopen(file, RTLD_NOW))
            dprintf(ends[1], "%s", dlerror());
        _exit(0);
    }
    close(ends[1]);
    char *text = calloc(1, 1024);
    ssize_t length = text ? read(ends[0], text, 1023) : 0;
    int status = 0;
    close(ends[0]);
    waitpid(pid, &status, 0);
    if (length > 0)
        return text;
    return WIFSIGNALED(status) ? "it does not return" : NULL;
}

/* Whether SystemTap's own python.stp would find the shim. */
static bool lies_where_stock_looks(const char *file)
{
    glob_t found;
    struct stat shim, other;
    bool is = false;
    if (stat(file, &shim) != 0 || glob(rooted("/usr/lib*/libpython*.so*"), 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc; i++)
        is |= stat(found.gl_pathv[i], &other) == 0 && other.st_dev == shim.st_dev &&
              other.st_ino == shim.st_ino;
    globfree(&found);
    return is;
}

static void check_shim(void)
{
    struct elf_file file;
    const char *why = NULL, *path = rooted(shim_file());
    if (!exists(path))
        say(WRONG, "shim", reinstall(), "%s is not there", shim_file());
    else if (!elf_read(path, &file, &why) || !file.entries)
        say(WRONG, "shim", reinstall(), "%s is not the shim: %s", shim_file(),
            why && !file.entries ? why : "it has no markers");
    else if ((why = load_error(path)))
        say(WRONG, "shim", reinstall(), "%s can't be loaded: %s", shim_file(), why);
    else
        say(OK, "shim", NULL, "%s", shim_file());
}

/* ---------------------------------------------------------------- the tapset */

/* The folders that stap reads, in its order. */
static char **tapset_folders(void)
{
    enum { MOST = 64 };
    static char *folders[MOST + 1];
    size_t count = 0;
    const char *named = getenv("SYSTEMTAP_TAPSET"), *data = getenv("XDG_DATA_DIRS");
    folders[count++] = named && *named ? strdup(named) : stap_data("tapset");
    char *rest = data ? strdup(data) : NULL;
    for (char *folder; rest && count < MOST && (folder = strsep(&rest, ":"));)
        if (*folder)
            folders[count++] = format("%s/systemtap/tapset", folder);
    return folders;
}

/* The first file of that name that stap reads: others of the same name it passes over. */
static char *tapset_file(const char *name)
{
    for (char **folder = tapset_folders(); *folder; folder++) {
        char *path = format("%s/%s", *folder, name);
        if (exists(rooted(path)))
            return path;
    }
    return NULL;
}

/* The shim's path in the tapset, perhaps a pattern: that of a file which is there. */
static bool tapset_finds_shim(const char *paths, char **path)
{
    glob_t found;
    char *text = contents(rooted(paths), 1 << 20);
    char *at = text ? strstr(text, "@define __python_shim_path") : NULL;
    at = at ? strchr(at, '"') : NULL;
    *path = at ? strndup(at + 1, strcspn(at + 1, "\"")) : "";
    if (!**path || glob(rooted(*path), 0, NULL, &found) != 0)
        return false;
    globfree(&found);
    return true;
}

static void check_tapset(void)
{
    char *python = tapset_file("python.stp"), *shim = tapset_file("python_shim.stp"),
         *paths = tapset_file("python_paths.stpm"), *path;
    char *mend =
        source_tree ? format("export SYSTEMTAP_TAPSET=%s/build/tapset", source_tree) : reinstall();
    bool ours = python && file_has(python, "__python_stp_is_ours");
    if (ours && shim && paths && !tapset_finds_shim(paths, &path))
        say(WRONG, "tapset", reinstall(), "%s names a shim that is not there: %s", paths, path);
    else if (ours && shim && paths)
        say(OK, "tapset", NULL, "%s is ours, and finds the shim", python);
    else if (!python)
        say(WRONG, "tapset", mend, "there is no python.stp in %s", tapset_folders()[0]);
    else if (ours)
        say(WRONG, "tapset", mend, "%s is ours, but %s is missing beside it", python,
            shim ? "python_paths.stpm" : "python_shim.stp");
    else if (shim && paths && lies_where_stock_looks(rooted(shim_file())))
        say(NOTE, "tapset", mend,
            "%s is SystemTap's own: python.function.* works, in the shim alone and without "
            "frameptr and modulename",
            python);
    else
        say(WRONG, "tapset", mend, "%s is SystemTap's own: it knows %s", python,
            shim && paths ? "only /usr/lib*/libpython*.so*, where the shim is not"
                          : "neither the shim nor python.line and so on");
}

/* A file of others that has probe points of ours too: stap wants to resolve both. */
static void check_others_in(const char *pattern)
{
    glob_t found;
    if (glob(rooted(pattern), 0, NULL, &found) != 0)
        return;
    size_t root = strlen(rooted("/")) - 1;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i] + root;
        bool is_ours = file_has(path, "__python_stp_is_ours");
        if (strcmp(strrchr(path, '/'), "/python.stp") == 0 || is_ours ||
            !file_has(path, "\nprobe python.function."))
            continue;
        say(program_in_path("python") ? NOTE : WRONG, "tapset",
            format("%smv %s %s.off", sudo(), path, path),
            "%s has python.function.* of its own, which stap resolves beside the others, or fails "
            "where it finds no python",
            path);
    }
    globfree(&found);
}

static void check_others(void)
{
    for (char **folder = tapset_folders(); *folder; folder++) {
        check_others_in(format("%s/*.stp", *folder));
        check_others_in(format("%s/*/*.stp", *folder));
    }
}

/* ---------------------------------------------------------------- */

int doctor_main(char **arguments)
{
    const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    help_if_asked(arguments, usage);
    if (arguments[0])
        die(USAGE, "doctor: unexpected argument '%s' (see stap-python doctor --help)",
            arguments[0]);
    colours = isatty(1) && !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
    check_stap();
    check_headers();
    const char *config = kernel_config();
    check_modules(config);
    check_uprobes(config);
    check_runtime();
    check_rights();
    check_interpreters();
    check_shim();
    check_tapset();
    check_others();
    if (wrong)
        printf("\n%u %s between this machine and a first probe: mend the first, and ask again\n",
               wrong, wrong == 1 ? "thing stands" : "things stand");
    else
        printf("\na probe works here: stap-python pyflow -c 'python3 PROGRAM.py'\n");
    return wrong ? FAILED : 0;
}
