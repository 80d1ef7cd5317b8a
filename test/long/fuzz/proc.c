/*
 * Fuzzes what stap-python reads of processes and of the machine: the input is the subcommand (list,
 * attach or doctor), and the files below STAP_PYTHON_ROOT, separated by the byte 0xff.
 *
 * No program is run: run_and_capture() returns nothing.  No process has that PID, so attach refuses
 * where it looks at the real /proc.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"
#include "attach/attach.h"
#include "doctor/doctor.h"
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PID "2147483647"

static const char *const files[] = {
    "proc/" PID "/maps",
    "proc/" PID "/stat",
    "proc/" PID "/status",
    "proc/" PID "/environ",
    "proc/" PID "/cmdline",
    "proc/sys/kernel/yama/ptrace_scope",
    "proc/self/status",
    /* only doctor reads these */
    "etc/os-release",
    "proc/sys/kernel/osrelease",
    "proc/config",
    "sys/kernel/security/lockdown",
    "sys/module/module/parameters/sig_enforce",
    "proc/sys/kernel/modules_disabled",
    "sys/firmware/efi/efivars/SecureBoot-8be4df61",
    "tapset/python_paths.stpm",
    "tapset/python.stp",
    "etc/group",
    "etc/passwd",
};
enum { FILES = sizeof files / sizeof *files };

static const char *root;
static int asked;

char *__wrap_run_and_capture(const char *const *arguments, int seconds, int *status);
char *__wrap_run_and_capture(const char *const *arguments, int seconds, int *status)
{
    (void)arguments;
    (void)seconds;
    *status = -1;
    return calloc(1, 1);
}

static void ask(void)
{
    char *const pid[] = {(char *)PID, NULL}, *const none[] = {NULL};
    if (asked == 0)
        list_main((char **)pid);
    else if (asked == 1)
        attach_main((char **)pid);
    else
        doctor_main((char **)none);
}

static void make_folders(char *path)
{
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static char *below_root(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void put(const char *name, const char *text, size_t size)
{
    char *path = below_root(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_check(fd >= 0 && write(fd, text, size) == (ssize_t)size, path);
    close(fd);
}

/* Makes fgetgrent() allocate its buffer, for a line longer than any input. */
static void read_long_group(void)
{
    static char line[1 << 14] = "stapusr:x:1:";
    for (char *end = line + strlen(line); end + 2 < line + sizeof line; end += 2)
        memcpy(end, "a,", 2);
    FILE *file = fmemopen(line, strlen(line), "r");
    fuzz_check(file && fgetgrent(file), "no memory");
    fclose(file);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    root = fuzz_folder();
    /* libc keeps memory that it allocates for these. */
    read_long_group();
    getpwuid(geteuid());
    for (size_t i = 0; i < FILES; i++)
        make_folders(below_root(files[i]));
    /* What the maps may name: a small ELF file that test/long/fuzz/run has made. */
    static const char *const elf_files[] = {
        "lib/libpython3.11.so.1.0", "lib/libc.so.6", "bin/python3.11",
        "proc/" PID "/root/lib/libpython3.11.so.1.0", "proc/" PID "/root/lib/libc.so.6"};
    for (size_t i = 0; i < sizeof elf_files / sizeof *elf_files; i++) {
        make_folders(below_root(elf_files[i]));
        if (symlink(getenv("FUZZ_ELF"), below_root(elf_files[i])) != 0)
            fuzz_check(errno == EEXIST, "FUZZ_ELF: a small libpython");
    }
    setenv("STAP_PYTHON_ROOT", root, 1);
    setenv("STAP", "/nonexistent", 1);
    setenv("SYSTEMTAP_TAPSET", "/tapset", 1);
    setenv("PATH", "/bin", 1);
    unsetenv("HOME");
    unsetenv("PYENV_ROOT");
    unsetenv("XDG_DATA_DIRS");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool there[FILES];
    size_t length;
    if (!size)
        return 0;
    asked = *data++ % 3;
    size--;
    unlink(below_root("proc/" PID "/exe"));
    char *target = fuzz_part(&data, &size, &length);
    if (length && length < 4096)
        fuzz_check(symlink(target, below_root("proc/" PID "/exe")) == 0 || !*target, "no link");
    for (size_t i = 0; i < FILES; i++) {
        char *part = fuzz_part(&data, &size, &length);
        if (part && length)
            put(files[i], part, length);
        else if (there[i])
            unlink(below_root(files[i]));
        there[i] = part && length;
        free(part);
    }
    int status = fuzz_run(ask);
    fuzz_check_said(asked == 2 ? 0 : status);
    free(target);
    return 0;
}
