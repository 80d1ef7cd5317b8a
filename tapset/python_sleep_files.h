/*
 * The files and sockets of the thread that leaves its CPU.  A part of python_sleep.stp.in, which includes it behind
 * python_system_calls.h.
 *
 * At the switch the run queue's lock is held: d_path(), fget() and whatever else takes a lock, or repeats what it
 * reads while another CPU changes it, could wait there for a CPU that waits for that lock.  So files are found and
 * paths are read by hand.  Another thread may close, rename or unmount meanwhile, and what is read may have been
 * freed, so each read is one that may fail (copy_from_kernel_nofault()), and each loop ends: the result may then be a
 * mixture, or "?".
 *
 * SPDX-License-Identifier: MIT
 */

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 8, 0)
#define copy_from_kernel_nofault probe_kernel_read
#endif

/* Whether the kernel's memory there could be read into the variable. */
#define python_peek(to, from) (copy_from_kernel_nofault(&(to), (const void *)(from), sizeof(to)) == 0)

/* So long is what is said of a file or socket at most, and so many names and mounts has a path. */
enum { PYTHON_WHICH = 300, PYTHON_PATH_STEPS = 64 };

/* A text that grows at its front. */
struct python_path {
    char text[PYTHON_WHICH];
    unsigned at;
    int full;
};

/* Printable in a line; UTF-8 stays. */
static char python_plain(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
}

static void python_prepend(struct python_path *path, const char *text, unsigned length)
{
    static const char dots[] = {'.', '.', '.'};
    if (path->full)
        return;
    if (length + sizeof dots > path->at) {
        path->full = 1;
        text = dots;
        length = sizeof dots;
    }
    path->at -= length;
    while (length--)
        path->text[path->at + length] = python_plain(text[length]);
}

/* Prepends a name that the kernel has, with a slash before it; 0: it can't be read. */
static int python_prepend_name(struct python_path *path, struct dentry *dentry)
{
    static char name[NAME_MAX + 1];
    const unsigned char *from;
    u32 length;
    if (!python_peek(length, &dentry->d_name.len) || !python_peek(from, &dentry->d_name.name) || length > NAME_MAX ||
        copy_from_kernel_nofault(name, from, length))
        return 0;
    python_prepend(path, name, length);
    python_prepend(path, "/", 1);
    return 1;
}

/* fs/mount.h: struct mount, so far the same since 3.13. */
struct python_mount {
    struct hlist_node hash;
    struct python_mount *parent;
    struct dentry *mountpoint;
    struct vfsmount mnt;
};

/* Steps from the root of a mount to the place where it is mounted: 1; 0: it is mounted nowhere; -1: that can't be
 * read, or this kernel's structure is another one. */
static int python_leave_mount(struct vfsmount **mnt, struct dentry **dentry)
{
    struct python_mount *mount = container_of(*mnt, struct python_mount, mnt), *parent;
    struct super_block *above, *of_place;
    struct dentry *place;
    if (!python_peek(parent, &mount->parent) || !python_peek(place, &mount->mountpoint))
        return -1;
    if (parent == mount)
        return 0;
    if (!python_peek(above, &parent->mnt.mnt_sb) || !python_peek(of_place, &place->d_sb) || above != of_place)
        return -1;
    *mnt = &parent->mnt;
    *dentry = place;
    return 1;
}

/* The name of the file system that the mount is of stands before a path of which no more is known. */
static void python_prepend_system(struct python_path *path, const struct vfsmount *mnt)
{
    const struct super_block *system;
    static char name[sizeof system->s_id];
    if (!python_peek(system, &mnt->mnt_sb) || !python_peek(name, system->s_id))
        name[0] = '\0';
    name[sizeof name - 1] = '\0';
    python_prepend(path, ":", 1);
    python_prepend(path, name[0] ? name : "?", name[0] ? strlen(name) : 1);
}

