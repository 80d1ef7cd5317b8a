/*
 * Tries, without a kernel, what the tapset says of a thread that leaves its CPU
 * (python_sleep.stp.in): test/fast/tapset-c.bats makes sleeps_tapset.h from the tapset.  Files,
 * mounts and sockets are what this program makes, the memory of the process is its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include "kernel_files.h"

#include "sleeps_tapset.h"

static int user_byte(unsigned long address)
{
    unsigned char byte;
    return copy_from_kernel_nofault(&byte, (const void *)address, 1) ? -1 : byte;
}

/* ---------------------------------------------------------------- what there is */

static const struct file_system_type ext4 = {"ext4"}, pidfs = {"pidfs"};
static struct super_block disk = {.s_magic = 0xef53, .s_id = "sda1", .s_type = &ext4},
                          memory = {.s_magic = TMPFS_MAGIC, .s_id = "tmpfs", .s_type = &ext4},
                          pipes = {.s_magic = PIPEFS_MAGIC},
                          anonymous = {.s_magic = ANON_INODE_FS_MAGIC},
                          processes = {.s_type = &pidfs};

#define ENTRY(its_name, outer, system) \
    { \
        .d_name = {(const unsigned char *)(its_name), sizeof(its_name) - 1}, .d_parent = (outer), \
        .d_sb = (system), .d_hash.pprev = &disk \
    }
static struct dentry top = ENTRY("/", &top, &disk), home = ENTRY("home", &top, &disk),
                     file = ENTRY("a\tb", &home, &disk), tmpfs = ENTRY("/", &tmpfs, &memory),
                     in_memory = ENTRY("x", &tmpfs, &memory),
                     memfd = ENTRY("memfd:name", &memfd, &memory),
                     eventfd = ENTRY("[eventfd]", &eventfd, &anonymous),
                     pidfd = ENTRY("", &pidfd, &processes), pipe_end = ENTRY("", &pipe_end, &pipes);

/* The root; the same with tmpfs on /home; one that is mounted nowhere; one of the kernel's own. */
static struct python_mount root = {.parent = &root, .mnt = {&top, &disk}},
                           mounted = {.parent = &root,
                                      .mountpoint = &home,
                                      .mnt = {&tmpfs, &memory}},
                           elsewhere = {.parent = &elsewhere, .mnt = {&home, &disk}},
                           own = {.parent = &own, .mnt = {&top, &disk}};

static struct inode inode = {.i_ino = 77};
static struct file open_file = {.f_inode = &inode};
static struct file *descriptors[300] = {[5] = &open_file, [70] = &open_file};
static struct fdtable table = {300, descriptors};
static struct files_struct of_process = {&table};
static struct fs_struct of_paths;

static void open_as(struct dentry *entry, struct python_mount *mount, mode_t mode)
{
    open_file.f_path = (struct path){entry, &mount->mnt};
    inode.i_mode = (u16)mode;
    inode.i_sb = entry->d_sb;
}

/* ---------------------------------------------------------------- what is said */

static int failed;

static struct python_sample sample;

static void expect_with(enum python_detail detail, const char *expected, long number,
                        const unsigned long *arguments)
{
    char said[2 * PYTHON_WHICH + 64];
    system_call.number = number;
    memcpy(system_call.arguments, arguments, sizeof system_call.arguments);
    const char *kind = python_describe_kind(&sample, detail);
    sprintf(said, "%s%s%s", kind, sample.which[0] ? " " : "", sample.which);
    if (strcmp(said, expected) != 0) {
        printf("expected \"%s\", got \"%s\"\n", expected, said);
        failed = 1;
    }
}

#define expect(expected, number, ...) \
    expect_with(PYTHON_SAY_WHICH, expected, number, (unsigned long[6]){__VA_ARGS__})

