/*
 * Sockets, as ss says them in short.  A part of python_sleep.stp.in, which includes it behind
 * python_sleep_files.h.
 *
 * SPDX-License-Identifier: MIT
 */

/* The ports that the kernel gives to a connection's own end, unless it is told otherwise
 * (net.ipv4.ip_local_port_range). */
enum { PYTHON_FIRST_EPHEMERAL = 32768, PYTHON_LAST_EPHEMERAL = 60999 };

static int python_is_ephemeral_port(unsigned port)
{
    return port >= PYTHON_FIRST_EPHEMERAL && port <= PYTHON_LAST_EPHEMERAL;
}

/* One end, of 4 or 16 bytes; without its number: "*". */
static void python_describe_endpoint(char *to, int room, const u8 *address, unsigned length, unsigned port, int with_port)
{
    int used = length == 4 ? scnprintf(to, room, "%pI4:", address) : scnprintf(to, room, "[%pI6c]:", address);
    if (with_port)
        scnprintf(to + used, room - used, "%u", port);
    else
        scnprintf(to + used, room - used, "*");
}

/* An IPv4 or IPv6 socket.  Without ports, those that the kernel gave to the other end of a fixed one are left out, so
 * that the connections of a server, or to one, are one row. */
static int python_describe_inet(char *which, const struct socket *socket, const struct sock *sock, int family, int ports)
{
    const struct sock_common *common = &sock->__sk_common;
    u8 here[16], there[16];
    unsigned length = family == AF_INET ? 4 : 16;
    __be16 port_there;
    u16 port_here;
    short type;
    static char end[2][56];
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

/* The name of a unix socket, with what is before it; 0: it has none. */
static int python_describe_unix_name(char *which, const char *before, const struct sock *sock)
{
    const struct unix_sock *unix_sock = (const struct unix_sock *)sock;
    const struct unix_address *address;
    static char path[sizeof(struct sockaddr_un) + 1];
    unsigned length, i;
    if (!sock || !python_peek(address, &unix_sock->addr) || !address || !python_peek(length, &address->len) ||
        length <= offsetof(struct sockaddr_un, sun_path) || length > sizeof(struct sockaddr_un))
        return 0;
    length -= offsetof(struct sockaddr_un, sun_path);
    if (copy_from_kernel_nofault(path, (const char *)address->name + offsetof(struct sockaddr_un, sun_path), length))
        return 0;
    /* an abstract one begins with a zero byte, and has no other end than its length */
    path[0] = path[0] ? path[0] : '@';
    for (i = 0; i < length && (path[i] || path[0] == '@'); i++)
        path[i] = python_plain(path[i]);
    path[i] = '\0';
    scnprintf(which, PYTHON_WHICH, "unix %s%s", before, path);
    return 1;
}

/* Its own name, else that to which it is connected, else its number. */
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
