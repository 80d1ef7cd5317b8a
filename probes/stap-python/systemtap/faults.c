/*
 * The known faults of SystemTap's runtime, and whether it has them with a kernel.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib/files.h"
#include "lib/util.h"
#include "systemtap/faults.h"
#include "systemtap/systemtap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- what they are */

/* The kernels named are the first ones with the change, as far as they are known. */
static const struct {
    unsigned fault;
    const char *text; /* of a SystemTap with the fault: "it ..." */
} texts[] = {
    {FAULT_HANDLE, "does not know that uprobe_register() returns a handle (Linux 6.12)"},
    {FAULT_RENAME, "does not know that task_work_cancel() was renamed (Linux 6.1.103, 6.6.44, "
                   "6.11)"},
    {FAULT_PROTOTYPES | FAULT_FOLIO,
     "fails at a warning that the kernel's makefiles ask for (Linux 6.8)"},
    {FAULT_STRLCPY, "calls strlcpy(), which is gone (Linux 6.8)"},
    {FAULT_OUTPUT, "loses output after the first few KB (sourceware PR31117)"},
};

char *runtime_faults_text(unsigned faults)
{
    char *all = "";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!(faults & texts[i].fault))
            continue;
        faults &= ~texts[i].fault;
        all = format("%s%s%s", all, !*all ? "" : faults ? ", " : ", and ", texts[i].text);
    }
    return all;
}

#define IGNORE_PROTOTYPES \
    "#pragma GCC diagnostic ignored \"-Wmissing-prototypes\"\n" \
    "#pragma GCC diagnostic ignored \"-Wmissing-declarations\"\n"

const struct edit runtime_edits[] = {
    /* The old function is not looked up: the new ones are exported. */
    {FAULT_HANDLE, "linux/runtime.h", NULL, "#define STAPCONF_UPROBE_UNREGISTER_EXPORTED 1\n"},
    {FAULT_HANDLE, "linux/uprobes-inode.c", "struct uprobe_consumer kconsumer;",
     "struct uprobe *kuprobe; struct uprobe_consumer kconsumer;"},
    {FAULT_HANDLE, "linux/uprobes-inode.c",
     "ret = uprobe_register (inst->inode, c->offset, &inst->kconsumer);",
     "{ inst->kuprobe = uprobe_register (inst->inode, c->offset, 0, &inst->kconsumer); "
     "ret = PTR_ERR_OR_ZERO(inst->kuprobe); }"},
    {FAULT_HANDLE, "linux/uprobes-inode.c",
     "(void) uprobe_unregister (inst->inode, c->offset, &inst->kconsumer);",
     "uprobe_unregister_nosync (inst->kuprobe, &inst->kconsumer); uprobe_unregister_sync ();"},
    /* -Wempty-body, which these kernels' makefiles ask for. */
    {FAULT_HANDLE, "linux/uprobes-inode.c", "; // already unlocked", "{} // already unlocked"},
    {FAULT_RENAME, "stp_task_work.c", "typeof(&task_work_cancel)",
     "typeof(&task_work_cancel_func)"},
    {FAULT_RENAME, "stp_task_work.c", "kallsyms_lookup_name(\"task_work_cancel\")",
     "kallsyms_lookup_name(\"task_work_cancel_func\")"},
    {FAULT_PROTOTYPES, "linux/autoconf-*.c", NULL, IGNORE_PROTOTYPES},
    {FAULT_PROTOTYPES, "runtime_defines.h", NULL, IGNORE_PROTOTYPES},
    {FAULT_PROTOTYPES, "sym.h", NULL, IGNORE_PROTOTYPES},
    /* A header that this test of the kernel includes names a struct before its declaration. */
    {FAULT_FOLIO, "linux/autoconf-utrace-via-tracepoints.c", NULL, "struct folio;\n"},
    {FAULT_STRLCPY, "runtime_defines.h", NULL,
     "#ifdef __KERNEL__\n"
     "#include <linux/string.h>\n"
     "#define strlcpy(to, from, size) ({ const char *strlcpy_from = (from); strscpy((to), "
     "strlcpy_from, (size)); strlen(strlcpy_from); })\n"
     "#endif\n"},
    /* A message whose header does not fit into a sub-buffer is lost, with all that follows.
     * Versions with a magic number in the header recover. */
    {FAULT_OUTPUT, "transport/relay_v2.c", "if (buf->offset >= buf->chan->subbuf_size) {",
     "if (buf->offset + sizeof(struct _stp_trace) >= buf->chan->subbuf_size) {"},
    {0, NULL, NULL, NULL},
};

/* ---------------------------------------------------------------- whether they are there */

static bool kernel_has(const char *kernel, const char *name, const char *text)
{
    const char *found = kernel_file(kernel, name);
    return found && strstr(found, text);
}

static bool runtime_has(const char *runtime, const char *name, const char *text)
{
    return file_has(format("%s/%s", runtime, name), text);
}