static void of_paths_and_files(void)
{
    static char long_name[256], long_text[PYTHON_WHICH + 8];
    struct dentry cut = {.d_parent = &cut, .d_sb = &disk};
    open_as(&file, &root, S_IFREG);
    expect("file /home/a?b", SYS_read, 5);
    file.d_hash.pprev = NULL;
    expect("file /home/a?b (deleted)", SYS_read, 5);
    file.d_hash.pprev = &disk;
    open_as(&top, &root, S_IFDIR);
    expect("file /", SYS_getdents64, 5);
    open_as(&in_memory, &mounted, S_IFREG);
    expect("file /home/x", SYS_fsync, 5);
    open_as(&tmpfs, &mounted, S_IFDIR);
    expect("file /home", SYS_fsync, 5);
    /* seen from a chroot, and from another one */
    of_paths.root = (struct path){&home, &root.mnt};
    open_as(&file, &root, S_IFREG);
    expect("file /a?b", SYS_read, 5);
    open_as(&in_memory, &mounted, S_IFREG);
    of_paths.root = (struct path){&tmpfs, &mounted.mnt};
    expect("file /x", SYS_read, 5);
    of_paths.root = (struct path){0};
    expect("file /home/x", SYS_read, 5);
    /* a structure that is not what we think */
    mounted.mountpoint = &in_memory;
    expect("file tmpfs:/x", SYS_read, 5);
    mounted.mountpoint = &home;
    open_as(&file, &elsewhere, S_IFREG);
    expect("file /a?b", SYS_read, 5);
    /* names that are long, or can't be read */
    memset(long_name, 'n', 255);
    file.d_name.name = (const unsigned char *)long_name;
    file.d_name.len = 255;
    open_as(&file, &root, S_IFREG);
    sprintf(long_text, "file /home/%.255s", long_name);
    expect(long_text, SYS_read, 5);
    home.d_name = file.d_name;
    sprintf(long_text, "file .../%.255s", long_name);
    expect(long_text, SYS_read, 5);
    home.d_name = (__typeof__(home.d_name)){(const unsigned char *)"home", 4};
    file.d_name.len = 70000;
    expect("file ?", SYS_read, 5);
    file.d_name.name = (const unsigned char *)1;
    file.d_name.len = 3;
    expect("file ?", SYS_read, 5);
    file.d_name = (typeof(file.d_name)){(const unsigned char *)"a\tb", 3};
    file.d_parent = &cut;
    cut.d_parent = (struct dentry *)8;
    expect("file ?", SYS_read, 5);
    /* a circle */
    cut = (struct dentry)ENTRY("c", &file, &disk);
    file.d_name.len = cut.d_name.len = 0;
    expect("file ...////////////////////////////////////////////////////////////////", SYS_read, 5);
    file.d_name.len = 3;
    file.d_parent = &home;
}

static void of_files_without_paths(void)
{
    open_as(&pipe_end, &own, S_IFIFO);
    expect("pipe [77]", SYS_read, 5);
    open_as(&file, &root, S_IFIFO);
    expect("pipe /home/a?b", SYS_write, 5);
    open_as(&eventfd, &own, S_IFREG);
    expect("file anon_inode:[eventfd]", SYS_read, 5);
    open_as(&memfd, &own, S_IFREG);
    expect("file /memfd:name (deleted)", SYS_read, 5);
    open_as(&pidfd, &own, S_IFREG);
    expect("file pidfs:[77]", SYS_read, 5);
    expect("file ? (6)", SYS_read, 6);
    expect("file ? (300)", SYS_read, 300);
    expect("file ? (-1)", SYS_read, -1UL);
    descriptors[6] = (struct file *)16;
    expect("file ? (6)", SYS_read, 6);
    descriptors[6] = NULL;
}

