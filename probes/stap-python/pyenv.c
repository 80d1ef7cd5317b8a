/*
 * See pyenv.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pyenv.h"

#include <glob.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "text.h"

/* pyenv's directory, as a shim says; NULL if program is not a shim. */
static char *root_of(const char *program)
{
    static const char assignment[] = "\nexport PYENV_ROOT=\"";
    char *text = contents(program, 4096), *at;
    if (!text || strncmp(text, "#!", 2) != 0 || !strstr(text, "pyenv\" exec \"$program\"") ||
        !(at = strstr(text, assignment)))
        return NULL;
    at += sizeof assignment - 1;
    return strndup(at, strcspn(at, "\"\n"));
}

/* ---------------------------------------------------------------- which versions */

/* The first word of each line that is not a comment, with colons between; NULL if there is none. */
static char *versions_in(const char *file)
{
    char *text = contents(file, 65536), *versions = NULL;
    for (char *line; text && (line = strsep(&text, "\n"));) {
        line += strspn(line, " \t\r");
        line[strcspn(line, " \t\r")] = '\0';
        if (*line && *line != '#')
            versions = versions ? format("%s:%s", versions, line) : line;
    }
    return versions;
}

/* The versions that are set, with colons between, as `pyenv version-name` finds them. */
static char *versions_set(const char *root)
{
    const char *named = getenv("PYENV_VERSION");
    char *folder = getcwd(NULL, 0), *versions;
    if (named && *named)
        return strdup(named);
    while (folder) {
        if ((versions = versions_in(format("%s/.python-version", folder))))
            return versions;
        char *slash = strrchr(folder, '/');
        if (!slash || !*folder)
            break;
        *slash = '\0';
    }
    versions = versions_in(format("%s/version", root));
    return versions ? versions : "system";
}

/* ---------------------------------------------------------------- where they are */

/* The directory of a version: that of its name, or the newest of those that it begins, as 3.11.9
 * for 3.11.  NULL if there is none. */
static char *version_folder(const char *root, const char *version)
{
    glob_t found;
    char *newest = NULL;
    if (strncmp(version, "python-", 7) == 0)
        version += 7;
    if (!*version || *version == '/' || strstr(version, "..") || strpbrk(version, "*?[\\"))
        return NULL;
    char *exact = format("%s/versions/%s", root, version);
    if (exists(exact))
        return exact;
    if (glob(format("%s.*", exact), 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *rest = found.gl_pathv[i] + strlen(exact);
        if (!rest[strspn(rest, ".0123456789")] &&
            (!newest || strverscmp(found.gl_pathv[i], newest) > 0))
            newest = found.gl_pathv[i];
    }
    return newest;
}

/* The program of that name in PATH that is not a shim; NULL if there is none. */
static char *system_program(const char *name)
{
    char *path = strdup(getenv("PATH") ? getenv("PATH") : "");
    for (char *folder; path && (folder = strsep(&path, ":"));) {
        char *file = format("%s/%s", folder, name);
        if (*folder == '/' && access(file, X_OK) == 0 && !root_of(file))
            return file;
    }
    return NULL;
}

char *pyenv_target(const char *program, const char **why)
{
    char *root = root_of(program);
    if (!root)
        return strdup(program);
    const char *name = basename(strdup(program));
    char *versions = versions_set(root), *rest = strdup(versions);
    for (char *version; rest && (version = strsep(&rest, ":"));) {
        char *folder = version_folder(root, version);
        char *file = folder                           ? format("%s/bin/%s", folder, name)
                     : strcmp(version, "system") == 0 ? system_program(name)
                                                      : NULL;
        if (file && access(file, X_OK) == 0)
            return file;
    }
    *why =
        format("pyenv's version is set to %s, which has no %s: see pyenv versions", versions, name);
    return NULL;
}
