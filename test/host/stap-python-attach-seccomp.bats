# stap-python: attach to programs with seccomp filters.  bpftrace gets the events of those that have the shim.  stap is
# not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Compiles test/workloads/filtered.c: the program $filtered, and the library $filtered.so.
make_filtered() {
  [ "$(id -u)" = 0 ] || skip "needs root, to see filters"
  need_remote_calls
  need gcc
  gcc -E -dM -include sys/syscall.h -x c /dev/null | sed -n 's/^#define SYS_\([a-z0-9_]*\) .*/{"\1", SYS_\1},/p' >"$BATS_TEST_TMPDIR/calls.h"
  filtered=$BATS_TEST_TMPDIR/filtered
  gcc -I "$BATS_TEST_TMPDIR" -o "$filtered" "$top/test/workloads/filtered.c"
  gcc -I "$BATS_TEST_TMPDIR" -shared -fPIC -o "$filtered.so" "$top/test/workloads/filtered.c"
}

# Starts the program, one of whose threads then sets a filter with these flags of seccomp(): 0 for the thread itself,
# 1 (TSYNC) for all threads.  The words that follow start Python.
# usage: start_limited FLAGS "ANSWER CALL..." WORD...
start_limited() {
  cat >"$BATS_TEST_TMPDIR/limited.py" <<'PY'
import ctypes, os, sys, threading, time

library, flags, words = ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode().split()
sys.argv = sys.argv[4:]


def limit():
    # a filter may forbid the program's threads, and what a thread calls until it has begun
    while sum(thread.is_alive() for thread in threading.enumerate()) < 5:
        time.sleep(0.01)
    assert library.limit(len(words), (ctypes.c_char_p * len(words))(*words), flags) == 0
    while True:
        time.sleep(1)


threading.Thread(target=limit, daemon=True).start()
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
PY
  start_program "${@:3}" "$BATS_TEST_TMPDIR/limited.py" "$filtered.so" "$1" "$2"
  wait_for thread_has "$program" status "Seccomp_filters:.$(($# > 3 ? 2 : 1))"
}

# The system calls that Docker's default filter refuses to a container without capabilities on x86-64
# (moby/profiles/seccomp/default.json), except those that C libraries no longer have.
docker=(namespaces acct add_key bpf chroot clock_settime delete_module fanotify_init finit_module fsconfig fsmount fsopen
  fspick get_mempolicy init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind migrate_pages
  mount mount_setattr move_mount move_pages open_by_handle_at open_tree perf_event_open personality pidfd_getfd pivot_root
  process_madvise quotactl quotactl_fd reboot request_key set_mempolicy setdomainname sethostname setns settimeofday swapoff
  swapon syslog umount2 unshare userfaultfd vhangup)
# The system calls that @system-service of systemd 247 leaves out (systemd/src/shared/seccomp-util.c).  This version
# does not have close_range() yet.
service=(acct adjtimex bpf chroot clock_adjtime clock_settime close_range delete_module fanotify_init fanotify_mark
  finit_module fsconfig fsmount fsopen fspick init_module ioperm iopl kexec_file_load kexec_load landlock_create_ruleset
  lookup_dcookie modify_ldt mount mount_setattr move_mount open_by_handle_at open_tree perf_event_open pidfd_getfd
  pivot_root pkey_alloc pkey_free pkey_mprotect process_madvise ptrace quotactl reboot seccomp setdomainname sethostname
  settimeofday swapoff swapon sysfs syslog umount2 uselib ustat vhangup)

# Checks that attach loads the shim into the program, which has a filter, that bpftrace gets its calls, and that it ends
# with the right result.
is_seen() {
  run launcher attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  can_bpftrace
  # counted in the kernel: the program is busy, and bpftrace might not keep up with printing
  bpftrace_until function__entry 'str(arg1) == "fib"' 'str(arg0)'
  grep -qE "^@calls\[$BATS_TEST_TMPDIR/program.py\]: [1-9]" "$trace"
  program_ends
}

@test "attach to a program with the filter that Docker sets, and that of a service, which kills" {
  make_filtered
  local python
  for python in $(pythons_by_hook); do
    echo "$python"
    start_program "$filtered" 38 clone3 -- "$filtered" 1 "${docker[@]}" -- "$python"
    [ "$(awk '/Seccomp_filters/ { print $2 }' "/proc/$program/status")" = 2 ]
    is_seen
    start_program "$filtered" kill "${service[@]}" -- "$python"
    is_seen
  done
  # systemd's MemoryDenyWriteExecute
  start_program "$filtered" 1 writable-code -- /usr/bin/python3
  is_seen
}

