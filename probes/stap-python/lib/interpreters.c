/*
 * SPDX-License-Identifier: MIT
 */

#include "lib/interpreters.h"

#include "generated/installed.h"
#include "lib/elf.h"
#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"
#include "shared/cpython_structs.h"
#include "shared/versions.h"

#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- versions */

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

/* A path pattern of native.list with the minor version for %d. */
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

/* ---------------------------------------------------------------- one interpreter */

/* A folder of a file's RUNPATH, as a path for us; NULL: it names none.  origin: the file's own. */
static char *runpath_folder(const char *folder, const char *origin)
{
    const char *rest = strncmp(folder, "$ORIGIN", 7) == 0     ? folder + 7
                       : strncmp(folder, "${ORIGIN}", 9) == 0 ? folder + 9
                                                              : NULL;
    if (rest)
        return format("%s%s", origin, rest);
    if (*folder == '/')
        return strdup(under_root(folder));
    return *folder ? format("%s/%s", origin, folder) : NULL;
}

/* Where the dynamic linker would find the program's libpython; NULL: nowhere. */
static char *find_libpython(const char *program, const struct elf_file *file)
{
    char *folders = format(
        "%s:../lib:/usr/local/%s:/usr/local/lib64:/usr/local/lib:/usr/%s:/usr/lib64:/usr/lib",
        file->runpath ? file->runpath : "", MULTIARCH, MULTIARCH);
    char *origin = dirname(strdup(program));
    for (char *folder; (folder = strsep(&folders, ":"));) {
        char *place = runpath_folder(folder, origin);
        char *path = place ? format("%s/%s", place, file->libpython) : NULL;
        if (path && file_exists(path))
            return path;
    }
    return NULL;
}

/* Fills in the identity of the code's file. */
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

/* ---------------------------------------------------------------- all interpreters */

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
            /* A free-threaded build's name has a t after the version. */
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

/* ---------------------------------------------------------------- pyenv */

/* As pyenv's own pyenv-version-name, pyenv-version-file and pyenv-which do. */

/* pyenv's root directory, if path is that of a pyenv shim; else NULL. */
static char *root_of_shim(const char *path)
{
    char real[PATH_MAX];
    char *folder = dirname(strdup(path));
    if (!realpath(folder, real))
        return NULL;
    char *slash = strrchr(real, '/');
    if (strcmp(slash, "/shims") != 0)
        return NULL;
    *slash = '\0';
    return file_exists(format("%s/versions", real)) ? strdup(real) : NULL;
}

/* The versions in a file of pyenv's, separated by colons: the first word of each line. */
static char *versions_in(const char *path)
{
    char *text = read_file(path, 65536), *versions = "", *line;
    while (text && (line = strsep(&text, "\n"))) {
        line += strspn(line, " \t\r");
        line[strcspn(line, " \t\r")] = '\0';
        if (*line && *line != '#')
            versions = format("%s%s%s", versions, *versions ? ":" : "", line);
    }
    return versions;
}

/* The nearest .python-version, in this directory or above; else pyenv's own file `version`. */
static char *version_file(const char *root)
{
    char folder[PATH_MAX];
    bool more = getcwd(folder, sizeof folder) && *folder == '/';
    while (more) {
        char *file = format("%s/.python-version", folder), *slash = strrchr(folder, '/');
        if (file_exists(file))
            return file;
        more = slash != NULL;
        if (slash)
            *slash = '\0';
    }
    return format("%s/version", root);
}

/* The versions in order of preference, separated by colons. */
static char *chosen_versions(const char *root)
{
    const char *versions = getenv("PYENV_VERSION");
    if (!versions || !*versions)
        versions = versions_in(version_file(root));
    return strdup(*versions ? versions : "system");
}

/* The folder of an installed version; NULL if it is not installed.  "3.11" stands for the latest
 * 3.11.N that is not a preview.  The version may be from a file of another user's. */