static void of_sockets(void)
{
    struct unix_sock one = {0}, other = {0};
    struct sock *sock = &one.sk;
    struct sock_common *common = &sock->__sk_common;
    struct socket socket = {SOCK_STREAM, &open_file, sock};
    char room[sizeof(struct unix_address) + sizeof(struct sockaddr_un)];
    struct unix_address *address = (struct unix_address *)room;
    const unsigned long receive[6] = {5};
    open_as(&pipe_end, &own, S_IFSOCK);
    open_file.private_data = &socket;
    *common = (struct sock_common){AF_INET,           80,  htons(40000), htonl(0x0a000007),
                                   htonl(0x7f000001), {0}, {0}};
    expect("socket 127.0.0.1:80 -> 10.0.0.7:*", SYS_recvfrom, 5);
    expect_with(PYTHON_SAY_PORTS, "socket 127.0.0.1:80 -> 10.0.0.7:40000", SYS_recvfrom, receive);
    common->skc_num = 32768;
    expect("socket 127.0.0.1:32768 -> 10.0.0.7:40000", SYS_recvfrom, 5);
    common->skc_dport = htons(443);
    expect("socket 127.0.0.1:* -> 10.0.0.7:443", SYS_connect, 5);
    common->skc_dport = 0;
    socket.type = SOCK_DGRAM;
    expect("socket udp 127.0.0.1:32768", SYS_recvfrom, 5);
    socket.type = SOCK_RAW;
    common->skc_family = AF_INET6;
    common->skc_num = 58;
    common->skc_v6_rcv_saddr[15] = 1;
    expect("socket raw [::1]:58", SYS_recvmsg, 5);
    common->skc_family = AF_NETLINK;
    expect("socket netlink [77]", SYS_recvmsg, 5);
    common->skc_family = AF_PACKET;
    expect("socket [77]", SYS_recvmsg, 5);
    common->skc_family = AF_UNIX;
    expect("socket unix [77]", SYS_recvmsg, 5);
    one.peer = &other.sk;
    other.addr = address;
    address->len = (int)offsetof(struct sockaddr_un, sun_path) + 7;
    memcpy(address->name[0].sun_path, "/run/x", 7);
    expect("socket unix -> /run/x", SYS_recvmsg, 5);
    memcpy(address->name[0].sun_path, "\0a\0\nbc", 6);
    address->len--;
    one.addr = address;
    expect("socket unix @a??bc", SYS_recvmsg, 5);
    address->len = 4000;
    expect("socket unix [77]", SYS_recvmsg, 5);
    /* another socket has got its place */
    socket.file = NULL;
    expect("socket [77]", SYS_recvmsg, 5);
}

static void of_polls(void)
{
    struct pollfd many[70], polled[3] = {{5, 0, 0}, {-1, 0, 0}, {5, 0, 0}};
    u64 sets[2][16] = {{1 << 5}, {0}}, other[16] = {[1] = 1 << 6};
    open_as(&pipe_end, &own, S_IFIFO);
    expect("timer", SYS_poll, 0, 0);
    expect("pipe [77]", SYS_poll, (unsigned long)polled, 2);
    expect("poll 2 descriptors", SYS_ppoll, (unsigned long)polled, 3);
    for (int i = 0; i < 70; i++)
        many[i].fd = i % 2 ? 5 : -1;
    expect("poll 38 descriptors", SYS_poll, (unsigned long)many,
           70); /* the last 6 are not looked at */
    expect("poll", SYS_poll, 8, 3);
    expect("poll", SYS_poll, 8, -1UL);
    expect("timer", SYS_select, 0, 0, 0, 0);
    expect("timer", SYS_select, 5, (unsigned long)sets[0]);
    expect("pipe [77]", SYS_select, 6, (unsigned long)sets[0], 0, (unsigned long)sets[0]);
    expect("pipe [77]", SYS_pselect6, 300, 0, (unsigned long)other, 0);
    expect("poll 2 descriptors", SYS_select, 300, (unsigned long)sets[0], (unsigned long)other,
           (unsigned long)sets[1]);
    expect("poll", SYS_select, 300, 8);
    expect("epoll", SYS_epoll_wait, 5);
}

static void of_other_calls(void)
{
    const unsigned long file_name = (unsigned long)"/x\n/\303\244", none = (unsigned long)"";
    open_as(&file, &root, S_IFREG);
    expect("file /x?/\303\244", SYS_open, file_name);
    expect("file /x?/\303\244", SYS_openat, -100UL, file_name);
    expect("file /home/a?b", SYS_newfstatat, 5, none);
    expect("file", SYS_open, 8);
    expect("file lock /home/a?b", SYS_flock, 5, LOCK_EX);
    expect("file lock /home/a?b", SYS_fcntl, 5, F_SETLKW);
    expect("file /home/a?b", SYS_fcntl, 5, F_GETFL);
    expect("timer", SYS_clock_nanosleep, 0);
    expect("lock", SYS_futex, 4096);
    expect("child", SYS_wait4, -1UL);
    expect("signal", SYS_rt_sigtimedwait, 0);
    expect("munmap", SYS_munmap, 0);
    expect("system call 511", 511, 0);
    expect("system call 39", SYS_getpid, 0);
    /* goes on after a stop */
    struct pollfd polled = {5, 0, 0};
    current->restart_block.poll.ufds = &polled;
    current->restart_block.poll.nfds = 1;
    symbol_names[1] = "do_restart_poll";
    symbol_names[2] = "hrtimer_nanosleep_restart";
    symbol_names[3] = "futex_wait_restart";
    const char *const kinds[] = {"restart_syscall", "file /home/a?b", "timer", "lock"};
    for (uintptr_t i = 0; i < 4; i++) {
        current->restart_block.fn = (void *)i;
        expect(kinds[i], SYS_restart_syscall, 0);
    }
}

