/*
 * Checks SystemTap: stap, the tapset that it reads, its runtime, cache and rights, and whether it
 * compiles a probe of a program.
 *
 * SPDX-License-Identifier: MIT
 */

#include "doctor/doctor.h"
#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"
#include "systemtap/systemtap.h"

#include <glob.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Set by check_runtime(). */
static struct runtime runtime;

/* ---------------------------------------------------------------- compiling a probe */

/* The way without this SystemTap. */
static char *other_way(void)
{
    return format("install a newer SystemTap, or do without: "
                  "%sstap-python pyflow --backend bpftrace -c 'python3 PROGRAM.py'",
                  sudo_prefix());
}

/* A slow machine takes more than a minute, and where this fails scripts are run by bpftrace. */
enum { SECONDS = 180 };

/* Compiles a probe; returns stap's output, and *status as run_and_capture() sets it.  On a
 * terminal, a line shows meanwhile why doctor waits. */
static char *compile(const char *shim, int *status)
{
    static const char doing[] = "compiling a probe, which may take a minute the first time ...";
    bool said = isatty(1) && isatty(2);
    /* stap leaves out a probe that does nothing: this one prints. */
    char *script =
        format("probe process(\"%s\").mark(\"function__entry\") { println($arg3) }", shim);
    struct texts command = {0};
    texts_add_two(&command, stap_program(), "-p4");
    texts_add_two(&command, "-e", script);
    add_no_warnings(&command, kernel_release());
    use_corrected_runtime(&runtime);
    /* stap_error() needs the untranslated errors of stap and the compiler. */
    setenv("LC_ALL", "C", 1);
    fflush(stdout);
    if (said)
        fputs(doing, stderr);
    char *output = run_and_capture((const char *const *)command.all, SECONDS, status);
    if (said)
        fprintf(stderr, "\r%*s\r", (int)strlen(doing), "");
    return output;
}

/* Reports whether `stap-python precompile` was run. */
static void check_scripts(void)
{
    int seconds;
    if (checked_find(kernel_release(), CHECKED_SCRIPTS, &seconds))
        report(OK, "scripts", NULL, "stap has compiled them for this kernel");
    else if (checked_find(kernel_release(), CHECKED_PROBE, &seconds))
        report_fix(NOTE, "scripts", command_fix("stap-python precompile"),
                   "stap compiles each script when it first runs on this kernel, in about %d s",
                   seconds);
}

void check_compile(void)
{
    int status;
    const char *shim = under_root(shim_file());
    if (!stap_program() || !has_headers(kernel_release()) || !file_exists(shim))
        return;
    int before = 0;
    long long began = monotonic_ms();
    char *output = compile(shim, &status);
    int seconds = (int)((monotonic_ms() - began + 999) / 1000);
    /* What is in stap's cache takes no time. */
    if (status == 0 &&
        (!checked_find(kernel_release(), CHECKED_PROBE, &before) || seconds > before))
        checked_remember(kernel_release(), CHECKED_PROBE, seconds);
    if (status == 0)
        report(OK, "compile", NULL, "stap compiles a probe of a program for this kernel");
    else if (status == -1)
        report(
            NOTE, "compile", NULL,
            "stap takes more than %d s to compile a probe: bpftrace runs the scripts that it can",
            SECONDS);
    else
        report(WRONG, "compile", other_way(),
               "stap cannot compile a probe of a program for this kernel: %.300s",
               stap_error(output));
    if (status == 0)
        check_scripts();
}

/* ---------------------------------------------------------------- tapset */

/* The directories in which stap reads tapsets, in its order; end with NULL. */
static char **tapset_folders(void)
{
    enum { MOST = 64 };
    static char *folders[MOST + 1];
    size_t count = 0;
    const char *named = getenv("SYSTEMTAP_TAPSET"), *data = getenv("XDG_DATA_DIRS");
    folders[count++] = named && *named ? strdup(named) : stap_data_dir("tapset");
    char *rest = data ? strdup(data) : NULL;
    for (char *folder; rest && count < MOST && (folder = strsep(&rest, ":"));)
        if (*folder)
            folders[count++] = format("%s/systemtap/tapset", folder);
    return folders;
}

/* The first file of that name in these directories: stap reads no other.  NULL: there is none. */
static char *tapset_file(const char *name)
{
    for (char **folder = tapset_folders(); *folder; folder++) {
        char *path = format("%s/%s", *folder, name);
        if (file_exists(under_root(path)))
            return path;
    }
    return NULL;
}

