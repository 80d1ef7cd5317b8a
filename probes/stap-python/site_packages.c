/*
 * See site_packages.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site_packages.h"

#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "file.h"
#include "interpreter.h"
#include "text.h"

/* The directory two above that of a file: of /usr/bin/python3 it is /usr. */
static char *prefix_of(const char *program)
{
    return dirname(dirname(strdup(program)));
}

/* The .pth file below a prefix, in a site-packages of that version, with a link that leads to a
 * file; NULL if there is none. */
static char *pth_below(const char *prefix, int minor)
{
    char *const patterns[] = {
        format("%s/lib*/python3.%d*/*-packages/python_stap.pth", prefix, minor),
        format("%s/local/lib*/python3.%d*/*-packages/python_stap.pth", prefix, minor),
        /* Debian's */
        format("%s/lib/python3/dist-packages/python_stap.pth", prefix)};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        glob_t files;
        if (glob(patterns[i], 0, NULL, &files) != 0)
            continue;
        for (size_t j = 0; j < files.gl_pathc; j++)
            if (file_exists(format("%s/python_stap.so", dirname(strdup(files.gl_pathv[j])))))
                return files.gl_pathv[j];
    }
    return NULL;
}

/* ---------------------------------------------------------------- virtual environments */

/* The value of a key of pyvenv.cfg, as site.py reads it; NULL if it has none. */
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

/* The text of the pyvenv.cfg that makes path the interpreter of a virtual environment; NULL if it
 * is not one. */
static char *venv_config(const char *path)
{
    char *text = read_file(format("%s/pyvenv.cfg", dirname(strdup(path))), 65536);
    return text ? text : read_file(format("%s/pyvenv.cfg", prefix_of(path)), 65536);
}

/* The .pth file of an interpreter that is not a virtual environment's, or of the base of one that
 * is, whose pyvenv.cfg says home. */
static char *pth_of_base(const char *path, const char *home, int minor)
{
    char real[PATH_MAX], *pth = NULL;
    if (home && *home == '/')
        pth = pth_below(dirname(strdup(under_root(home))), minor);
    if (!pth && realpath(path, real))
        pth = pth_below(prefix_of(real), minor);
    return pth;
}

/* The .pth file by which it loads the shim, or if in_base that of the base alone, as in the header.
 */
static char *find_pth(const char *path, bool in_base)
{
    struct interpreter found;
    const char *why;
    if (!interpreter_open(path, &found, &why))
        return NULL;
    int minor = found.file.minor;
    if (*path != '/')
        path = format("%s/%s", getcwd(NULL, 0), path);
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
