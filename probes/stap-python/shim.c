/*
 * See shim.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "shim.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "command.h"
#include "file.h"
#include "installed.h"
#include "text.h"

const char *source_tree;

void find_source_tree(void)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    /* Its caller may have made a hard link to it there. */
    if (length <= 0 || getauxval(AT_SECURE))
        return;
    self[length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(self, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    if (file_exists(format("%s/probes/python.d", self)) &&
        file_exists(format("%s/build/stap-python", self)))
        source_tree = strdup(self);
}

const char *shim_preload(void)
{
    return source_tree ? format("%s/build/libpython-stap.so.0", source_tree) : SHIM_PATH;
}

/* ld.so's $LIB is lib64, lib, or Debian's lib/x86_64-linux-gnu; without a shim in any of them the
 * one that the compiler names. */
const char *shim_file(void)
{
    static const char *const folders[] = {MULTIARCH, "lib64", "lib"};
    const char *path = shim_preload(), *lib = strstr(path, "$LIB");
    if (!lib)
        return path;
    char *file, *first = NULL;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        file = format("%.*s%s%s", (int)(lib - path), path, folders[i], lib + strlen("$LIB"));
        if (file_exists(under_root(file)))
            return file;
        first = first ? first : file;
    }
    return first;
}

char *shim_not_found(void)
{
    return format("shim not found: %s: %s", shim_file(),
                  source_tree ? "run make" : "reinstall systemtap-cpython");
}

char *preload_with(const char *others)
{
    const char *shim = shim_preload();
    size_t length = strlen(shim);
    if (!file_exists(shim_file()))
        die(FAILED, "%s", shim_not_found());
    if (strpbrk(shim, " :"))
        die(FAILED, "%s: LD_PRELOAD cannot hold a path with a space or colon: move the checkout",
            shim);
    if (!others || !*others)
        return strdup(shim);
    if (strncmp(others, shim, length) == 0 && strchr(" :", others[length]))
        return strdup(others);
    return format("%s:%s", shim, others);
}

char *preload_value(void)
{
    return preload_with(getenv("LD_PRELOAD"));
}