static void of_no_call(void)
{
    kernel_addresses[0] = 100;
    kernel_addresses[1] = 5;
    kernel_addresses_count = 2;
    expect("other", -1, 0);
    symbol_names[4] = "asm_exc_page_fault";
    expect("page fault", -1, 0);
    kernel_addresses_count = 0;
    expect("other", -1, 0);
    current->flags = PF_EXITING;
    expect("exit", SYS_exit_group, 0);
    current->flags = 0;
    current->frozen = true;
    expect("stopped", SYS_read, 5);
    expect("child", SYS_vfork, 0);
    current->frozen = false;
    for (unsigned state = 4; state < 65536; state <<= 1) {
        current->__state = state;
        expect(state == 4 || state == 8 || state == 0x8000 ? "stopped" : "timer", SYS_nanosleep, 0);
    }
}

/* ---------------------------------------------------------------- wall time */

/* Nanoseconds pass, of some of which the thread is on a CPU, and for others waits for one. */
static void pass(u64 ns, u64 on_cpu, u64 queued)
{
    now_ns += ns;
    current->se.sum_exec_runtime += on_cpu;
    current->sched_info.run_delay += queued;
}

static void expect_sum(const char *names, u64 expected)
{
    for (u32 number = 1; number < python_used_stacks; number++) {
        printed_length = 0;
        __python_stack_print_1(number);
        if (strcmp(printed, names) == 0 && python_stacks[number].sums[0] == expected)
            return;
    }
    printf("no \"%s\" with %llu\n", names, (unsigned long long)expected);
    failed = 1;
}

/* A thread's first sample, a sleep, a preemption and its end: each nanosecond is in one stack. */
static void of_wall(void)
{
    const char *root = "p (7)";
    current->__state = 1;
    current->flags = PF_FORKNOEXEC;
    open_as(&pipe_end, &own, S_IFIFO);
    system_call.number = SYS_read;
    system_call.arguments[0] = 5;
    now_ns = python_wall_began = 500;
    current->start_time = 1000;
    __python_wall_switch_4(root, PYTHON_PLAIN, 0, 1);
    failed |= python_is_kept() || __python_wall_open_3(root, PYTHON_PLAIN, 0) != -1;
    pass(4500000, 300000, 50000);
    failed |= !python_begin_wall(root, 300000) || !python_is_kept();
    s64 stack = __python_wall_open_3(root, PYTHON_PLAIN, 0);
    __python_stack_add_6(stack, 1, __python_wall_cpu_0(), 0, 0, 0);
    __python_stack_close_1(stack);
    pass(1000000, 900000, 0);
    __python_wall_switch_4(root, PYTHON_PLAIN, 0, 1);
    pass(2300000, 300000, 200000);
    current->on_rq = 1;
    __python_wall_switch_4(root, PYTHON_PLAIN, 0, 1);
    pass(600500, 100500, 450000); /* and an interrupt */
    current->on_rq = 0;
    current->__state = TASK_DEAD;
    current->flags |= PF_EXITING;
    __python_wall_switch_4(root, PYTHON_PLAIN, 0, 1);
    failed |= python_is_kept();
    expect_sum("p (7);[no Python]", 1500000);
    expect_sum("p (7);[no Python];[other]", 4500000 + 1000000 - 500 - 1200000 - 50000);
    expect_sum("p (7);[no Python];[pipe [77]]", 1800000);
    expect_sum("p (7);[no Python];[run queue]", 750000);
    expect_sum("p (7);[exit]", 100500);
    __python_wall_end_0();
    expect_sum("p (7);[exit]", 100500);
    for (u32 number = 1; number < python_used_stacks; number++) {
        failed |= (python_stacks[number].held & ~PYTHON_KEPT) >
                  (number == python_threads[1].asleep_stack);
        python_stacks[number].count = python_stacks[number].sums[0] = 0;
    }
    current->flags = 0;
}

