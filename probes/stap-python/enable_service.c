/*
 * See enable_service.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "enable_service.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "enabled.h"
#include "file.h"
#include "program.h"
#include "shim.h"
#include "text.h"
#include "trust.h"

/* ---------------------------------------------------------------- systemd */

static bool systemd_runs(void)
{
    return file_exists(under_root("/run/systemd/system"));
}

/* Runs systemctl with these arguments (the last may be NULL), and returns its output. */
static char *systemctl(const char *verb, const char *properties, const char *unit)
{
    int status;
    const char *unsafe, *program = program_in_path("systemctl");
    if (!program)
        die(FAILED, "systemd runs, but there is no systemctl in PATH");
    if (geteuid() == 0 && (unsafe = unsafe_path(program)))
        die(FAILED, "%s: %s", program, unsafe);
    const char *const arguments[] = {program, verb, properties, unit, NULL};
    char *output = run_and_capture(arguments, 30, &status);
    if (status != 0)
        die(FAILED, "systemctl %s failed: %s", verb, strndup(output, strcspn(output, "\n")));
    return output;
}

void reload_services(void)
{
    if (systemd_runs())
        systemctl("daemon-reload", NULL, NULL);
}

/* The value of a line "name=value" of what systemctl shows; NULL if there is none. */
static char *property(const char *shown, const char *name)
{
    char *line = strstr(format("\n%s", shown), format("\n%s=", name));
    return line ? strndup(line + strlen(name) + 2, strcspn(line + strlen(name) + 2, "\n")) : NULL;
}

/* The next word of *text, without the double quotes that systemctl puts around it; NULL at the end.
 */
static char *next_word(const char **text)
{
    *text += strspn(*text, " ");
    bool quoted = **text == '"';
    const char *at = *text + quoted;
    char *word = strdup(at), *end = word;
    if (!**text)
        return NULL;
    for (; *at && *at != (quoted ? '"' : ' '); at++) {
        at += quoted && *at == '\\' && at[1];
        *end++ = *at;
    }
    *end = '\0';
    *text = at + (quoted && *at);
    return word;
}

/* The value of LD_PRELOAD among the assignments that systemctl shows, "" if it is not set. */
static char *preload_in(const char *assignments)
{
    static const char key[] = "LD_PRELOAD=";
    char *value = "";
    for (char *word; (word = next_word(&assignments));)
        if (strncmp(word, key, sizeof key - 1) == 0)
            value = word + sizeof key - 1;
    return value;
}

/* Exits if one of the EnvironmentFiles=/etc/default/x (ignore_errors=yes) sets LD_PRELOAD: it would
 * override the drop-in's. */
static void refuse_environment_files(const char *shown)
{
    static const char key[] = "EnvironmentFiles=";
    char *rest = strdup(shown);
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        if (strncmp(line, key, sizeof key - 1) != 0)
            continue;
        char *file = strdup(line + sizeof key - 1), *end = strstr(file, " (");
        if (end)
            *end = '\0';
        char *text = read_file(under_root(file), 65536);
        if (text && strstr(format("\n%s", text), "\nLD_PRELOAD="))
            die(FAILED, "%s sets LD_PRELOAD, which no drop-in can change: add %s to it there", file,
                shim_preload());
    }
}

/* The LD_PRELOAD that a service has from its unit.  Exits if there is no such unit. */
static char *preload_of(const char *unit)
{
    /* A template is not a unit that systemd could show. */
    if (!systemd_runs() || strstr(unit, "@.service"))
        return "";
    char *shown = systemctl("show", "--property=LoadState,Environment,EnvironmentFiles", unit);
    char *state = property(shown, "LoadState"), *set = property(shown, "Environment");
    if (!state || strcmp(state, "not-found") == 0)
        die(FAILED, "%s: systemd knows no such unit", unit);
    refuse_environment_files(shown);
    return preload_in(set ? set : "");
}

