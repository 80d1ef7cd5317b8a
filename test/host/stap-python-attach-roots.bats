# stap-python: attach to programs in another root or mount namespace, into which it mounts this machine's shim.  bpftrace
# gets their events outside the root.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Makes $root, with a Python and no shim.
make_root() {
  local python library
  [ "$(id -u)" = 0 ] || skip "needs root, for other roots and mounts"
  need_remote_calls
  need unshare chroot nsenter
  python=$(readlink -f /usr/bin/python3)
  root=$BATS_TEST_TMPDIR/root
  mkdir -p "$root"/{usr/bin,usr/lib,run,tmp,dev/shm,proc}
  chmod 1777 "$root/tmp"
  ln -s usr/bin usr/lib usr/lib64 "$root"
  cp "$python" "$root/usr/bin/python3"
  cp -a "/usr/lib/${python##*/}" "$root/usr/lib"
  for library in $(ldd "$python" | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$(readlink -f "$(dirname "$library")")/x")"
    cp -L "$library" "$root$(readlink -f "$(dirname "$library")")"
  done
  # for the program, at its own path
  mkdir -p "$root$BATS_TEST_TMPDIR"
}

# Starts the program in $root, in its own mount namespace, after the shell commands, which may mount there.  Its PID is
# $program.  The words that follow enter the root; by default chroot "$root".
# usage: start_in_root [COMMANDS [WORD...]]
start_in_root() {
  local enter=("${@:2}")
  [ "$#" -gt 1 ] || enter=(chroot "$root")
  export root top shim folder=$BATS_TEST_TMPDIR
  rm -f "$root$folder/end"
  start_program unshare -m sh -c "set -e
    [ ! -e \"\$root\$folder\" ] || cp \"\$folder/program.py\" \"\$root\$folder\"
    ${1:-}
    exec \"\$@\"" sh "${enter[@]}" /usr/bin/python3
  # shellcheck disable=SC2034 # by program_ends
  end=/proc/$program/root$BATS_TEST_TMPDIR/end
}

# Checks that attach prints this path and text, and that the program has loaded this machine's shim.
# usage: attaches PATH [TEXT]
attaches() {
  run launcher attach "$program"
  echo "$output"
  [ "$status" = 0 ]
  [ "${lines[0]}" = "$program: active: $1" ]
  [ "${lines[1]}" = "$program: that is ${2:-our file, mounted in its root}" ]
  [ "${#lines[@]}" = 2 ]
  [ "$(stat -Lc %d:%i "$shim")" = "$(stat -Lc %d:%i "/proc/$program/map_files/$(awk '/libpython-stap/ { print $1; exit }' "/proc/$program/maps")")" ]
}

# Checks that bpftrace, which probes the shim at its path outside the root, gets the program's calls.
events_arrive() {
  can_bpftrace
  # counted in the kernel: the program is busy, and bpftrace might not keep up with printing
  bpftrace_until function__entry 'str(arg1) == "fib" && str(arg4) == "__main__"' 'str(arg0)'
  grep -qE "^@calls\[$BATS_TEST_TMPDIR/program.py\]: [1-9]" "$trace"
}

@test "attach to a program in a chroot: its root gets our shim, at the same path" {
  make_root
  start_in_root
  # with the mounts that the program has: only the root is another
  run timeout $((60 * SLOW)) nsenter -t "$program" -m "$launcher" attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim
$program: that is our file, mounted in its root" ]
  events_arrive
  run launcher attach "$program"
  [[ "$status $output" == "0 $program: already active: "*"$shim" ]]
  # nothing can write to it there
  nsenter -t "$program" -m grep " $root$shim ro,nosuid,nodev" /proc/self/mountinfo
  refute nsenter -t "$program" -m sh -c ": >>$root$shim"
  program_ends
  # what is left is an empty file
  [ "$(find "$root$top" -type f -printf '%p %s %u %m\n')" = "$root$shim 0 root 644" ]
}

@test "attach to programs in a container's root: bind mounts and pivot_root, overlayfs" {
  make_root
  mkdir "$root/old" "$BATS_TEST_TMPDIR"/{upper,work}
  start_in_root 'mount --bind "$root" "$root"; cd "$root"' /usr/bin/python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None)
assert libc.pivot_root(b".", b"old") == 0
os.chdir("/")
assert libc.umount2(b"/old", 2) == 0
os.execv(sys.argv[1], sys.argv[1:])'
  attaches "$shim"
  events_arrive
  program_ends
  rm -r "$root$top"
  start_in_root 'mount -t overlay overlay -o "lowerdir=$root,upperdir=$folder/upper,workdir=$folder/work" "$root"'
  attaches "$shim"
  events_arrive
  program_ends
  # the image is as it was
  refute find "$root$top"
}

@test "one mount serves all programs of a root" {
  make_root
  local first
  start_in_root
  attaches "$shim"
  first=$program
  start_program nsenter -t "$first" -m chroot "$root" /usr/bin/python3
  run launcher attach "$program"
  [ "$status $output" = "0 $program: active: $shim" ]
  [ "$(nsenter -t "$first" -m grep -c "$shim" /proc/self/mountinfo)" = 1 ]
  : >"/proc/$first/root$BATS_TEST_TMPDIR/end"
  program_has_ended
}

@test "attach to a program whose root is read-only: the shim is mounted where files can be made" {
  make_root
  local read_only
  # as docker run --read-only does
  read_only='mount -t tmpfs none "$root$folder"
    cp "$folder/program.py" "$root$folder"
    mount -o remount,bind,ro "$root"'
  start_in_root "mount --bind \"\$root\" \"\$root\"
    mount -t tmpfs -o noexec,mode=1777 none \"\$root/dev/shm\"
    $read_only"
  attaches "/dev/shm/libpython-stap.so.0" "$shim, mounted in its root, and found as that by bpftrace and perf; stap does not find it there"
  events_arrive
  program_ends
  # nothing can be written there
  start_in_root "mount --bind \"\$root\" \"\$root\"
    $read_only"
  attach_refuses "which lacks the shim, and it cannot be mounted there .*Read-only file system.*: copy $shim to the same path there"
  program_ends
}

@test "no link or file in the program's root leads attach out of it, or is written to" {
  make_root
  local outside=$BATS_TEST_TMPDIR/outside
  mkdir -p "$outside"
  echo precious >"$outside/victim"
  # the shim's folder, /run and /dev/shm are links to a folder of ours
  mkdir -p "$root/dev" "$root$(dirname "$top")"
  rmdir "$root"/{run,dev/shm}
  ln -s "$outside" "$root/run"
  ln -s "$outside" "$root/dev/shm"
  ln -s "$outside" "$root$top"
  start_in_root
  attaches "/tmp/libpython-stap.so.0" "$shim, mounted in its root, and found as that by bpftrace and perf; stap does not find it there"
  [ "$(ls "$outside")" = victim ]
  program_ends
  rm "$root$top" "$root/run"
  mkdir "$root/run"
  # the file is a link to a file of ours: it is not replaced, and another folder is used
  mkdir -p "$root$top/build"
  ln -s "$outside/victim" "$root$shim"
  start_in_root
  attaches "/run/libpython-stap.so.0" "$shim, mounted in its root, and found as that by bpftrace and perf; stap does not find it there"
  program_ends
  rm "$root$shim"
  # a file of root's that is no shim is covered, and remains as it is
  echo theirs >"$root$shim"
  start_in_root
  attaches "$shim"
  program_ends
  [ "$(cat "$root$shim")" = theirs ]
  [ "$(cat "$outside/victim") $(ls "$outside")" = "precious victim" ]
  # another user's folder
  rm "$root$shim"
  chown 65534 "$root$top/build"
  start_in_root
  attach_refuses "whose shim others can change: $top/build is owned by another user"
  program_ends
}

@test "in a user namespace the file is made by that namespace's root; others can't mount" {
  [ "$(id -u)" = 0 ] || skip "needs root, for another user"
  need unshare setpriv nsenter
  local nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  "${nobody[@]}" unshare -Urm true || skip "needs user namespaces for everybody"
  start_program "${nobody[@]}" unshare -Urm sh -c "mount -t tmpfs -o mode=755 none $top/build && exec /usr/bin/python3 \"\$@\"" sh
  run timeout $((20 * SLOW)) "${nobody[@]}" "$launcher" attach "$program"
  echo "$output"
  [ "$status" = 1 ]
  [ "$output" = "stap-python: attach: $program: it is in a container or another root, which lacks the shim, and it cannot be mounted there (run this as root): copy $shim to the same path there" ]
  attaches "$shim"
  nsenter -t "$program" -m umount -l "$shim"
  [ "$(stat -c '%u %s' "/proc/$program/root$shim")" = '65534 0' ]
  program_ends
}

@test "attach makes no file of root's where a program leads it that makes a user namespace meanwhile" {
  [ "$(id -u)" = 0 ] || skip "needs root, for another user"
  need gcc unshare setpriv
  local outside=$BATS_TEST_TMPDIR/outside
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
  setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm true || skip "needs user namespaces for everybody"
  mkdir "$outside"
  cat >"$BATS_TEST_TMPDIR/moves.py" <<'PY'
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)


def moves(*ignored):
    libc.unshare(0x10020000)  # CLONE_NEWUSER | CLONE_NEWNS
    with open("/proc/self/uid_map", "w") as file:
        file.write("0 65534 1")
    libc.mount(sys.argv[1].encode(), sys.argv[2].encode(), None, 4096, None)  # MS_BIND
    libc.prctl(15, b"moved")  # PR_SET_NAME


signal.signal(signal.SIGUSR1, moves)
libc.prctl(15, b"waits")
while True:
    time.sleep(0.01)
PY
  # When stap-python opens the program's root for the second time, to mount there, the program moves.
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/moves.so" -x c - <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int open(const char *path, int flags, ...)
{
    static int times;
    char root[64], comm[64], name[16] = "";
    const char *pid = getenv("MOVES");
    snprintf(root, sizeof root, "/proc/%s/root", pid);
    snprintf(comm, sizeof comm, "/proc/%s/comm", pid);
    if (strcmp(path, root) == 0 && ++times == 2) {
        kill(atoi(pid), SIGUSR1);
        while (strcmp(name, "moved\n") != 0) {
            FILE *file = fopen(comm, "r");
            if (!file || !fgets(name, sizeof name, file))
                return -1;
            fclose(file);
            usleep(10000);
        }
    }
    return syscall(SYS_openat, AT_FDCWD, path, flags, 0644);
}
C
  unshare -m sh -c 'mount -t tmpfs -o mode=755 none "$1" && mount -t tmpfs -o mode=1777 none /dev/shm && shift &&
    exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' sh "$top/build" /usr/bin/python3 "$BATS_TEST_TMPDIR/moves.py" "$outside" "$top/build" &
  programs+=($!)
  wait_for grep -qx waits "/proc/$!/comm"
  MOVES=$! LD_PRELOAD=$BATS_TEST_TMPDIR/moves.so run launcher attach $!
  echo "$output"
  grep -qx moved "/proc/$!/comm"
  [ -z "$(ls "$outside")" ]
}