/* Whether the shim's path in the tapset file paths exists; *path is the path or pattern, or "". */
static bool tapset_finds_shim(const char *paths, char **path)
{
    glob_t found;
    char *text = read_file(under_root(paths), 1 << 20);
    char *at = text ? strstr(text, "@define __python_shim_path") : NULL;
    at = at ? strchr(at, '"') : NULL;
    *path = at ? strndup(at + 1, strcspn(at + 1, "\"")) : "";
    if (!**path || glob(under_root(*path), 0, NULL, &found) != 0)
        return false;
    globfree(&found);
    return true;
}

/* Whether SystemTap's own python.stp would find the shim. */
static bool is_where_stock_looks(const char *file)
{
    glob_t found;
    struct stat shim, other;
    bool is = false;
    if (stat(file, &shim) != 0 ||
        glob(under_root("/usr/lib*/libpython*.so*"), 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc; i++)
        is |= stat(found.gl_pathv[i], &other) == 0 && other.st_dev == shim.st_dev &&
              other.st_ino == shim.st_ino;
    globfree(&found);
    return is;
}

static void check_ours(void)
{
    char *python = tapset_file("python.stp"), *shim = tapset_file("python_shim.stp"),
         *paths = tapset_file("python_paths.stpm"), *path;
    struct fix export = {.text = format("export SYSTEMTAP_TAPSET=%s/build/tapset",
                                        source_tree ? source_tree : "")},
               fix = source_tree ? export : reinstall_fix();
    bool ours = python && file_has(python, "__python_stp_is_ours");
    if (ours && shim && paths && !tapset_finds_shim(paths, &path))
        report_fix(WRONG, "tapset", reinstall_fix(), "%s names a shim that does not exist: %s",
                   paths, path);
    else if (ours && shim && paths)
        report(OK, "tapset", NULL, "%s is ours, and finds the shim", python);
    else if (!python)
        report_fix(WRONG, "tapset", fix, "no python.stp in %s", tapset_folders()[0]);
    else if (ours)
        report_fix(WRONG, "tapset", fix, "%s is ours, but %s is missing beside it", python,
                   shim ? "python_paths.stpm" : "python_shim.stp");
    else if (shim && paths && is_where_stock_looks(under_root(shim_file())))
        report_fix(
            NOTE, "tapset", fix,
            "%s is SystemTap's own: python.function.* works, but only with the shim and without "
            "frameptr and modulename",
            python);
    else
        report_fix(WRONG, "tapset", fix, "%s is SystemTap's own: it knows %s", python,
                   shim && paths ? "only /usr/lib*/libpython*.so*, where the shim is not"
                                 : "neither the shim nor python.line and so on");
}

/* ---------------------------------------------------------------- probe points in other files */

/* Reports other files with python.function probe points: stap resolves a probe point in every file
 * that defines it. */
static void check_others_in(const char *pattern)
{
    glob_t found;
    if (glob(under_root(pattern), 0, NULL, &found) != 0)
        return;
    size_t root = strlen(under_root("/")) - 1;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i] + root;
        bool is_ours = file_has(path, "__python_stp_is_ours");
        if (strcmp(strrchr(path, '/'), "/python.stp") == 0 || is_ours ||
            !file_has(path, "\nprobe python.function."))
            continue;
        report_fix(
            program_in_path("python") ? NOTE : WRONG, "tapset",
            command_fix(format("%smv %s %s", sudo_prefix(), shell_word(path),
                               shell_word(format("%s.off", path)))),
            "%s also defines python.function.*: stap resolves both, and fails if it finds no "
            "program python",
            path);
    }
    globfree(&found);
}

void check_tapset(void)
{
    check_ours();
    for (char **folder = tapset_folders(); *folder; folder++) {
        check_others_in(format("%s/*.stp", *folder));
        check_others_in(format("%s/*/*.stp", *folder));
    }
}

/* ---------------------------------------------------------------- stap */

/* A file of stap's folder or cache that others could write to before stap ran, and who; or NULL. */
static char *open_file;
static const char *open_to;

void check_stap(void)
{
    if (!stap_program()) {
        report_fix(WRONG, "stap", install_fix("systemtap", "systemtap", "systemtap"),
                   "SystemTap is not installed: no %s in PATH", stap_name());
        return;
    }
    leave_others_folders();
    open_file = stap_file_of_others(&open_to);
    if (open_file)
        set_tracers_umask();
    else
        keep_others_out();
    struct stap_version version = stap_version();
    if (!version.major)
        report_fix(WRONG, "stap", install_fix("systemtap", "systemtap", "systemtap"),
                   "%s --version does not print a version", stap_program());
    else if (version.major < 4 || (version.major == 4 && version.minor < 8))
        report_fix(WRONG, "stap", install_fix("systemtap", "systemtap", "systemtap"),
                   "%s is SystemTap %d.%d: 4.8 or later is needed", stap_program(), version.major,
                   version.minor);
    else
        report(OK, "stap", NULL, "SystemTap %d.%d, %s", version.major, version.minor,
               stap_program());
}

