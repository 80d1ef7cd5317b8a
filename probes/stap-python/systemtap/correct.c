/*
 * Makes the corrected copy of SystemTap's runtime, which is in stap's folder:
 * ~/.systemtap/python-runtime/KERNEL-SOURCE-CONTENT, where SOURCE and CONTENT are hashes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"
#include "lib/util.h"
#include "systemtap/faults.h"
#include "systemtap/systemtap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DESCRIPTORS = 8 };

/* How the name of a copy begins that is not complete. */
#define NEW ".new."

/* ---------------------------------------------------------------- the copy's name */

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t hash(uint64_t hash, const void *bytes, size_t length)
{
    for (const unsigned char *at = bytes, *end = at + length; at < end; at++)
        hash = (hash ^ *at) * 0x100000001b3;
    return hash;
}

static uint64_t hash_text(const char *text)
{
    return hash(0xcbf29ce484222325, text, strlen(text));
}

static uint64_t sum; /* of the hashes of files: nftw() has no order */

static int add_file(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    const int64_t facts[] = {status->st_size, status->st_mtim.tv_sec, status->st_mtim.tv_nsec};
    (void)where;
    if (kind == FTW_F)
        sum += hash(hash_text(path), facts, sizeof facts);
    return 0;
}

/* "KERNEL-SOURCE", with which the names of all copies of a runtime for a kernel begin. */
static char *name_of(const struct runtime *runtime)
{
    char *name = format("%s-%08x", runtime->kernel, (uint32_t)hash_text(runtime->folder));
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '_' : *at;
    return name;
}

/* It changes when a file of the runtime or a correction does. */
static uint64_t content_of(const struct runtime *runtime)
{
    sum = 0;
    nftw(under_root(runtime->folder), add_file, DESCRIPTORS, 0);
    for (const struct edit *edit = runtime_edits; edit->fault; edit++)
        if (runtime->faults & edit->fault)
            sum +=
                hash_text(format("%s\n%s\n%s", edit->file, edit->old ? edit->old : "", edit->new));
    return sum;
}

/* ---------------------------------------------------------------- copying */

static const struct runtime *copied;
static const char *source, *target, *failure;
static unsigned applied; /* a bit for each entry of runtime_edits */

static char *corrected_text(const char *name, char *text)
{
    for (unsigned i = 0; runtime_edits[i].fault; i++) {
        const struct edit *edit = &runtime_edits[i];
        if (!(copied->faults & edit->fault) || fnmatch(edit->file, name, FNM_PATHNAME) != 0 ||
            (edit->old && !strstr(text, edit->old)))
            continue;
        text = edit->old ? replaced(text, edit->old, edit->new) : format("%s%s", edit->new, text);
        applied |= 1U << i;
    }
    return text;
}

static int copy_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    enum { LIMIT = 4 << 20 };
    const char *name = path + strlen(source);
    char *to = format("%s%s", target, name);
    (void)status;
    (void)where;
    if (kind == FTW_D) {
        if (mkdir(to, S_IRWXU) != 0 && errno != EEXIST)
            failure = format("%s: %s", to, strerror(errno));
    } else {
        char *text = read_file(path, LIMIT);
        if (!text)
            failure = format("%s: %s", path, strerror(errno));
        else if (!file_replace(to, corrected_text(name + 1, text), S_IRUSR | S_IWUSR))
            failure = format("%s: %s", to, strerror(errno));
    }
    return failure != NULL;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

/* Copies the runtime into the empty folder.  NULL, or the reason why that failed. */
static const char *copy_to(const struct runtime *runtime, const char *folder)
{
    copied = runtime;
    source = under_root(runtime->folder);
    target = folder;
    failure = NULL;
    applied = 0;
    if (nftw(source, copy_one, DESCRIPTORS, 0) != 0 && !failure)
        failure = format("%s: %s", source, strerror(errno));
    for (unsigned i = 0; !failure && runtime_edits[i].fault; i++)
        if (runtime->faults & runtime_edits[i].fault && !(applied >> i & 1))
            failure = format("%s/%s is not as expected: it lacks '%s'", runtime->folder,
                             runtime_edits[i].file, runtime_edits[i].old);
    return failure;
}

/* ---------------------------------------------------------------- its place */

static const char elsewhere[] = "SYSTEMTAP_DIR may name another folder";

/* The reason why others could change what is in a folder; NULL if none can. */
static const char *not_ours(const char *folder)
{
    struct stat status;
    if (lstat(folder, &status) != 0)
        return format("%s: %s", folder, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return format("%s is not a folder", folder);
    if (status.st_uid != geteuid())
        return format("%s belongs to another user (uid %u): %s", folder, status.st_uid, elsewhere);
    if (others_can_write(&status))
        return format("%s can be written to by others: run chmod go-w %s", folder,
                      shell_word(folder));
    return NULL;
}

/* Makes the folder that has the copies, and *path its path.  NULL, or the reason why it can't be
 * used. */
static const char *make_place(char **path)
{
    char *folder = stap_folder(), real[PATH_MAX];
    if (!folder)
        return "neither HOME nor SYSTEMTAP_DIR is set";
    const char *parent = under_root(folder);
    if (mkdir(parent, S_IRWXU) != 0 && errno != EEXIST)
        return format("%s: %s: %s", parent, strerror(errno), elsewhere);
    /* The user may have put the folder elsewhere, by a link. */
    if (!realpath(parent, real))
        return format("%s: %s", parent, strerror(errno));
    const char *why = not_ours(real);
    if (!why && geteuid() == 0)
        why = unsafe_path(real);
    if (why)
        return why;
    *path = format("%s/python-runtime", real);
    if (mkdir(*path, S_IRWXU) != 0 && errno != EEXIST)
        return format("%s: %s: %s", *path, strerror(errno), elsewhere);
    return not_ours(*path);
}

/* Removes older copies of the runtime for the same kernel, and copies for kernels that are gone.
 * Whether a build tree is gone is not known: its path is in the name with _ for each slash. */
static void remove_old(const char *place, const char *name, const char *copy)
{
    const size_t hashes = strlen("-01234567-0123456789abcdef");
    DIR *folder = opendir(place);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        const char *found = entry->d_name;
        size_t length = strlen(found);
        if (found[0] == '.' || length <= hashes || strcmp(found, copy) == 0)
            continue;
        char *modules = format("/lib/modules/%.*s", (int)(length - hashes), found);
        if (strncmp(found, name, strlen(name)) == 0 ||
            (found[0] != '_' && !file_exists(under_root(modules))))
            remove_tree(format("%s/%s", place, found));
    }
    if (folder)
        closedir(folder);
}

