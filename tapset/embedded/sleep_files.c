/*
 * Describes the files and sockets of the thread that leaves its CPU.  The texts are written into the probe's sample.
 *
 * In a context switch the run queue's lock is held.  A function that takes another lock, or reads again while another
 * CPU changes what it reads (d_path(), fget()), could wait for a CPU that waits for the run queue's lock.  Therefore
 * this file finds files and reads paths itself.  Another thread may close, rename or unmount meanwhile, and what is
 * read may be freed: each read may fail (copy_from_kernel_nofault()), each loop has a limit, and the result may be a
 * mixture, or "?".
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedded/embedded.h"

/* ---------------------------------------------------------------- files and paths */

/* Reads kernel memory into a variable; false: unreadable. */
#define python_peek(to, from) (copy_from_kernel_nofault(&(to), (const void *)(from), sizeof(to)) == 0)

/* The limit for names and mounts of a path. */
enum { PYTHON_PATH_STEPS = 64 };

/* A text that is written from its end to its front. */
struct python_path {
    char *text; /* PYTHON_WHICH bytes: `part` of the sample */
    char *name; /* PYTHON_SAMPLE_TEXT bytes: `text` of the sample */
    unsigned at;
    int full;
};

/* The character, or ? for a control character; bytes of UTF-8 stay. */
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

/* Prepends a slash and the name of a dentry; false: unreadable. */
static int python_prepend_name(struct python_path *path, struct dentry *dentry)
{
    const unsigned char *from;
    u32 length;
    BUILD_BUG_ON(NAME_MAX >= PYTHON_SAMPLE_TEXT);
    if (!python_peek(length, &dentry->d_name.len) || !python_peek(from, &dentry->d_name.name) || length > NAME_MAX ||
        copy_from_kernel_nofault(path->name, from, length))
        return 0;
    python_prepend(path, path->name, length);
    python_prepend(path, "/", 1);
    return 1;
}

/* The beginning of struct mount (fs/mount.h), the same since Linux 3.13. */
struct python_mount {
    struct hlist_node hash;
    struct python_mount *parent;
    struct dentry *mountpoint;
    struct vfsmount mnt;
};

/* 1: goes from the root of a mount to its mount point; 0: it is mounted nowhere; -1: unreadable, or this kernel has
 * another struct mount. */
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

/* Prepends "NAME:", the file system of the mount, to a path whose beginning is unknown. */
static void python_prepend_system(struct python_path *path, const struct vfsmount *mnt)
{
    const struct super_block *system;
    char name[sizeof system->s_id];
    if (!python_peek(system, &mnt->mnt_sb) || !python_peek(name, system->s_id))
        name[0] = '\0';
    name[sizeof name - 1] = '\0';
    python_prepend(path, ":", 1);
    python_prepend(path, name[0] ? name : "?", name[0] ? strlen(name) : 1);
}