@test "attach says which version of glibc a root lacks for the shim; the program runs on" {
  make_root
  local newest
  make_tree
  newest=$(grep -aoE 'GLIBC_2\.[0-9]+' "$shim" | sort -uV | tail -n 1)
  shim=$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0
  sed "s/$newest/${newest/_2/_9}/" "$top/build/libpython-stap.so.0" >"$shim"
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  start_in_root
  attach_refuses "dlopen\(\) failed in it: .*version .${newest/_2/_9}. not found"
  program_ends
}

@test "attach to a Python of an older glibc's root, Debian 11's" {
  export old=$top/build/distros/bullseye
  [ -x "$old/usr/bin/python3.9" ] || skip "needs Debian 11's root: make check-distros"
  make_root
  mkdir "$BATS_TEST_TMPDIR"/{upper,work}
  start_in_root 'mount -t overlay overlay -o "lowerdir=$old,upperdir=$folder/upper,workdir=$folder/work" "$root"
    mkdir -p "$root$folder"
    cp "$folder/program.py" "$root$folder"
    mount -t proc none "$root/proc"'
  [[ $(readlink -f "/proc/$program/exe") == */python3.9 ]]
  attaches "$shim"
  can_bpftrace
  bpftrace_until function__entry 'str(arg1) == "fib"' 'str(arg1)'
  grep -qE '^@calls\[fib\]: [1-9]' "$trace"
  program_ends
}

