/*
 * See doctor_stap.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor_stap.h"

#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor_fix.h"
#include "doctor_kernel.h"
#include "doctor_report.h"
#include "file.h"
#include "program.h"
#include "stap_cache.h"
#include "text.h"

static char *stap_path; /* NULL: there is none */

/* A file of stap's cache, and who else can write to it, as it was before stap first ran. */
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
        report(WRONG, "stap", install_command("systemtap", "systemtap", "systemtap"),
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
        report(WRONG, "stap", install_command("systemtap", "systemtap", "systemtap"),
               "%s --version does not print a version", stap_path);
    else if (major < 4 || (major == 4 && minor < 8))
        report(WRONG, "stap", install_command("systemtap", "systemtap", "systemtap"),
               "%s is SystemTap %d.%d: 4.8 or later is needed", stap_path, major, minor);
    else
        report(OK, "stap", NULL, "SystemTap %d.%d, %s", major, minor, stap_path);
}

/* ---------------------------------------------------------------- its runtime */

static const char *runtime_folder(void)
{
    const char *named = getenv("SYSTEMTAP_RUNTIME");
    return named && *named ? named : stap_data_dir("runtime");
}

/* From 6.1.113, 6.6.54, 6.11 and so on the kernel's function is called task_work_cancel_func. */
static bool kernel_has_renamed(void)
{
    char *makefile = read_file(under_root(format("%s/Makefile", kernel_headers())), 65536);
    char common[PATH_MAX] = "";
    /* Debian's build tree includes the Makefile of a common one. */
    if (makefile && sscanf(makefile, "include %4000[^\n]", common) == 1 && strlen(common) > 9)
        common[strlen(common) - 9] = '\0'; /* /Makefile */
    const char *const trees[] = {kernel_headers(), format("%s/source", kernel_headers()), common};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        if (*trees[i] &&
            file_has(format("%s/include/linux/task_work.h", trees[i]), "task_work_cancel_func"))
            return true;
    return false;
}

/* stap's cache does not notice that its runtime has changed. */
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
    /* sourceware PR31117; versions with a magic number in each message recover. */
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

/* ---------------------------------------------------------------- its cache */

void check_cache(void)
{
    char *folder = stap_folder();
    if (!stap_path || !folder)
        return;
    if (open_file)
        report(NOTE, "cache",
               format("chmod -R go-w %s && rm -rf %s", shell_word(folder),
                      shell_word(format("%s/cache", folder))),
               "%s can be written to by %s, who can so change modules that stap loads", open_file,
               open_to);
    else if (file_exists(under_root(folder)))
        report(OK, "cache", NULL, "%s: only its owner can write to it", folder);
}

/* ---------------------------------------------------------------- rights */

/* False: /etc/group has no such group.  *id is its, *listed whether it lists the user. */
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

void check_rights(void)
{
    struct passwd *entry = getpwuid(geteuid());
    const char *user = entry ? entry->pw_name : "$USER";
    gid_t ids[2];
    bool listed[2], in[2];
    static const char *const names[] = {"stapusr", "stapdev"};
    if (geteuid() == 0) {
        report(OK, "rights", NULL, "you are root");
        return;
    }
    for (int i = 0; i < 2; i++) {
        bool found = find_group(names[i], user, &ids[i], &listed[i]);
        in[i] = found && is_in_group(ids[i]);
    }
    if (in[0] && in[1])
        report(OK, "rights", NULL, "%s is in the groups stapusr and stapdev", user);
    else if ((in[0] || listed[0]) && (in[1] || listed[1]))
        report(WRONG, "rights", format("su - %s", user),
               "%s is in stapusr and stapdev, but this session started before that", user);
    else
        report(WRONG, "rights",
               format("sudo usermod -aG stapusr,stapdev %s && su - %s", user, user),
               "%s is neither root nor in the groups stapusr and stapdev (stapsys is not enough: "
               "it may load only what a compile server has signed)",
               user);
}