/* ---------------------------------------------------------------- runtime */

bool check_runtime(void)
{
    const char *why;
    /* Which faults there are depends on the kernel. */
    if (!stap_program() || !has_headers(kernel_release()))
        return true;
    runtime = runtime_for(kernel_release());
    if (!runtime.folder)
        return true;
    if (runtime.too_old) {
        if (program_in_path("bpftrace"))
            report(WRONG, "runtime", other_way(), "%s", runtime.too_old);
        else
            report_fix(WRONG, "runtime", install_fix("bpftrace", "bpftrace", "bpftrace"),
                       "%s; with bpftrace, some scripts run without it", runtime.too_old);
        return false;
    }
    bool is_fatal = runtime.faults & FAULTS_FATAL, corrects = runtime.faults && !runtime.given;
    char *copy = corrects ? runtime_corrected(&runtime, &why) : NULL;
    if (!runtime.faults)
        report(OK, "runtime", NULL, "%s, without known faults", runtime.folder);
    else if (runtime.given)
        report(is_fatal ? WRONG : NOTE, "runtime", "unset SYSTEMTAP_RUNTIME",
               "%s, which SYSTEMTAP_RUNTIME names, is used as it is, but %s", runtime.folder,
               runtime_faults_text(runtime.faults));
    else if (copy)
        report(OK, "runtime", NULL,
               "stap-python corrects a copy of %s, which %s; for plain stap: export "
               "SYSTEMTAP_RUNTIME=$(stap-python runtime)",
               runtime.folder, runtime_faults_text(runtime.faults));
    else
        report(is_fatal ? WRONG : NOTE, "runtime", "export SYSTEMTAP_DIR=FOLDER, one of your own",
               "%s %s; stap-python can't make a corrected copy: %s", runtime.folder,
               runtime_faults_text(runtime.faults), why);
    return !is_fatal || copy;
}

/* ---------------------------------------------------------------- cache */

void check_cache(void)
{
    char *folder = stap_folder();
    if (!stap_program() || !folder)
        return;
    if (open_file)
        report_fix(NOTE, "cache",
                   command_fix(format("chmod go-w %s && rm -rf %s", shell_word(folder),
                                      shell_word(format("%s/cache", folder)))),
                   "%s can be written to by %s, who can so change modules that stap loads",
                   open_file, open_to);
    else if (file_exists(under_root(folder)))
        report(OK, "cache", NULL, "%s: only its owner can write to it", folder);
}

/* ---------------------------------------------------------------- rights */

/* Finds a group in /etc/group: its *id, and whether it lists the user.  False: no such group. */
static bool find_group(const char *name, const char *user, gid_t *id, bool *listed)
{
    FILE *file = fopen(under_root("/etc/group"), "re");
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

/* Adds the user to the groups.  They exist once SystemTap's package is installed, which --fix does
 * first; without them usermod would fail. */
static struct fix join_groups(const char *user, bool are_there)
{
    char *usermod = format("sudo usermod -aG stapusr,stapdev %s", user);
    struct fix fix = command_fix(format("%s && su - %s", usermod, user));
    bool will_be = !stap_program() && unattended_install("systemtap");
    fix.command = fix.command && (are_there || will_be) ? usermod : NULL;
    fix.by_hand = fix.command;
    return fix;
}

static struct fix log_in_again(const char *user)
{
    char *su = format("su - %s", user);
    return (struct fix){
        .text = su, .by_hand = format("log in again, for the groups; or for one session: %s", su)};
}

void check_rights(void)
{
    struct passwd *entry = getpwuid(geteuid());
    const char *user = entry ? entry->pw_name : "$USER", *word = entry ? shell_word(user) : user;
    gid_t ids[2];
    bool listed[2], in[2], found[2];
    static const char *const names[] = {"stapusr", "stapdev"};
    for (int i = 0; i < 2; i++) {
        found[i] = find_group(names[i], user, &ids[i], &listed[i]);
        in[i] = found[i] && is_in_group(ids[i]);
    }
    if (geteuid() == 0)
        report(OK, "rights", NULL, "you are root%s",
               found[0] && found[1] ? "; others need the groups stapusr and stapdev" : "");
    else if (in[0] && in[1])
        report(OK, "rights", NULL, "%s is in the groups stapusr and stapdev", user);
    else if ((in[0] || listed[0]) && (in[1] || listed[1]))
        report_fix(WRONG, "rights", log_in_again(word),
                   "%s is in stapusr and stapdev, but this session started before that", user);
    else
        report_fix(WRONG, "rights", join_groups(word, entry && found[0] && found[1]),
                   "%s is neither root nor in the groups stapusr and stapdev (stapsys is not "
                   "enough: it may load only what a compile server has signed)",
                   user);
}
