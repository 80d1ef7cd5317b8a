/*
 * Checks SystemTap: stap, the tapset that it reads, its runtime, cache and rights, and whether it
 * compiles a probe of a program.
 *
 * SPDX-License-Identifier: MIT
 */

#include "doctor/doctor.h"
#include "lib/files.h"
#include "lib/util.h"

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

/* ---------------------------------------------------------------- compiling a probe */

enum { SECONDS = 60 };

/* The first line of stap's output that names an error; if none does, the first line. */
static char *first_error(char *said)
{
    static const char *const words[] = {"error: ", "ERROR: "};
    char *first = NULL;
    for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n")) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strstr(line, words[i]))
                return line;
        first = first ? first : line;
    }
    return first ? first : "stap says nothing";
}

/* Compiles a probe; returns stap's output, and *status as run_and_capture() sets it.  On a
 * terminal, a line shows meanwhile why doctor waits. */
static char *compile(const char *shim, int *status)
{
    static const char doing[] = "compiling a probe, which takes up to 60 s the first time ...";
    bool said = isatty(1) && isatty(2);
    /* stap leaves out a probe that does nothing: this one prints. */
    char *script =
        format("probe process(\"%s\").mark(\"function__entry\") { println($arg3) }", shim);
    const char *const command[] = {stap_found(), "-p4", "-e", script, NULL};
    /* first_error() needs the untranslated errors of stap and the compiler. */
    setenv("LC_ALL", "C", 1);
    fflush(stdout);
    if (said)
        fputs(doing, stderr);
    char *output = run_and_capture(command, SECONDS, status);
    if (said)
        fprintf(stderr, "\r%*s\r", (int)strlen(doing), "");
    return output;
}

