/*
 * Fuzzes what the tapset says of a thread that leaves its CPU (python_sleep.stp.in): any system
 * call with any arguments, in a process whose memory is the input, while its open files are closed,
 * renamed, unmounted and freed, so that what is read of them is a mixture.
 *
 * What is said must have its end, no control characters, and be said soon.
 *
 * SPDX-License-Identifier: MIT
 */
#include "kernel_files.h"

#include "sleeps_tapset.h"

static const uint8_t *memory;
static size_t memory_size;

/* From 4096 on the input repeatedly. */
static int user_byte(unsigned long address)
{
    return memory_size && address >= 4096 ? memory[address % memory_size] : -1;
}

/* All that the kernel knows of the files. */
static struct kernel {
    struct file_system_type type;
    struct super_block systems[2];
    struct dentry entries[6];
    struct python_mount mounts[2];
    struct inode inodes[3];
    struct file files[3];
    struct file *descriptors[4];
    struct fdtable table;
    struct files_struct of_process;
    struct fs_struct of_paths;
    struct socket socket;
    struct unix_sock ends[2];
    char names[64];
    union {
        struct unix_address address;
        char room[sizeof(struct unix_address) + sizeof(struct sockaddr_un)];
    };
} kernel;

/* A directory with a file, a mount on another one, a pipe, a socket. */
static void make_files(void)
{
    struct kernel *k = &kernel;
    memset(k, 0, sizeof *k);
    strcpy(k->names, "directory");
    k->type.name = k->names;
    for (int i = 0; i < 2; i++) {
        k->systems[i].s_type = &k->type;
        k->systems[i].s_magic = i ? PIPEFS_MAGIC : TMPFS_MAGIC;
        strcpy(k->systems[i].s_id, "disk");
        k->mounts[i].mnt = (struct vfsmount){&k->entries[3 * i], &k->systems[0]};
        k->mounts[i].parent = &k->mounts[0];
        k->mounts[i].mountpoint = &k->entries[i];
    }
    for (int i = 0; i < 6; i++) {
        struct dentry *entry = &k->entries[i];
        entry->d_name.name = (const unsigned char *)k->names;
        entry->d_name.len = (u32)i + 1;
        entry->d_parent = i % 3 ? entry - 1 : entry;
        entry->d_sb = &k->systems[0];
        entry->d_hash.pprev = i % 2 ? entry : NULL;
    }
    for (int i = 0; i < 3; i++) {
        k->inodes[i].i_sb = &k->systems[i == 1];
        k->inodes[i].i_mode = (u16)(i == 0 ? S_IFREG : i == 1 ? S_IFIFO : S_IFSOCK);
        k->files[i].f_path = (struct path){&k->entries[i == 0 ? 5 : 3], &k->mounts[1].mnt};
        k->files[i].f_inode = &k->inodes[i];
        k->descriptors[i] = &k->files[i];
    }
    k->files[2].private_data = &k->socket;
    k->socket = (struct socket){SOCK_STREAM, &k->files[2], &k->ends[0].sk};
    k->ends[0].sk.__sk_common.skc_family = AF_UNIX;
    k->ends[0].peer = &k->ends[1].sk;
    k->ends[1].addr = &k->address;
    k->address.len = sizeof(struct sockaddr_un);
    k->table = (struct fdtable){4, k->descriptors};
    k->of_process.fdt = &k->table;
    k->of_paths.root = (struct path){&k->entries[0], &k->mounts[0].mnt};
    current->files = &k->of_process;
    current->fs = &k->of_paths;
}

/* Another thread changes a word: to one of the input, or to an address in there. */
static void change(u16 where, u16 what, u64 word)
{
    u64 *words = (u64 *)&kernel;
    size_t count = sizeof kernel / sizeof *words;
    words[where % count] = what & 1 ? word : (u64)(uintptr_t)&words[what % count];
}

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "sleeps: %s\n", what);
        abort();
    }
}

static void check_text(const char *text, size_t room)
{
    size_t length = strnlen(text, room);
    check(length < room, "no end");
    for (size_t i = 0; i < length; i++)
        check((unsigned char)text[i] >= ' ' && text[i] != 0x7f, "a control character");
}

/* What becomes of it in the table of stacks. */
static void check_names(struct python_sample *sample, bool queued, enum python_detail detail)
{
    char kind[MAXSTRINGLEN], which[MAXSTRINGLEN];
    unsigned long lock;
    u32 stack =
        python_stack_of_sleep(sample, python_make_stack(0, "outer", 5), queued, false, detail);
    if (!stack)
        return;
    __python_sleep_kind_1(kind, stack);
    __python_sleep_which_1(which, stack);
    check_text(kind, 64);
    check_text(which, PYTHON_WHICH);
    python_lock_stacks(&lock);
    python_add_sleep(stack, 0, 5, 7, 0, &lock);
    python_unlock_stacks(lock);
    check(__python_sleep_kinds_0() > 0, "no sums");
    python_drop_stack(stack);
}

/* The start of an input, behind which its memory is. */
struct head {
    u64 arguments[6];
    u16 call;
    u16 changes[8][2];
    u8 state, flags, queued;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct head head;
    static struct python_sample sample;
    if (size < sizeof head)
        return 0;
    memcpy(&head, data, sizeof head);
    memory = data + sizeof head;
    memory_size = size - sizeof head;
    make_files();
    for (int i = 0; i < 8 && head.flags & 1; i++)
        change(head.changes[i][0], head.changes[i][1], head.arguments[i % 6] + (u64)i);
    system_call.number = head.call % 512 == 511 ? -1 : head.call % 512;
    memcpy(system_call.arguments, head.arguments, sizeof head.arguments);
    current->__state = head.state & 15 ? head.state : 1;
    current->flags = head.flags & 4;
    current->frozen = head.flags & 8;
    current->restart_block.fn = (void *)(uintptr_t)(head.flags >> 4 & 3);
    symbol_names[1] = "futex_wait_restart";
    symbol_names[2] = "do_restart_poll";
    symbol_names[3] = "hrtimer_nanosleep_restart";
    current->restart_block.futex.uaddr = (const u32 *)(uintptr_t)head.arguments[0];
    current->restart_block.poll.ufds = (const void *)(uintptr_t)head.arguments[1];
    current->restart_block.poll.nfds = (int)head.arguments[2];
    user_reads = kernel_reads = 0;
    const char *kind = python_describe_kind(&sample, head.flags >> 1 & 3);
    check_text(sample.which, sizeof sample.which);
    check_text(kind, 64);
    check(kind[0] != '\0', "no kind");
    check(user_reads <= 400 && kernel_reads <= 600, "too many reads");
    check_names(&sample, head.queued & 1, head.queued >> 1 & 3);
    return 0;
}
