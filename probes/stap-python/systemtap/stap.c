/*
 * Finds stap, its version and its data, and the headers of a kernel.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"
#include "lib/program.h"
#include "lib/util.h"
#include "systemtap/systemtap.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* ---------------------------------------------------------------- stap */

const char *stap_name(void)
{
    const char *named = secure_getenv("STAP");
    return named && *named ? named : "stap";
}

const char *stap_program(void)
{
    return program_in_path(stap_name());
}

static struct stap_version known_version;

struct stap_version stap_version(void)
{
    struct stap_version version = {0, 0};
    int status;
    if (!stap_program())
        return version;
    const char *const command[] = {stap_program(), "--version", NULL};
    const char *text = strstr(run_and_capture(command, 60, &status), "version ");
    if (status != 0 || !text || sscanf(text, "version %d.%d", &version.major, &version.minor) != 2)
        version = (struct stap_version){0, 0};
    return known_version = version;
}

struct stap_version known_stap_version(void)
{
    return known_version.major ? known_version : stap_version();
}

char *stap_error(char *said)
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

char *stap_data_dir(const char *folder)
{
    char real[PATH_MAX];
    const char *prefix = "/usr";
    if (stap_program() && realpath(stap_program(), real))
        prefix = dirname(dirname(strdup(real)));
    char *data = format("%s/share/systemtap/%s", prefix, folder);
    return file_exists(under_root(data)) ? data : format("/usr/share/systemtap/%s", folder);
}

/* ---------------------------------------------------------------- kernel headers */

const char *kernel_release(void)
{
    static struct utsname name;
    char *text = read_file(under_root("/proc/sys/kernel/osrelease"), 128);
    if (text) {
        text[strcspn(text, "\n")] = '\0';
        return text;
    }
    uname(&name);
    return name.release;
}

char *kernel_headers(const char *kernel)
{
    return kernel[0] == '/' ? strdup(kernel) : format("/lib/modules/%s/build", kernel);
}

bool has_headers(const char *kernel)
{
    return file_exists(under_root(format("%s/Makefile", kernel_headers(kernel)))) ||
           file_exists(under_root(format("%s/.config", kernel_headers(kernel))));
}

char *kernel_file(const char *kernel, const char *name)
{
    enum { LIMIT = 1 << 20 };
    const char *build = kernel_headers(kernel);
    char *makefile = read_file(under_root(format("%s/Makefile", build)), 65536);
    char common[PATH_MAX] = "";
    /* Debian's build tree includes the Makefile of a common tree, which has most headers. */
    if (makefile && sscanf(makefile, "include %4000[^\n]", common) == 1 && strlen(common) > 9)
        common[strlen(common) - 9] = '\0'; /* without "/Makefile" */
    const char *const trees[] = {build, format("%s/source", build), common};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        char *text =
            *trees[i] ? read_file(under_root(format("%s/%s", trees[i], name)), LIMIT) : NULL;
        if (text)
            return text;
    }
    return NULL;
}