@test "the shim makes no system call but those that attach looks for" {
  make_filtered
  can_bpftrace
  local python killed allowed
  # and what the program itself calls, to its end
  allowed=$(grep -oP 'CALL\(\K\w+' "$top/probes/stap-python/attach/seccomp.c")
  allowed+=" clock_nanosleep exit_group ioctl lseek pselect6 restart_syscall rt_sigaction rt_sigreturn select write"
  killed=$(grep -oP '^\{"\K\w+' "$BATS_TEST_TMPDIR/calls.h" | grep -vxF -f <(tr ' ' '\n' <<<"$allowed"))
  [ "$(wc -w <<<"$killed")" -gt 250 ]
  for python in $(pythons_by_hook | some 2); do
    echo "$python"
    start_limited 1 "kill ${killed//$'\n'/ }" "$python"
    run launcher attach "$program"
    echo "$output"
    [ "$status $output" = "0 $program: active: $shim" ]
    bpftrace_while "$(all_markers)" sleep 1
    sleep 0.5
    bpftrace_until function__entry 'str(arg1) == "fib"' 'str(arg0)'
    grep -qE "^@calls\[$BATS_TEST_TMPDIR/program.py\]: [1-9]" "$trace"
    program_ends
  done
}

@test "attach refuses a program whose filter forbids what the shim needs, which runs on unharmed" {
  make_filtered
  local words
  for words in 'kill getdents64' 'trap pread64' '1 clone3' '38 clone' '1 openat' 'kill sched_getaffinity'; do
    start_limited 1 "$words" /usr/bin/python3
    attach_refuses "its seccomp filter forbids ${words#* }\(\), which the shim needs: start it with stap-python run"
    program_ends
  done
  # each of its filters counts
  start_limited 1 'kill getdents64' "$filtered" 1 bpf -- /usr/bin/python3
  attach_refuses 'its seccomp filter forbids getdents64\(\)'
  program_ends
  start_limited 1 '1 bpf' "$filtered" 1 gettid -- /usr/bin/python3
  attach_refuses 'its seccomp filter forbids gettid\(\)'
  program_ends
}

@test "attach refuses a program of which one thread has a filter, as the shim would do nothing there" {
  make_filtered
  start_limited 0 '1 bpf' /usr/bin/python3
  attach_refuses 'a thread of it has a seccomp filter that others have not, and the shim would do nothing'
  program_ends
}

@test "attach refuses a program with a filter to those who may not see the filter" {
  make_filtered
  need setpriv
  local nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  start_program "${nobody[@]}" "$filtered" 1 bpf -- /usr/bin/python3
  run timeout $((20 * SLOW)) "${nobody[@]}" "$launcher" attach "$program"
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == "stap-python: attach: $program: seccomp filters its system calls, and only root outside of a container may see the filter: use sudo"* ]]
  program_ends
}

# Linux executes uretprobe() (6.11 and later) and, at sites with a nop of five bytes, uprobe() (6.18) in a traced program, and
# exempts both from filters.
@test "a filter that kills at the kernel's own uprobe() and uretprobe() does no harm to a program that is traced" {
  make_filtered
  [ "$(uname -m)" = x86_64 ] || skip "needs x86-64, which alone has these calls"
  local python
  sed -i '/^{"uprobe"\|^{"uretprobe"/d' "$BATS_TEST_TMPDIR/calls.h"
  printf '{"uretprobe", 335},\n{"uprobe", 336},\n' >>"$BATS_TEST_TMPDIR/calls.h"
  gcc -I "$BATS_TEST_TMPDIR" -o "$filtered" "$top/test/workloads/filtered.c"
  # it does kill at the second one
  run "$filtered" kill uprobe uretprobe -- /usr/bin/python3 -c 'import ctypes; ctypes.CDLL(None).syscall(336); print("alive")'
  [ "$status" = 159 ] && [ -z "$output" ]
  for python in $(few_pythons | some 9); do
    echo "$python"
    start_program "$filtered" kill uprobe uretprobe -- "$python"
    is_seen
    # preloaded, and traced twice
    LD_PRELOAD=$shim start_program "$filtered" kill uprobe uretprobe -- "$python"
    wait_for thread_has "$program" comm python-stap
    for _ in 1 2; do
      bpftrace_until function__entry 'str(arg1) == "fib"' 'str(arg0)' "uretprobe:$(own_file "$python"):PyGC_Collect { }"
      grep -qE "^@calls\[$BATS_TEST_TMPDIR/program.py\]: [1-9]" "$trace"
    done
    program_ends
  done
}