/* The path from the process's root, or else from the root of the mounts that the process sees; "?": unreadable. */
static const char *python_path_of(struct python_path *path, struct vfsmount *mnt, struct dentry *dentry)
{
    struct path root;
    struct dentry *top, *outer;
    unsigned steps;
    int left;
    if (!python_peek(root, &current->fs->root))
        return "?";
    path->full = 0;
    path->at = PYTHON_WHICH - 1;
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

struct python_file {
    struct file *file;
    struct inode *inode;
    umode_t mode;
    unsigned long number; /* of the inode */
};

/* Finds the open file of a descriptor; false: not open, or unreadable. */
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

/* Writes "TYPE:[NUMBER]", as /proc/PID/fd shows a file without a path. */
static void python_describe_pseudo_file(char *which, const struct python_file *file)
{
    const struct super_block *system;
    const struct file_system_type *type;
    const char *name;
    char text[16];
    int i;
    if (!python_peek(system, &file->inode->i_sb) || !python_peek(type, &system->s_type) || !python_peek(name, &type->name) ||
        !python_peek(text, name))
        strcpy(text, "?");
    text[sizeof text - 1] = '\0';
    for (i = 0; text[i]; i++)
        text[i] = python_plain(text[i]);
    scnprintf(which, PYTHON_WHICH, "%s:[%lu]", text, file->number);
}

/* Writes a file's path as /proc/PID/fd shows it, or "[NUMBER]" of a pipe. */
static void python_describe_file(struct python_sample *sample, const struct python_file *file)
{
    struct python_path path = {.text = sample->part, .name = sample->text};
    char *which = sample->which;
    struct super_block *system;
    struct dentry *outer, *top;
    unsigned long magic;
    const char *text;
    struct path place;
    void *hashed;
    int pseudo;
    if (!python_peek(system, &file->inode->i_sb) || !python_peek(magic, &system->s_magic)) {
        strcpy(which, "?");
        return;
    }
    if (magic == PIPEFS_MAGIC) {
        scnprintf(which, PYTHON_WHICH, "[%lu]", file->number);
        return;
    }
    if (!python_peek(place, &file->file->f_path) || !python_peek(outer, &place.dentry->d_parent) ||
        !python_peek(hashed, &place.dentry->d_hash.pprev) || !python_peek(top, &place.mnt->mnt_root)) {
        strcpy(which, "?");
        return;
    }
    pseudo = outer == place.dentry && top != place.dentry;
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

/* ---------------------------------------------------------------- sockets, shortened from the form of ss(8) */

/* The local ports that the kernel assigns by default (net.ipv4.ip_local_port_range). */
enum { PYTHON_FIRST_EPHEMERAL = 32768, PYTHON_LAST_EPHEMERAL = 60999 };

static int python_is_ephemeral_port(unsigned port)
{
    return port >= PYTHON_FIRST_EPHEMERAL && port <= PYTHON_LAST_EPHEMERAL;
}

/* Writes an address of 4 or 16 bytes and its port, or "*" for the port. */
static void python_describe_endpoint(char *to, int room, const u8 *address, unsigned length, unsigned port, int with_port)
{
    int used = length == 4 ? scnprintf(to, room, "%pI4:", address) : scnprintf(to, room, "[%pI6c]:", address);
    if (with_port)
        scnprintf(to + used, room - used, "%u", port);
    else
        scnprintf(to + used, room - used, "*");
}

/* Writes an IPv4 or IPv6 socket; false: unreadable.  Unless ports is set, an ephemeral port opposite a fixed one is "*", so
 * that the connections of a server, or to one, are one row. */
static int python_describe_inet(char *which, const struct socket *socket, const struct sock *sock, int family, int ports)
{
    const struct sock_common *common = &sock->__sk_common;
    u8 here[16], there[16];
    unsigned length = family == AF_INET ? 4 : 16;
    __be16 port_there;
    u16 port_here;
    short type;
    char end[2][56];
    int leave_out;
    if (!python_peek(port_here, &common->skc_num) || !python_peek(port_there, &common->skc_dport) ||
        !python_peek(type, &socket->type))
        return 0;
    if (family == AF_INET) {
        if (copy_from_kernel_nofault(here, &common->skc_rcv_saddr, 4) || copy_from_kernel_nofault(there, &common->skc_daddr, 4))
            return 0;
#if IS_ENABLED(CONFIG_IPV6)
    } else if (!python_peek(here, &common->skc_v6_rcv_saddr) || !python_peek(there, &common->skc_v6_daddr)) {
        return 0;
#endif
    }
    leave_out = !ports && port_there && python_is_ephemeral_port(port_here) != python_is_ephemeral_port(ntohs(port_there));
    python_describe_endpoint(end[0], sizeof end[0], here, length, port_here, !leave_out || !python_is_ephemeral_port(port_here));
    python_describe_endpoint(end[1], sizeof end[1], there, length, ntohs(port_there), !leave_out || !python_is_ephemeral_port(ntohs(port_there)));
    scnprintf(which, PYTHON_WHICH, "%s%s%s%s", type == SOCK_STREAM ? "" : type == SOCK_DGRAM ? "udp " : "raw ", end[0],
              port_there ? " -> " : "", port_there ? end[1] : "");
    return 1;
}

/* Writes the name of a Unix socket, behind the text before; false: it has none. */
static int python_describe_unix_name(char *which, const char *before, const struct sock *sock)
{
    const struct unix_sock *unix_sock = (const struct unix_sock *)sock;
    const struct unix_address *address;
    char path[sizeof(struct sockaddr_un) + 1];
    unsigned length, i;
    if (!sock || !python_peek(address, &unix_sock->addr) || !address || !python_peek(length, &address->len) ||
        length <= offsetof(struct sockaddr_un, sun_path) || length > sizeof(struct sockaddr_un))
        return 0;
    length -= offsetof(struct sockaddr_un, sun_path);
    if (copy_from_kernel_nofault(path, (const char *)address->name + offsetof(struct sockaddr_un, sun_path), length))
        return 0;
    /* an abstract name begins with a NUL, and ends by its length alone */
    path[0] = path[0] ? path[0] : '@';
    for (i = 0; i < length && (path[i] || path[0] == '@'); i++)
        path[i] = python_plain(path[i]);
    path[i] = '\0';
    scnprintf(which, PYTHON_WHICH, "unix %s%s", before, path);
    return 1;
}

/* Writes the name of a Unix socket, else that of its peer, else its number. */
static void python_describe_unix(char *which, const struct sock *sock, unsigned long number)
{
    const struct sock *peer;
    if (python_describe_unix_name(which, "", sock))
        return;
    if (!python_peek(peer, &((const struct unix_sock *)sock)->peer) || !python_describe_unix_name(which, "-> ", peer))
        scnprintf(which, PYTHON_WHICH, "unix [%lu]", number);
}

static void python_describe_socket(char *which, const struct python_file *file, int ports)
{
    const struct socket *socket;
    const struct file *its_file;
    const struct sock *sock;
    unsigned short family;
    if (!python_peek(socket, &file->file->private_data) || !python_peek(its_file, &socket->file) || its_file != file->file ||
        !python_peek(sock, &socket->sk) || !sock || !python_peek(family, &sock->__sk_common.skc_family))
        scnprintf(which, PYTHON_WHICH, "[%lu]", file->number);
    else if (family == AF_UNIX)
        python_describe_unix(which, sock, file->number);
    else if ((family != AF_INET && family != AF_INET6) || !python_describe_inet(which, socket, sock, family, ports))
        scnprintf(which, PYTHON_WHICH, family == AF_NETLINK ? "netlink [%lu]" : "[%lu]", file->number);
}