/* The path from the process's root, or from that of the mounts that it sees. */
static const char *python_path_of(struct python_path *path, struct vfsmount *mnt, struct dentry *dentry)
{
    struct path root;
    struct dentry *top, *outer;
    unsigned steps;
    int left;
    if (!python_peek(root, &current->fs->root))
        return "?";
    path->full = 0;
    path->at = sizeof path->text - 1;
    path->text[path->at] = '\0';
    for (steps = 0; steps < PYTHON_PATH_STEPS && (dentry != root.dentry || mnt != root.mnt); steps++) {
        if (!python_peek(top, &mnt->mnt_root))
            return "?";
        if (dentry == top) {
            left = python_leave_mount(&mnt, &dentry);
            if (left < 0)
                python_prepend_system(path, mnt);
            if (left <= 0)
                break;
            continue;
        }
        if (!python_peek(outer, &dentry->d_parent) || !python_prepend_name(path, dentry))
            return "?";
        if (outer == dentry)
            break;
        dentry = outer;
    }
    if (steps == PYTHON_PATH_STEPS)
        python_prepend(path, "...", 3);
    else if (!path->text[path->at])
        python_prepend(path, "/", 1);
    return path->text + path->at;
}

/* What is read of a file. */
struct python_file {
    struct file *file;
    struct inode *inode;
    umode_t mode;
    unsigned long number; /* of the inode */
};

/* The open file of a descriptor; 0: it can't be had. */
static int python_find_file(struct python_file *found, unsigned descriptor)
{
    struct files_struct *files = current->files;
    typeof(found->inode->i_ino) number;
    struct fdtable *table;
    struct file **place;
    unsigned most;
    if (!files || !python_peek(table, &files->fdt) || !python_peek(most, &table->max_fds) || descriptor >= most ||
        !python_peek(place, &table->fd) || !python_peek(found->file, place + descriptor) || !found->file ||
        !python_peek(found->inode, &found->file->f_inode) || !python_peek(found->mode, &found->inode->i_mode) ||
        !python_peek(number, &found->inode->i_ino))
        return 0;
    found->number = number;
    return 1;
}

/* "TYPE:[NUMBER]", as /proc has it of a file that has no path. */
static void python_describe_pseudo_file(char *which, const struct python_file *file)
{
    const struct super_block *system;
    const struct file_system_type *type;
    const char *name;
    static char text[16];
    int i;
    if (!python_peek(system, &file->inode->i_sb) || !python_peek(type, &system->s_type) || !python_peek(name, &type->name) ||
        !python_peek(text, name))
        strcpy(text, "?");
    text[sizeof text - 1] = '\0';
    for (i = 0; text[i]; i++)
        text[i] = python_plain(text[i]);
    scnprintf(which, PYTHON_WHICH, "%s:[%lu]", text, file->number);
}

/* Which file or pipe: as ls -l /proc/PID/fd says it. */
static void python_describe_file(char *which, const struct python_file *file)
{
    static struct python_path path;
    struct super_block *system;
    struct dentry *outer, *top;
    unsigned long magic;
    const char *text;
    struct path place;
    void *hashed;
    int pseudo;
    if (!python_peek(system, &file->inode->i_sb) || !python_peek(magic, &system->s_magic) ||
        !python_peek(place, &file->file->f_path) || !python_peek(outer, &place.dentry->d_parent) ||
        !python_peek(hashed, &place.dentry->d_hash.pprev) || !python_peek(top, &place.mnt->mnt_root)) {
        strcpy(which, "?");
        return;
    }
    pseudo = outer == place.dentry && top != place.dentry;
    if (magic == PIPEFS_MAGIC) {
        scnprintf(which, PYTHON_WHICH, "[%lu]", file->number);
        return;
    }
    if (pseudo && magic != ANON_INODE_FS_MAGIC && magic != TMPFS_MAGIC && magic != HUGETLBFS_MAGIC) {
        python_describe_pseudo_file(which, file);
        return;
    }
    text = python_path_of(&path, place.mnt, place.dentry);
    if (magic == ANON_INODE_FS_MAGIC)
        scnprintf(which, PYTHON_WHICH, "anon_inode:%s", text + (*text == '/'));
    else
        scnprintf(which, PYTHON_WHICH, "%s%s", text, pseudo || (!hashed && outer != place.dentry) ? " (deleted)" : "");
}
