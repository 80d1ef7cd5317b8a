/*
 * See doctor_tapset.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor_tapset.h"

#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor_fix.h"
#include "doctor_report.h"
#include "doctor_stap.h"
#include "file.h"
#include "program.h"
#include "shim.h"
#include "text.h"

/* The directories that stap reads, in its order; NULL ends them. */
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

/* The first file of that name, which is the only one that stap reads; NULL: there is none. */
static char *tapset_file(const char *name)
{
    for (char **folder = tapset_folders(); *folder; folder++) {
        char *path = format("%s/%s", *folder, name);
        if (file_exists(under_root(path)))
            return path;
    }
    return NULL;
}

/* Whether *path, the shim's in that file of the tapset and perhaps a pattern, leads to a file. */
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
    char *fix = source_tree ? format("export SYSTEMTAP_TAPSET=%s/build/tapset", source_tree)
                            : reinstall_command();
    bool ours = python && file_has(python, "__python_stp_is_ours");
    if (ours && shim && paths && !tapset_finds_shim(paths, &path))
        report(WRONG, "tapset", reinstall_command(), "%s names a shim that does not exist: %s",
               paths, path);
    else if (ours && shim && paths)
        report(OK, "tapset", NULL, "%s is ours, and finds the shim", python);
    else if (!python)
        report(WRONG, "tapset", fix, "no python.stp in %s", tapset_folders()[0]);
    else if (ours)
        report(WRONG, "tapset", fix, "%s is ours, but %s is missing beside it", python,
               shim ? "python_paths.stpm" : "python_shim.stp");
    else if (shim && paths && is_where_stock_looks(under_root(shim_file())))
        report(NOTE, "tapset", fix,
               "%s is SystemTap's own: python.function.* works, but only with the shim and without "
               "frameptr and modulename",
               python);
    else
        report(WRONG, "tapset", fix, "%s is SystemTap's own: it knows %s", python,
               shim && paths ? "only /usr/lib*/libpython*.so*, where the shim is not"
                             : "neither the shim nor python.line and so on");
}

/* ---------------------------------------------------------------- files of others */

/* stap resolves a probe point in every file that defines it. */
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
        report(program_in_path("python") ? NOTE : WRONG, "tapset",
               format("%smv %s %s.off", sudo_prefix(), path, path),
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
