/*
 * See pyenv.h.  As pyenv's own pyenv-version-name, pyenv-version-file and pyenv-which do.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pyenv.h"

#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "text.h"

/* The folder above path's, if path is that of a shim; else NULL. */
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

/* The versions in a file of pyenv's, the first word of each line, with colons between them; "" if
 * there are none. */
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

/* The nearest .python-version, in this directory or above; else pyenv's own file. */
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

/* The versions that are chosen, the first to be asked first. */
static char *chosen_versions(const char *root)
{
    const char *versions = getenv("PYENV_VERSION");
    if (!versions || !*versions)
        versions = versions_in(version_file(root));
    return strdup(*versions ? versions : "system");
}

/* The folder of an installed version: 3.11 is the latest 3.11.N, but for its previews.  NULL: it is
 * not installed. */
static char *version_folder(const char *root, const char *version)
{
    char *folder = format("%s/versions/%s", root, version), *latest = NULL;
    glob_t found;
    if (strstr(version, "..") || strcmp(version, ".") == 0)
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

/* The program of that name in PATH that is not pyenv's. */
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