/* Whether the kernel's makefiles ask for -Wmissing-prototypes for all, not only for W=1. */
static bool kernel_wants_prototypes(const char *kernel)
{
    char *warnings = kernel_file(kernel, "scripts/Makefile.extrawarn");
    char *more = warnings ? strstr(warnings, "findstring 1") : NULL;
    if (more)
        *more = '\0';
    return warnings && strstr(warnings, "KBUILD_CFLAGS += -Wmissing-prototypes");
}

/* Whether SystemTap's tests of the kernel declare their functions. */
static bool has_prototypes(const char *runtime)
{
    static const char name[] = "linux/autoconf-alloc-percpu-align.c";
    char *test = read_file(under_root(format("%s/%s", runtime, name)), 65536);
    const char *first = test ? strstr(test, "foo") : NULL;
    return !first || strstr(first + 3, "foo");
}

static unsigned faults_with(const char *runtime, const char *kernel)
{
    static const char uprobes[] = "include/linux/uprobes.h", inode[] = "linux/uprobes-inode.c",
                      strings[] = "include/linux/string.h";
    unsigned faults = 0;
    if (kernel_has(kernel, uprobes, "uprobe_unregister_nosync") &&
        !runtime_has(runtime, inode, "uprobe_unregister_nosync"))
        faults |= FAULT_HANDLE;
    if (kernel_has(kernel, "include/linux/task_work.h", "task_work_cancel_func") &&
        runtime_has(runtime, "stp_task_work.c", "task_work_cancel") &&
        !runtime_has(runtime, "stp_task_work.c", "task_work_cancel_func"))
        faults |= FAULT_RENAME;
    if (kernel_wants_prototypes(kernel) && !has_prototypes(runtime)) {
        faults |= FAULT_PROTOTYPES;
        if (!runtime_has(runtime, "linux/autoconf-utrace-via-tracepoints.c", "<linux/mm"))
            faults |= FAULT_FOLIO;
    }
    if (kernel_file(kernel, strings) && !kernel_has(kernel, strings, "strlcpy") &&
        !kernel_has(kernel, "include/linux/fortify-string.h", "strlcpy") &&
        !runtime_has(runtime, "linux/runtime.h", "define strlcpy"))
        faults |= FAULT_STRLCPY;
    if (runtime_has(runtime, "transport/relay_v2.c",
                    "if (buf->offset >= buf->chan->subbuf_size) {") &&
        !runtime_has(runtime, "transport/transport_msgs.h", "magic"))
        faults |= FAULT_OUTPUT;
    return faults;
}

/* Whether the program at path contains text; true if it is a script. */
static bool program_has(const char *path, const char *text)
{
    struct stat status;
    int fd = open_regular(path, &status);
    size_t size = fd < 0 ? 0 : (size_t)status.st_size;
    char *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    /* A script that starts stap elsewhere says nothing about stap. */
    if (bytes == MAP_FAILED || size < 4 || memcmp(bytes, "\177ELF", 4) != 0)
        return true;
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

/* Linux 6.13 passes uprobes' handlers a third argument, and kbuild works in another folder from
 * then on; from 6.15 on kbuild ignores EXTRA_CFLAGS.  stap itself, which writes the makefile, has
 * to know both. */
static const char *too_old_for(const char *runtime, const char *kernel)
{
    static const char handler[] =
        "(*handler)(struct uprobe_consumer *self, struct pt_regs *regs, __u64 *data)";
    const char *makefile = kernel_file(kernel, "scripts/Makefile.lib");
    if (kernel_has(kernel, "include/linux/uprobes.h", handler) &&
        !runtime_has(runtime, "linux/uprobes-inode.c", "__u64 *"))
        return "this SystemTap is too old for Linux 6.13 and later";
    if (makefile && !strstr(makefile, "EXTRA_CFLAGS") && stap_program() &&
        !program_has(stap_program(), "ccflags-y"))
        return "this SystemTap is too old for Linux 6.15 and later";
    return NULL;
}

struct runtime runtime_for(const char *kernel)
{
    const char *given = getenv("SYSTEMTAP_RUNTIME");
    struct runtime runtime = {.kernel = kernel};
    runtime.given = given && *given ? given : NULL;
    runtime.folder = runtime.given ? given : stap_data_dir("runtime");
    if (!file_exists(under_root(runtime.folder)))
        runtime.folder = NULL;
    if (!runtime.folder || !has_headers(kernel))
        return runtime;
    runtime.too_old = too_old_for(runtime.folder, kernel);
    runtime.faults = faults_with(runtime.folder, kernel);
    return runtime;
}

void add_no_warnings(struct texts *command, const char *kernel)
{
    if (!kernel_has(kernel, "include/linux/args.h", "COUNT_ARGS"))
        return;
    struct stap_version version = known_stap_version();
    if (version.major && (version.major < 5 || (version.major == 5 && version.minor < 2)))
        texts_add_two(command, "-B", "KCFLAGS=-w");
}