/* ---------------------------------------------------------------- the drop-in */

/* The name of a service, with its suffix.  Exits if it can't be one. */
static char *unit_of(const char *word)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@";
    size_t length = strlen(word);
    if (!length || length > 200 || word[strspn(word, allowed)] || strchr(".-@", *word))
        die(USAGE, "'%s' is not the name of a service", word);
    bool has_suffix = length > 8 && strcmp(word + length - 8, ".service") == 0;
    return format("%s%s", word, has_suffix ? "" : ".service");
}

static char *drop_in_of(const char *unit)
{
    return format("%s/%s.d/50-systemtap-cpython.conf", under_root("/etc/systemd/system"), unit);
}

/* LD_PRELOAD's value without other shims: those of a checkout, or of the drop-in that is there. */
static char *without_shims(const char *value)
{
    char *rest = strdup(value), *kept = "";
    for (char *file; (file = strsep(&rest, " :"));)
        if (*file && !strstr(file, "/libpython-stap.so"))
            kept = format("%s%s%s", kept, *kept ? ":" : "", file);
    return kept;
}

/* The drop-in's text.  % begins a specifier of systemd's; in quotes \ and " are escaped. */
static char *text_for(const char *preload)
{
    char *escaped = "";
    for (; *preload; preload++)
        escaped = format("%s%s%c", escaped,
                         *preload == '%'            ? "%"
                         : strchr("\\\"", *preload) ? "\\"
                                                    : "",
                         *preload);
    return format("%s%s\"\n", drop_in_head, escaped);
}

static void fail(const char *path, int error) __attribute__((noreturn));

static void fail(const char *path, int error)
{
    die(FAILED, "%s: %s%s", path, strerror(error),
        error == EACCES || error == EPERM ? ": run this as root" : "");
}

/* Creates the drop-in and what leads to it. */
static void create(const char *path, const char *text)
{
    char *folder = strndup(path, (size_t)(strrchr(path, '/') - path));
    const char *unsafe;
    bool was_there = file_exists(folder), was_listed = enabled_find(path);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        fail(folder, errno);
    if (geteuid() == 0 && (unsafe = unsafe_path(folder)))
        die(FAILED, "%s: %s", folder, unsafe);
    if (access(folder, W_OK) != 0)
        fail(path, errno);
    enabled_add(path);
    if (!file_replace(path, text, 0644)) {
        int error = errno;
        if (!was_listed)
            enabled_drop(path);
        if (!was_there)
            rmdir(folder);
        fail(path, error);
    }
}

static void say_what_next(const char *unit)
{
    if (systemd_runs())
        printf("restart it: systemctl restart %s\n", unit);
}

int enable_service(const char *word)
{
    char *unit = unit_of(word), *path = drop_in_of(unit);
    if (!enabled_is_ours(path))
        die(FAILED,
            "%s was not created by stap-python enable, or changed since: check and remove it "
            "yourself",
            path);
    char *text = text_for(preload_with(without_shims(preload_of(unit))));
    char *present = read_file(path, 65536);
    if (present && strcmp(present, text) == 0) {
        if (access(path, W_OK) == 0)
            enabled_add(path);
        printf("already enabled: %s\n", path);
        return 0;
    }
    create(path, text);
    reload_services();
    printf("enabled: %s\n", path);
    say_what_next(unit);
    return 0;
}

int disable_service(const char *word)
{
    char *unit = unit_of(word), *path = drop_in_of(unit);
    if (!file_exists(path)) {
        enabled_drop(path);
        printf("not enabled: there is no %s\n", path);
        return 0;
    }
    const char *why =
        enabled_find(path) || enabled_is_ours(path)
            ? enabled_remove(path)
            : "it was not created by stap-python enable: check and remove it yourself";
    if (why)
        die(FAILED, "%s: %s", path, why);
    reload_services();
    printf("disabled: %s\n", path);
    say_what_next(unit);
    return 0;
}