# Checks that bpftrace gets calls of $program; counts in the kernel, because two programs make many calls.
fib_is_counted() {
  can_bpftrace
  bpftrace_until function__entry "str(arg1) == \"fib\" && pid == $program" pid
  grep -qE "^@calls\[$program\]: [1-9]" "$trace"
}

@test "attach within a chroot, to a program of the same root, and to one outside" {
  make_root
  local library
  # our files and those that stap-python needs are there at their own paths
  mkdir -p "$root$top" "$root/proc"
  for library in $(ldd "$launcher" | grep -o '/[^ ]*'); do
    cp -L "$library" "$root$(readlink -f "$(dirname "$library")")"
  done
  local mounts='mount --bind "$top" "$root$top"; mount -t proc proc "$root/proc"'
  start_in_root "$mounts"
  inside=(timeout $((60 * SLOW)) nsenter -t "$program" -m chroot "$root" "$launcher")
  run "${inside[@]}" attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  fib_is_counted
  run "${inside[@]}" list "$program"
  echo "$output"
  grep -qx "  the shim: active, $shim" <<<"$output"
  # one outside, whose root has the same file at the same path
  local first=$program
  start_program /usr/bin/python3
  run "${inside[@]}" attach "$program"
  echo "$output"
  [ "$status" = 0 ]
  [ "${lines[0]}" = "$program: active: $shim" ]
  fib_is_counted
  program_ends
  : >"/proc/$first/root$BATS_TEST_TMPDIR/end"
}