static char *version_folder(const char *root, const char *version)
{
    char *folder = format("%s/versions/%s", root, version), *latest = NULL;
    glob_t found;
    if (strstr(version, "..") || strcmp(version, ".") == 0 || strpbrk(version, "*?[\\"))
        return NULL;
    if (file_exists(folder))
        return folder;
    if (glob(format("%s.*", folder), 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *rest = found.gl_pathv[i] + strlen(folder);
        if (!rest[strspn(rest, ".0123456789")] &&
            (!latest || strverscmp(found.gl_pathv[i], latest) > 0))
            latest = found.gl_pathv[i];
    }
    return latest;
}

/* The first program of this name in PATH that is not pyenv's. */
static char *system_program(const char *root, const char *name)
{
    char *folders = strdup(getenv("PATH") ? getenv("PATH") : "/usr/local/bin:/usr/bin:/bin");
    for (char *folder; folders && (folder = strsep(&folders, ":"));) {
        char *program = format("%s/%s", folder, name), *other = root_of_shim(program);
        if (*folder == '/' && access(program, X_OK) == 0 && !(other && strcmp(other, root) == 0))
            return program;
    }
    return NULL;
}

const char *pyenv_program(const char *path, const char **why)
{
    char *root = root_of_shim(path);
    if (!root)
        return path;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    char *chosen = chosen_versions(root), *rest = strdup(chosen);
    for (char *version; rest && (version = strsep(&rest, ":"));) {
        char *folder = *version ? version_folder(root, version) : NULL, *program = NULL;
        if (!folder && strncmp(version, "python-", 7) == 0)
            folder = version_folder(root, version + 7);
        if (folder)
            program = format("%s/bin/%s", folder, name);
        else if (strcmp(version, "system") == 0)
            program = system_program(root, name);
        if (program && access(program, X_OK) == 0)
            return program;
    }
    *why = format("pyenv's version %s has no %s (see pyenv versions)", chosen, name);
    return NULL;
}

/* ---------------------------------------------------------------- site packages */

/* /usr for /usr/bin/python3. */
static char *prefix_of(const char *program)
{
    return dirname(dirname(strdup(program)));
}

/* A pattern that glob() matches with this path alone. */
static char *literal(const char *path)
{
    char *pattern = malloc(2 * strlen(path) + 1), *end = pattern;
    if (!pattern)
        abort();
    for (; *path; *end++ = *path++)
        if (strchr("*?[\\{,}", *path))
            *end++ = '\\';
    *end = '\0';
    return pattern;
}

/* The file by which this version loads the shim from that folder: python_stap.start, or the .pth
 * file itself; NULL if it ignores its import line. */
static char *startup_file(char *pth, int minor)
{
    char *start = start_link(pth, START_LINKS - 1);
    if (minor >= START_FILES_MINOR && file_exists(start))
        return start;
    return minor < NO_PTH_IMPORTS_MINOR ? pth : NULL;
}

/* The startup_file() below the folder, in a site-packages of this version, whose link leads to a
 * file; NULL if there is none. */
static char *pth_below(const char *folder, int minor)
{
    const char *prefix = literal(folder);
    char *const patterns[] = {
        format("%s/lib*/python3.%d*/*-packages/python_stap.pth", prefix, minor),
        format("%s/local/lib*/python3.%d*/*-packages/python_stap.pth", prefix, minor),
        /* Debian's */
        format("%s/lib/python3/dist-packages/python_stap.pth", prefix)};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        glob_t files;
        if (glob(patterns[i], 0, NULL, &files) != 0)
            continue;
        for (size_t j = 0; j < files.gl_pathc; j++) {
            char *found = startup_file(files.gl_pathv[j], minor);
            if (found && file_exists(link_next_to(found)))
                return found;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- virtual environments */

/* The value of a key in the text of pyvenv.cfg, as site.py reads it; NULL if the key is missing. */
static char *setting(const char *text, const char *key)
{
    char *rest = strdup(text), *value = NULL;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        char *equals = strchr(line, '=');
        if (!equals)
            continue;
        *equals = '\0';
        line += strspn(line, " \t");
        line[strcspn(line, " \t")] = '\0';
        equals += 1 + strspn(equals + 1, " \t");
        size_t length = strcspn(equals, "\r");
        while (length && strchr(" \t", equals[length - 1]))
            length--;
        if (strcasecmp(line, key) == 0)
            value = strndup(equals, length);
    }
    return value;
}

/* The text of pyvenv.cfg, if path is the interpreter of a virtual environment; else NULL. */
static char *venv_config(const char *path)
{
    char *text = read_file(format("%s/pyvenv.cfg", dirname(strdup(path))), 65536);
    return text ? text : read_file(format("%s/pyvenv.cfg", prefix_of(path)), 65536);
}

/* The startup_file() of a base interpreter.  path: that interpreter, or a virtual environment's,
 * whose pyvenv.cfg has this home. */
static char *pth_of_base(const char *path, const char *home, int minor)
{
    char real[PATH_MAX], *pth = NULL;
    if (home && *home == '/')
        pth = pth_below(dirname(strdup(under_root(home))), minor);
    if (!pth && realpath(path, real))
        pth = pth_below(prefix_of(real), minor);
    return pth;
}

/* in_base: pth_of_base_only(); else pth_of(). */
static char *find_pth(const char *path, bool in_base)
{
    struct interpreter found;
    const char *why;
    if (!interpreter_open(path, &found, &why))
        return NULL;
    int minor = found.file.minor;
    path = absolute_path(path);
    char *own = pth_below(prefix_of(path), minor), *config = venv_config(path);
    if (!config)
        return in_base ? NULL : own ? own : pth_of_base(path, NULL, minor);
    char *home = setting(config, "home"), *all = setting(config, "include-system-site-packages");
    bool has_system = !all || strcasecmp(all, "true") == 0;
    if (in_base)
        return own || has_system ? NULL : pth_of_base(path, home, minor);
    return own ? own : has_system ? pth_of_base(path, home, minor) : NULL;
}

char *pth_of(const char *path)
{
    return find_pth(path, false);
}

char *pth_of_base_only(const char *path)
{
    return find_pth(path, true);
}

/* ---------------------------------------------------------------- trust */

static const char *unsafe_to_load(const char *folder)
{
    const char *why = unsafe_folder(folder);
    return why ? format("it would load what is in %s: %s", folder, why) : NULL;
}

/* As unsafe_path(), for the folders that the RUNPATH of the file at path names. */
static const char *unsafe_runpath(const char *path)
{
    struct elf_file file;
    const char *why = NULL, *none;
    char *origin = dirname(strdup(path)), *folder;
    if (!elf_read(path, &file, &none))
        return NULL;
    for (char *rest = file.runpath; !why && rest && (folder = strsep(&rest, ":"));) {
        char *place = runpath_folder(folder, origin);
        /* The dynamic linker takes one that is empty or relative from the working directory. */
        if (*folder != '/' && *folder != '$')
            why = format("%s would load what is in the working directory (RUNPATH)", path);
        else if (!place || strchr(place, '$'))
            why = format("%s would load what is in %s (RUNPATH)", path, folder);
        else
            why = unsafe_to_load(place);
    }
    return why;
}

static const char *why_library;

/* For nftw(): stops at a file of the standard library that another user can change; CPython runs
 * none of the packages' in it while it is asked. */
static int look_at_library(const char *path, const struct stat *status, int type, struct FTW *at)
{
    struct stat own;
    const char *name = path + at->base;
    if (strcmp(name, "site-packages") == 0 || strcmp(name, "dist-packages") == 0)
        return FTW_SKIP_SUBTREE;
    if (type == FTW_NS || type == FTW_SLN)
        return FTW_CONTINUE;
    if (lstat(path, &own) == 0 && S_ISLNK(own.st_mode))
        why_library = unsafe_file(path);
    else if (status->st_uid != 0)
        why_library = format("%s is owned by another user (uid %u)", path, status->st_uid);
    else if (status->st_mode & (S_IWGRP | S_IWOTH))
        why_library = format("%s is writable by others", path);
    return why_library ? FTW_STOP : FTW_CONTINUE;
}

/* As unsafe_path(), for each standard library in this folder, or part of one: a ZIP file, or
 * lib-dynload alone.  *is_there: whether one has os.py, by which CPython knows it. */
static const char *unsafe_library(const char *folder, int minor, bool *is_there)
{
    enum { DESCRIPTORS = 8 };
    const char *version = minor < 0 ? "*" : format("%d*", minor);
    glob_t files;
    why_library = NULL;
    if (glob(format("%s/lib*/{python3%s.zip,python3.%s}", literal(folder), version, version),
             GLOB_BRACE, NULL, &files) != 0)
        return NULL;
    for (size_t i = 0; !why_library && i < files.gl_pathc; i++) {
        const char *library = files.gl_pathv[i];
        if (!(why_library = unsafe_file(library)))
            nftw(library, look_at_library, DESCRIPTORS, FTW_ACTIONRETVAL);
        *is_there |=
            file_exists(format("%s/os.py", library)) || file_exists(format("%s/os.pyc", library));
    }
    return why_library;
}

/* As unsafe_path(), for pyvenv.cfg and the standard library, which CPython looks for in the folders
 * above its program (Modules/getpath.py): the first two may have pyvenv.cfg, and the first one with
 * a standard library ends the search.  called: by the path of a link, for which there is
 * pyvenv.cfg alone. */
static const char *unsafe_surroundings(const char *program, int minor, bool called)
{
    const char *why = NULL;
    bool is_there = false;
    char *folder = strdup(program);
    for (int level = 0; !why && folder[1] && (level < 2 || (!called && !is_there)); level++) {
        folder = dirname(folder);
        char *config = format("%s/pyvenv.cfg", folder);
        why = unsafe_to_load(folder);
        if (!why && level < 2 && is_present(config))
            why = unsafe_file(config);
        if (!why && !is_there)
            why = unsafe_library(folder, minor, &is_there);
    }
    return why;
}

const char *unsafe_python(const char *program)
{
    struct interpreter python;
    char real[PATH_MAX], *config = NULL;
    const char *why = unsafe_path(program), *none, *called = absolute_path(program);
    if (!why && !realpath(program, real))
        why = strerror(errno);
    (void)(why || (why = unsafe_file(real)) || (why = unsafe_runpath(real)));
    /* The program may be a script: what it starts is unknown. */
    if (why || !interpreter_open(program, &python, &none))
        return why;
    const int minor = python.file.minor;
    (void)((why = unsafe_file(python.code)) || (why = unsafe_runpath(python.code)) ||
           (why = unsafe_surroundings(called, minor, true)));
    if (!why && !(config = venv_config(called)))
        config = venv_config(real);
    char *home = config ? setting(config, "home") : NULL;
    const char *base = home ? format("%s/python3", home) : real;
    /* CPython goes on in the folder of the Python that a virtual environment was made with; without
     * a standard library there, in the one that it was built for. */
    if (!why)
        why = unsafe_surroundings(base, minor, false);
    return why || !home || !realpath(base, real) ? why : unsafe_surroundings(real, minor, false);
}

/* ---------------------------------------------------------------- other python */

/* The words of a command that are checked, as in "env A=1 timeout 5 pypy3". */
enum { WORDS_MAX = 8 };

/* The program in a script's first line, "#!/usr/bin/env pypy3" or "#!/usr/bin/pypy3"; or NULL. */
static char *program_of_script(const char *path)
{
    char *line = read_file(path, 256), *word, *name;
    if (!line || strncmp(line, "#!", 2) != 0)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    line += 2;
    while ((word = strsep(&line, " \t"))) {
        name = strrchr(word, '/');
        if (*word && *word != '-' && strcmp(name ? name : word, "/env") != 0)
            return program_in_path(word);
    }
    return NULL;
}

/* Whether the word is a program of another Python, or a script for one; if so, warns. */
static bool warn_of(const char *word)
{
    struct elf_file file;
    const char *why, *program = program_in_path(word);
    for (int scripts = 0; program && scripts < 2; scripts++) {
        program = pyenv_program(program, &why);
        if (program && elf_read(program, &file, &why)) {
            if (file.other)
                warn("%s %s", program, strstr(unsupported_reason(&file), "is "));
            return file.other;
        }
        program = program ? program_of_script(program) : NULL;
    }
    return false;
}

void warn_of_other_python(char **words)
{
    for (int i = 0; i < WORDS_MAX && words[i] && !warn_of(words[i]); i++)
        ;
}

void warn_of_other_python_in(const char *command)
{
    char *words[WORDS_MAX + 1] = {NULL}, *rest = strdup(command), *word;
    for (int i = 0; rest && i < WORDS_MAX && (word = strsep(&rest, " \t\n'\"|&;<>()`"));)
        if (*word)
            words[i++] = word;
    warn_of_other_python(words);
}