void check_compile(void)
{
    int status;
    const char *shim = under_root(shim_file());
    if (!stap_found() || !has_headers() || !file_exists(shim))
        return;
    char *output = compile(shim, &status);
    if (status == 0)
        report(OK, "compile", NULL, "stap compiles a probe of a program for this kernel");
    else if (status == -1)
        report(NOTE, "compile", NULL,
               "stap takes more than %d s to compile a probe: the first run of a script does, too",
               SECONDS);
    else
        report(WRONG, "compile",
               format("install a newer SystemTap (Linux 6.12 needs 5.2 or later), or do without: "
                      "%sstap-python pyflow --backend bpftrace -c 'python3 PROGRAM.py'",
                      sudo_prefix()),
               "stap cannot compile a probe of a program for this kernel: %.300s",
               first_error(output));
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

static char *stap_path; /* set by check_stap(); NULL: there is none */

/* A file of stap's folder or cache that others could write to before stap ran, and who; or NULL. */
static char *open_file;
static const char *open_to;

const char *stap_found(void)
{
    return stap_path;
}

char *stap_data_dir(const char *folder)
{
    char real[PATH_MAX];
    const char *prefix = "/usr";
    if (stap_path && realpath(stap_path, real))
        prefix = dirname(dirname(strdup(real)));
    char *data = format("%s/share/systemtap/%s", prefix, folder);
    return file_exists(under_root(data)) ? data : format("/usr/share/systemtap/%s", folder);
}

void check_stap(void)
{
    const char *stap = secure_getenv("STAP");
    int status, major, minor;
    stap = stap && *stap ? stap : "stap";
    stap_path = program_in_path(stap);
    if (!stap_path) {
        report_fix(WRONG, "stap", install_fix("systemtap", "systemtap", "systemtap"),
                   "SystemTap is not installed: no %s in PATH", stap);
        return;
    }
    open_file = stap_file_of_others(&open_to);
    if (open_file)
        set_tracers_umask();
    else
        keep_others_out();
    const char *const command[] = {stap_path, "--version", NULL};
    char *version = strstr(run_and_capture(command, 60, &status), "version ");
    if (status != 0 || !version || sscanf(version, "version %d.%d", &major, &minor) != 2)
        report_fix(WRONG, "stap", install_fix("systemtap", "systemtap", "systemtap"),
                   "%s --version does not print a version", stap_path);
    else if (major < 4 || (major == 4 && minor < 8))
        report_fix(WRONG, "stap", install_fix("systemtap", "systemtap", "systemtap"),
                   "%s is SystemTap %d.%d: 4.8 or later is needed", stap_path, major, minor);
    else
        report(OK, "stap", NULL, "SystemTap %d.%d, %s", major, minor, stap_path);
}

/* ---------------------------------------------------------------- runtime */

static const char *runtime_folder(void)
{
    const char *named = getenv("SYSTEMTAP_RUNTIME");
    return named && *named ? named : stap_data_dir("runtime");
}

/* Whether the kernel has renamed task_work_cancel() to task_work_cancel_func(): from 6.11 on, and
 * in stable releases such as 6.1.113 and 6.6.54. */
static bool kernel_has_renamed(void)
{
    char *makefile = read_file(under_root(format("%s/Makefile", kernel_headers())), 65536);
    char common[PATH_MAX] = "";
    /* Debian's build tree includes the Makefile of a common tree, which has the header. */
    if (makefile && sscanf(makefile, "include %4000[^\n]", common) == 1 && strlen(common) > 9)
        common[strlen(common) - 9] = '\0'; /* without "/Makefile" */
    const char *const trees[] = {kernel_headers(), format("%s/source", kernel_headers()), common};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        if (*trees[i] &&
            file_has(format("%s/include/linux/task_work.h", trees[i]), "task_work_cancel_func"))
            return true;
    return false;
}

/* The command that edits the file and empties stap's cache: stap does not notice the edit. */
static char *edit_runtime(const char *sed, const char *file)
{
    return format("%ssed -i %s %s && rm -rf ~/.systemtap/cache", sudo_prefix(), sed, file);
}

bool check_runtime(void)
{
    const char *runtime = runtime_folder();
    if (!stap_path || !file_exists(under_root(runtime)))
        return true;
    char *work = format("%s/stp_task_work.c", runtime),
         *relay = format("%s/transport/relay_v2.c", runtime);
    bool renamed = file_exists(under_root(work)) && kernel_has_renamed() &&
                   !file_has(work, "task_work_cancel_func");
    /* sourceware PR31117.  Versions with a magic number in each message recover from the loss. */
    bool loses = file_has(relay, "if (buf->offset >= buf->chan->subbuf_size) {") &&
                 !file_has(format("%s/transport/transport_msgs.h", runtime), "magic");
    if (renamed)
        report(
            WRONG, "runtime",
            edit_runtime("-E 's/typeof\\(&task_work_cancel\\)/typeof(\\&task_work_cancel_func)/; "
                         "s/kallsyms_lookup_name\\(\"task_work_cancel\"\\)/"
                         "kallsyms_lookup_name(\"task_work_cancel_func\")/'",
                         work),
            "this SystemTap cannot compile probes of programs for this kernel, which has renamed "
            "task_work_cancel");
    if (loses)
        report(NOTE, "runtime",
               edit_runtime("'s/if (buf->offset >= buf->chan->subbuf_size) {/if (buf->offset + "
                            "sizeof(struct _stp_trace) >= buf->chan->subbuf_size) {/'",
                            relay),
               "this SystemTap loses output after the first few KB (sourceware PR31117)");
    if (!renamed && !loses)
        report(OK, "runtime", NULL, "%s, without known faults", runtime);
    return !renamed;
}

/* ---------------------------------------------------------------- cache */

void check_cache(void)
{
    char *folder = stap_folder();
    if (!stap_path || !folder)
        return;
    if (open_file)
        report_fix(NOTE, "cache",
                   command_fix(format("chmod -R go-w %s && rm -rf %s", shell_word(folder),
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
    bool will_be = !stap_path && unattended_install("systemtap");
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
