/*
 * See interpreter.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "interpreter.h"

#include <fnmatch.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cpython_layout.h"
#include "file.h"
#include "free_threaded.h"
#include "installed.h"
#include "native_table.h"
#include "text.h"
#include "trust.h"

/* ---------------------------------------------------------------- what is known of versions */

const char *native_marker_state(const struct interpreter *python, unsigned marker)
{
    if (!(python->file.markers & 1u << marker))
        return "-";
    for (size_t i = 0; i < sizeof native / sizeof *native; i++)
        if (strcmp(native[i].marker, marker_name(marker)) == 0 &&
            python->file.minor >= native[i].first && python->file.minor <= native[i].last)
            return native[i].kind;
    return python->file.minor < 0 ? "?" : "dead";
}

/* A pattern of native.list with a minor version in place of %d. */
static char *pattern_for(const char *path, int minor)
{
    const char *mark = strstr(path, "%d");
    return mark ? format("%.*s%d%s", (int)(mark - path), path, minor, mark + 2) : strdup(path);
}

bool tapset_searches(const char *path)
{
    for (size_t i = 0; i < sizeof native_paths / sizeof *native_paths; i++)
        for (int minor = CPYTHON_OLDEST_MINOR; minor <= CPYTHON_NEXT_MINOR; minor++) {
            glob_t found;
            bool is = false;
            char real[PATH_MAX];
            if (fnmatch(pattern_for(under_root(native_paths[i]), minor), path, FNM_PATHNAME) == 0)
                return true;
            /* /usr/bin/python3.11 may be a link. */
            if (glob(pattern_for(under_root(native_paths[i]), minor), 0, NULL, &found) == 0) {
                for (size_t j = 0; j < found.gl_pathc; j++)
                    is |= realpath(found.gl_pathv[j], real) && strcmp(real, path) == 0;
                globfree(&found);
            }
            if (is)
                return true;
        }
    return false;
}

char *short_version(const struct elf_file *file)
{
    if (file->other)
        return strdup(file->other);
    return file->minor < 0 ? NULL : format("3.%d%s", file->minor, file->free_threaded ? "t" : "");
}

const char *unsupported_reason(const struct elf_file *file)
{
    struct elf_file self;
    const char *why;
    if (file->other)
        return format("it is %s, not CPython: nothing can be seen of it", file->other);
    if (!file->is_exported)
        return "it does not export CPython's functions";
    if (file->is_static)
        return "it is statically linked";
    if (file->is_musl)
        return "its C library is musl";
    if (elf_read("/proc/self/exe", &self, &why) &&
        (file->wide != self.wide || file->machine != self.machine))
        return "it is built for another architecture than the shim";
    if (file->minor >= 0 && file->minor < CPYTHON_OLDEST_MINOR)
        return format("it is older than CPython 3.%d", CPYTHON_OLDEST_MINOR);
    if (file->minor > CPYTHON_NEXT_MINOR)
        return format("it is newer than CPython 3.%d", CPYTHON_NEXT_MINOR);
    if (file->free_threaded && !file->version)
        return "it is free-threaded, and its version is unknown";
    if (file->free_threaded && !free_threading_supported(file->version))
        return FREE_THREADING_TOO_OLD;
    return NULL;
}

/* ---------------------------------------------------------------- one of them */

/* Where the dynamic linker would find the libpython that the program needs; NULL: nowhere. */
static char *find_libpython(const char *program, const struct elf_file *file)
{
    char *folders = format(
        "%s:../lib:/usr/local/%s:/usr/local/lib64:/usr/local/lib:/usr/%s:/usr/lib64:/usr/lib",
        file->runpath ? file->runpath : "", MULTIARCH, MULTIARCH);
    char *origin = dirname(strdup(program));
    for (char *folder; (folder = strsep(&folders, ":"));) {
        char *path = NULL;
        const char *rest = strncmp(folder, "$ORIGIN", 7) == 0     ? folder + 7
                           : strncmp(folder, "${ORIGIN}", 9) == 0 ? folder + 9
                                                                  : NULL;
        if (rest)
            path = format("%s%s/%s", origin, rest, file->libpython);
        else if (*folder == '/')
            path = format("%s/%s", under_root(folder), file->libpython);
        else if (*folder)
            path = format("%s/%s/%s", origin, folder, file->libpython);
        if (path && file_exists(path))
            return path;
    }
    return NULL;
}