/* Removes what stap-pythons have left that were killed while they made a copy. */
static void remove_unfinished(const char *place)
{
    DIR *folder = opendir(place);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (strncmp(entry->d_name, NEW, strlen(NEW)) == 0)
            remove_tree(format("%s/%s", place, entry->d_name));
    if (folder)
        closedir(folder);
}

/* Makes the copy place/name.  NULL, or the reason why that failed. */
static const char *make_copy(const struct runtime *runtime, const char *place, const char *name)
{
    char *new = format("%s/" NEW "XXXXXX", place), *path = format("%s/%s", place, name);
    if (!mkdtemp(new))
        return format("%s: %s: %s", place, strerror(errno), elsewhere);
    const char *why = copy_to(runtime, new);
    /* Another stap-python may have made the same copy meanwhile, where there are no locks. */
    if (!why && rename(new, path) != 0 && errno != EEXIST && errno != ENOTEMPTY)
        why = format("%s: %s", path, strerror(errno));
    remove_tree(new);
    return why;
}

char *runtime_corrected(const struct runtime *runtime, const char **why)
{
    char *place = NULL;
    *why = make_place(&place);
    if (*why)
        return NULL;
    char *name = name_of(runtime);
    char *copy = format("%s-%016llx", name, (unsigned long long)content_of(runtime));
    char *path = format("%s/%s", place, copy);
    if (!is_present(path)) {
        int lock = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (lock >= 0 && flock(lock, LOCK_EX) == 0)
            remove_unfinished(place);
        if (!is_present(path))
            *why = make_copy(runtime, place, copy);
        if (!*why)
            remove_old(place, name, copy);
        if (lock >= 0)
            close(lock);
    }
    *why = *why ? *why : not_ours(path);
    return *why ? NULL : path;
}

void use_corrected_runtime(const struct runtime *runtime)
{
    const char *why;
    if (runtime->too_old)
        die(FAILED, "%s: run stap-python doctor", runtime->too_old);
    if (!runtime->faults || runtime->given)
        return;
    char *copy = runtime_corrected(runtime, &why);
    if (copy)
        setenv("SYSTEMTAP_RUNTIME", copy, 1);
    else if (runtime->faults & FAULTS_FATAL)
        die(FAILED, "%s %s, and no corrected copy can be made: %s", runtime->folder,
            runtime_faults_text(runtime->faults), why);
    else
        warn("%s %s, as no corrected copy can be made: %s", runtime->folder,
             runtime_faults_text(runtime->faults), why);
}

/* ---------------------------------------------------------------- the command */

static const char usage[] =
    "usage: stap-python runtime [-r KERNEL]\n"
    "\n"
    "Prints the folder of SystemTap's runtime with which stap-python runs stap: the installed "
    "one,\n"
    "or a copy in which its known faults with this kernel are corrected. Plain stap uses it with\n"
    "export SYSTEMTAP_RUNTIME=$(stap-python runtime).\n"
    "\n"
    "  -r KERNEL   for the kernel of this release, or with this build tree, as stap's -r\n";

int runtime_main(char **arguments)
{
    const char *kernel = kernel_release(), *why;
    help_if_asked(arguments, usage);
    if (arguments[0] && strncmp(arguments[0], "-r", 2) == 0) {
        bool is_alone = !arguments[0][2];
        kernel = is_alone ? arguments[1] : arguments[0] + 2;
        if (!kernel)
            die(USAGE, "runtime: -r needs a kernel (see stap-python runtime --help)");
        arguments += 1 + is_alone;
    }
    if (arguments[0])
        die(USAGE, "runtime: unexpected argument '%s' (see stap-python runtime --help)",
            arguments[0]);
    struct runtime runtime = runtime_for(kernel);
    if (!runtime.folder && runtime.given)
        die(FAILED, "SYSTEMTAP_RUNTIME names %s, which does not exist", runtime.given);
    if (!runtime.folder)
        die(FAILED, "SystemTap's runtime is not installed: run stap-python doctor");
    if (!has_headers(kernel))
        die(FAILED, "no headers for the kernel %s: run stap-python doctor", kernel);
    if (runtime.too_old)
        die(FAILED, "%s: run stap-python doctor", runtime.too_old);
    const char *folder = runtime.folder;
    if (runtime.faults && !runtime.given)
        folder = runtime_corrected(&runtime, &why);
    if (!folder)
        die(FAILED, "no corrected copy of %s can be made: %s", runtime.folder, why);
    puts(folder);
    return 0;
}