/* What becomes of kinds in the table of stacks. */
static void of_names(void)
{
    char text[MAXSTRINGLEN], other[MAXSTRINGLEN];
    const char *const kinds[] = {"pipe", "pipe", "pipe", "run queue"};
    const char *const files[] = {"", "[77]", "(no room)", ""};
    s64 outer = python_make_stack(0, "outer", 5), stack;
    unsigned long flags;
    current->__state = 1;
    open_as(&pipe_end, &own, S_IFIFO);
    system_call.number = SYS_read;
    system_call.arguments[0] = 5;
    for (int i = 0; i < 4; i++) {
        stack =
            python_stack_of_sleep(&sample, (u32)outer, i == 3, false, i < 2 ? i : PYTHON_SAY_WHICH);
        __python_sleep_kind_1(text, stack);
        __python_sleep_which_1(other, stack);
        failed |= strcmp(text, kinds[i]) || strcmp(other, files[i]);
        if (failed)
            printf("%d: kind \"%s\", which \"%s\"\n", i, text, other);
        python_lock_stacks(&flags);
        python_add_sleep((u32)stack, 0, 10 + (u64)i, 2, 2, &flags);
        python_add_sleep((u32)stack, 0, 1, 0, 2, &flags);
        python_unlock_stacks(flags);
        /* the part of such names is full */
        for (int n = 0; i == 1 && n < 200000 && !python_no_rare_name; n++)
            python_rare_name_number(text, (size_t)sprintf(text, "%d", n));
        inode.i_ino = i == 1 ? 78 : 77;
    }
    failed |= __python_sleep_kinds_0() != 2 || __python_kind_count_1(0) != 3 ||
              __python_kind_time_1(0) != 33 || __python_kind_longest_1(0) != 12 ||
              __python_kind_count_1(1) != 5 || __python_kind_time_1(1) != 21;
    failed |= __python_stacks_no_rare_name_0() < 1;
}

/* Who ends a sleep: the first one that wakes the thread. */
static void of_wakers(void)
{
    static struct task_struct waker = {
        .mm = &current_mm, .pid = 99, .comm = "w;x", .group_leader = &waker};
    static const struct {
        const char *expected;
        int hard, soft, address, tgid;
        unsigned flags;
    } cases[] = {
        {"p;[pipe];[woken by];[interrupt]", .hard = 1},
        {"q;[pipe];[woken by];[interrupt]", .soft = 1, .address = 7},
        {"r;[pipe];[woken by];[interrupt]", .soft = 1},
        {"s;[pipe];[woken by];[w:x (98)]", .soft = 1, .address = 8, .tgid = 98},
        {"t;[pipe];[woken by];[kernel]", .flags = PF_KTHREAD},
        {"u;[pipe];[woken by];[w:x (98)]", .tgid = 98},
        {"v;[pipe];[woken by];[no Python]"},
    };
    struct task_struct *sleeper = current;
    symbol_names[6] = "__irq_exit_rcu";
    symbol_names[7] = "__local_bh_enable_ip";
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        u32 stack = python_make_stack(0, cases[i].expected, 1);
        stack = python_make_stack(stack, "[pipe]", 6);
        python_note_stack(stack);
        failed |= !python_begin_sleep(stack, 0, 0);
        current = &waker;
        waker.tgid = cases[i].tgid ? cases[i].tgid : sleeper->tgid;
        waker.flags = cases[i].flags;
        hard_interrupt = cases[i].hard;
        soft_interrupt = cases[i].soft;
        kernel_addresses[0] = (unsigned long)cases[i].address;
        kernel_addresses[1] = 8;
        kernel_addresses_count = cases[i].address ? 2 : 0;
        python_woken(sleeper, 0, 0);
        waker.flags = PF_KTHREAD;
        python_woken(sleeper, 0, 0);
        hard_interrupt = soft_interrupt = 0;
        kernel_addresses_count = 0;
        current = sleeper;
        now_ns += 1000;
        __python_sleep_end_1(0);
        expect_sum(cases[i].expected, 1000);
    }
    symbol_names[6] = symbol_names[7] = NULL;
    /* the kind is that of the sleep */
    failed |= __python_sleep_kinds_0() != 1;
    for (u32 number = 1; number < python_used_stacks; number++)
        python_stacks[number].count = python_stacks[number].sums[0] = 0;
}

int main(void)
{
    current->files = &of_process;
    current->fs = &of_paths;
    current->__state = 1;
    of_paths.root = (struct path){&top, &root.mnt};
    of_paths_and_files();
    of_files_without_paths();
    of_sockets();
    of_polls();
    of_other_calls();
    of_no_call();
    of_wall();
    of_wakers();
    of_names();
    puts(failed ? "not as expected" : "all as expected");
    return failed;
}