/* Fills in what tells its code from that of others. */
static bool identify(struct interpreter *python)
{
    struct stat status;
    char real[PATH_MAX];
    if (stat(python->code, &status) != 0)
        return false;
    python->dev = status.st_dev;
    python->ino = status.st_ino;
    if (realpath(python->code, real))
        python->code = strdup(real);
    return true;
}

bool interpreter_open(const char *path, struct interpreter *found, const char **why)
{
    char real[PATH_MAX];
    const char *file = realpath(path, real) ? real : path;
    *found = (struct interpreter){.path = strdup(path), .code = strdup(file)};
    if (!elf_read(file, &found->file, why))
        return false;
    if (!found->file.is_cpython && found->file.libpython) {
        char *needed = found->file.libpython, *library = find_libpython(file, &found->file);
        *why = format("it needs %s, which is not found", needed);
        if (!library || !elf_read(library, &found->file, why))
            return false;
        found->code = library;
    }
    *why = unsupported_reason(&found->file);
    if (found->file.other)
        return false;
    *why = "not a CPython, and it has no markers of provider python";
    if (!found->file.is_cpython && !found->file.entries)
        return false;
    return identify(found);
}

const char *unsafe_python(const char *program)
{
    struct interpreter python;
    glob_t found;
    char real[PATH_MAX];
    const char *why = unsafe_path(program), *none;
    /* What a script starts can't be told. */
    if (why || !realpath(program, real) || !interpreter_open(program, &python, &none))
        return why;
    why = unsafe_path(python.code);
    char *library =
        format("%s/lib*/python3.%d*", dirname(dirname(strdup(real))), python.file.minor);
    if (why || glob(library, 0, NULL, &found) != 0)
        return why;
    for (size_t i = 0; i < found.gl_pathc && !why; i++) {
        char *encodings = format("%s/encodings", found.gl_pathv[i]);
        why = unsafe_path(file_exists(encodings) ? encodings : found.gl_pathv[i]);
    }
    return why;
}

/* ---------------------------------------------------------------- all of them */

struct interpreters {
    struct interpreter *all;
    size_t count;
};

static void add(struct interpreters *list, const char *path)
{
    struct interpreter found;
    const char *why;
    bool is_cpython = interpreter_open(path, &found, &why) && found.file.is_cpython;
    if (!is_cpython && !(found.file.other && identify(&found)))
        return;
    for (size_t i = 0; i < list->count; i++)
        if (list->all[i].dev == found.dev && list->all[i].ino == found.ino)
            return;
    list->all = reallocarray(list->all, list->count + 1, sizeof *list->all);
    if (!list->all)
        abort();
    list->all[list->count++] = found;
}

static void add_matching(struct interpreters *list, const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        /* Not python3.11-config. */
        if (!strchr(name, '-'))
            add(list, found.gl_pathv[i]);
    }
    globfree(&found);
}

size_t interpreters_find(struct interpreter **found)
{
    struct interpreters list = {0};
    for (size_t i = 0; i < sizeof native_paths / sizeof *native_paths; i++)
        for (int minor = CPYTHON_OLDEST_MINOR; minor <= CPYTHON_NEXT_MINOR; minor++) {
            add_matching(&list, pattern_for(under_root(native_paths[i]), minor));
            /* The free-threaded build has a t behind the version. */
            if (native_paths[i][strlen(native_paths[i]) - 1] == 'd')
                add_matching(&list, format("%st", pattern_for(under_root(native_paths[i]), minor)));
        }
    char *path = strdup(getenv("PATH") ? getenv("PATH") : "");
    for (char *folder; path && (folder = strsep(&path, ":"));)
        if (*folder == '/') {
            add_matching(&list, format("%s/python3*", under_root(folder)));
            add_matching(&list, format("%s/pypy3*", under_root(folder)));
        }
    const char *home = getenv("PYENV_ROOT");
    if (!home && getenv("HOME"))
        home = format("%s/.pyenv", getenv("HOME"));
    if (home)
        add_matching(&list, format("%s/versions/*/bin/python3", under_root(home)));
    add_matching(&list, under_root("/opt/*/bin/python3"));
    *found = list.all;
    return list.count;
}
