# stap-python: what it finds out about a process whose files were replaced or deleted, that has several CPythons, or that
# is one of many.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Makes $files, a folder that others can read, for files that the test deletes.
make_files() {
  files=$BATS_TEST_TMPDIR/files
  mkdir "$files"
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
  chmod a+rwx "$BATS_TEST_TMPDIR"
}

# Runs the launcher as the user nobody.
as_nobody() {
  timeout -k 5 $((60 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" "$@"
}

# Replaces $1 by another file of this name, as an update does.
replace() {
  cp "$1" "$1.new"
  mv "$1.new" "$1"
}

# Compiles $files/embeds, which loads the libpython of its first argument, deletes the file and its folder, and runs
# Python with the other arguments.
make_bundle() {
  need gcc
  cat >"$BATS_TEST_TMPDIR/embeds.c" <<'C'
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words)
{
    void *library = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
    int (*run)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "Py_BytesMain") : NULL;
    if (!run || unlink(words[1]) != 0 || rmdir(dirname(strdup(words[1]))) != 0)
        return 3;
    words[1] = words[0];
    return run(count - 1, words + 1);
}
C
  gcc -o "$files/embeds" "$BATS_TEST_TMPDIR/embeds.c" -ldl
}

# $libpython: a libpython of the system.
need_libpython() {
  libpython=$(find /usr/lib /usr/lib64 -name 'libpython3.*.so.1.0' 2>/dev/null | head -n 1)
  [ -n "$libpython" ] || skip "needs a libpython of the system's"
}

@test "of several CPythons in a process the one that runs is shown, and attach takes it" {
  need gcc
  local minor
  make_files
  for minor in 5 8; do
    echo "const char *Py_GetVersion(void) { return \"3.$minor.9 (another)\"; } const unsigned long Py_Version = 0x030${minor}09f0;" |
      gcc -shared -fPIC -o "$files/libpython3.$minor.so.1.0" -x c -
    start_program /usr/bin/python3 -c "import ctypes, runpy, sys
ctypes.CDLL('$files/libpython3.$minor.so.1.0')
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name='__main__')"
    run launcher list "$program"
    [ "${lines[0]}" = "$program: $(readlink -f /usr/bin/python3), CPython $(version_of /usr/bin/python3)" ]
    launcher ps --json 2>/dev/null | grep "\"pid\": $program, .*\"version\": \"$(version_of /usr/bin/python3)\""
    if has_remote_calls; then
      run launcher attach "$program"
      [ "$status $output" = "0 $program: active: $shim" ]
    fi
    program_ends
  done
  # if a program loads two itself, the one that runs is unknown
  gcc -o "$files/loads" -x c - -ldl <<'C'
#include <dlfcn.h>
#include <unistd.h>
int main(int count, char **words)
{
    for (int i = 1; i < count; i++)
        if (!dlopen(words[i], RTLD_NOW))
            return 3;
    return sleep(600);
}
C
  echo 'const char *Py_GetVersion(void) { return "3.9.9 (a third)"; }' | gcc -shared -fPIC -o "$files/libpython3.9.so.1.0" -x c -
  "$files/loads" "$files/libpython3.8.so.1.0" "$files/libpython3.9.so.1.0" &
  programs+=($!)
  wait_for grep -q 'libpython3.9' "/proc/$!/maps"
  launcher list "$!" | grep -x "  one of 2 CPythons in it: which one runs can't be told"
}

@test "an interpreter, a libpython and a C library that were replaced while the program runs: root attaches" {
  need_remote_calls
  [ "$(id -u)" = 0 ] || skip "needs root, which can read what was deleted"
  local library
  make_files
  need_libpython
  library=$(ldd /usr/bin/python3 | awk '$1 == "libc.so.6" { print $3 }')
  cp "$(readlink -f /usr/bin/python3)" "$files/python3"
  start_program "$files/python3"
  replace "$files/python3"
  run launcher attach "$program"
  [ "$status $output" = "0 $program: active: $shim" ]
  launcher list "$program" | grep -x "  the shim: active, $shim"
  program_ends
  # deleted with its folder, by a program that unpacked it
  make_bundle
  mkdir "$files/bundle"
  cp "$libpython" "$files/bundle"
  start_program "$files/embeds" "$files/bundle/${libpython##*/}"
  [ ! -e "$files/bundle" ]
  run launcher attach "$program"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
  mkdir "$files/libraries"
  cp -L "$library" "$files/libraries"
  start_program env LD_LIBRARY_PATH="$files/libraries" /usr/bin/python3
  grep -q "$files/libraries/libc.so.6$" "/proc/$program/maps"
  replace "$files/libraries/libc.so.6"
  run launcher attach "$program"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
}

@test "a Python whose path has a newline is found, by its user too" {
  need_remote_calls
  make_files
  local python=$files/$'new\nline/python3'
  mkdir "${python%/*}"
  cp "$(readlink -f /usr/bin/python3)" "$python"
  chmod -R a+rX "$files"
  start_program "$python"
  run launcher list "$program"
  [ "$status ${lines[0]}" = "0 $program: $files/new\\012line/python3, CPython $(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ]
  run launcher attach "$program"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
  [ "$(id -u)" = 0 ] || return 0
  need setpriv
  start_program setpriv --reuid=65534 --regid=65534 --clear-groups "$python"
  run as_nobody list "$program"
  [[ "$status ${lines[0]}" = "0 $program: $files/new\\012line/python3, CPython 3."* ]]
}

@test "the same without root: what can't be read is said, with the cure" {
  need_remote_calls
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  local library as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  make_files
  need_libpython
  library=$(ldd /usr/bin/python3 | awk '$1 == "libc.so.6" { print $3 }')
  cp "$(readlink -f /usr/bin/python3)" "$files/python3"
  start_program "${as[@]}" "$files/python3"
  replace "$files/python3"
  run as_nobody attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  make_bundle
  chmod a+rwx "$files"
  "${as[@]}" mkdir "$files/bundle"
  "${as[@]}" cp "$libpython" "$files/bundle"
  start_program "${as[@]}" "$files/embeds" "$files/bundle/${libpython##*/}"
  run as_nobody attach "$program"
  echo "$output"
  [ "$status $output" = "1 stap-python: attach: $program: its ${libpython##*/} was replaced or deleted while it runs, and only root can read what it has of that: run this as root, or restart it" ]
  mkdir "$files/libraries"
  cp -L "$library" "$files/libraries"
  start_program "${as[@]}" env LD_LIBRARY_PATH="$files/libraries" /usr/bin/python3
  replace "$files/libraries/libc.so.6"
  run as_nobody attach "$program"
  echo "$output"
  [ "$status $output" = "1 stap-python: attach: $program: its C library was replaced or deleted while it runs, and only root can read what it has of that: run this as root, or restart it" ]
}

@test "a bundle that deletes the libpython that it has unpacked is seen if the shim is preloaded" {
  local library
  make_files
  need_libpython
  make_bundle
  mkdir "$files/bundle"
  cp "$libpython" "$files/bundle"
  start_program env LD_PRELOAD="$shim" "$files/embeds" "$files/bundle/${libpython##*/}"
  [ ! -e "$files/bundle" ]
  launcher list "$program" | grep -x "  the shim: active, $shim"
  can_bpftrace
  bpftrace_until function__entry "pid == $program && str(arg1) == \"fib\"" 'str(arg1)'
  grep -E '^@calls\[fib\]: [1-9]' "$trace"
  program_ends
}

# Starts a program that maps the file $1 where the shim's page would be.
start_with_page() {
  LD_PRELOAD=$shim PYTHON_STAP=off /usr/bin/python3 -c '
import ctypes, os, sys, time
mmap = ctypes.CDLL(None).mmap
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
READ_WRITE, MAP_PRIVATE_FIXED = 3, 0x12
mmap(0x5500707A0000, 4096, READ_WRITE, MAP_PRIVATE_FIXED, os.open(sys.argv[1], os.O_RDONLY), 0)
open(sys.argv[2], "w").close()
time.sleep(60)' "$1" "$BATS_TEST_TMPDIR/started" 3>&- &
  programs+=($!)
  wait_for test -e "$BATS_TEST_TMPDIR/started"
}

@test "a file that a program maps where the shim's page would be is not read" {
  { printf ftp3 && head -c 20 /dev/zero && printf forged; } >"$BATS_TEST_TMPDIR/page"
  truncate -s 4096 "$BATS_TEST_TMPDIR/page"
  start_with_page "$BATS_TEST_TMPDIR/page"
  run launcher filter $!
  [ "$status $output" = "1 stap-python: $!: the shim of this version isn't active in it: stap-python attach $!" ]
}

# Makes $folder a file system whose server, $server, answers no read. $1: the inode number of its files.
serve_unanswered() {
  folder=$BATS_TEST_TMPDIR/mounted
  if [ "$(id -u)" != 0 ] || [ ! -w /dev/fuse ]; then skip "needs root and FUSE"; fi
  mkdir "$folder"
  /usr/bin/python3 "$top/test/workloads/unanswered.py" "$folder" "$1" 3>&- &
  server=$!
  programs+=("$server")
  wait_for test -e "$folder/page"
}

# Who reads such a file can't be killed before its server ends.
@test "neither is a file there whose inode has the number 0, as a server of FUSE may choose, and whose reads never end" {
  local process
  serve_unanswered 0
  start_with_page "$folder/page"
  process=${programs[-1]}
  launcher filter "$process" >"$BATS_TEST_TMPDIR/said" 2>&1 3>&- &
  wait_for test -s "$BATS_TEST_TMPDIR/said" || true
  kill "$server" "$process"
  umount -l "$folder"
  [ ! -e "$folder.asked" ]
  [ "$(cat "$BATS_TEST_TMPDIR/said")" = "stap-python: $process: the shim of this version isn't active in it: stap-python attach $process" ]
}

@test "a program that puts such a file there just before it is read is not waited for" {
  local process
  serve_unanswered 1
  LD_PRELOAD=$shim PYTHON_STAP=off /usr/bin/python3 -c '
import ctypes, os, sys
mmap = ctypes.CDLL(None).mmap
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
READ_WRITE, PRIVATE_FIXED, ANONYMOUS = 3, 0x12, 0x20
file = os.open(sys.argv[1], os.O_RDONLY)
while True:
    mmap(0x5500707A0000, 4096, READ_WRITE, PRIVATE_FIXED | ANONYMOUS, -1, 0)
    mmap(0x5500707A0000, 4096, READ_WRITE, PRIVATE_FIXED, file, 0)' "$folder/page" 3>&- &
  process=$!
  programs+=("$process")
  wait_for grep -q 5500707a0000- "/proc/$process/maps"
  for _ in {1..200}; do
    launcher filter "$process" >"$BATS_TEST_TMPDIR/said" 2>&1 3>&- &
    wait_for test -s "$BATS_TEST_TMPDIR/said" || break
    rm "$BATS_TEST_TMPDIR/said"
    [ ! -e "$folder.asked" ] || break
  done
  kill "$server" "$process"
  umount -l "$folder"
  [ -e "$folder.asked" ]
  [ ! -e "$BATS_TEST_TMPDIR/said" ]
}

@test "in a PID namespace -x says that the kernel knows the process by another PID" {
  [ "$(id -u)" = 0 ] || skip "needs root, for PIDs of its own"
  need unshare
  cat >"$BATS_TEST_TMPDIR/script" <<'SH'
/usr/bin/python3 -c 'import sys, time
open(sys.argv[1], "w").close()
while True: time.sleep(0.02)' "$started" &
until [ -e "$started" ]; do sleep 0.05; done
"$launcher" attach $! || exit 8
status=0
"$launcher" pycalls --backend bpftrace -x $! || status=$?
echo "status $status"
STAP=/bin/true "$launcher" pycalls -x $!
echo "status $?"
SH
  has_remote_calls || skip "needs x86-64 or aarch64, whose calls attach makes with ptrace"
  need bpftrace
  run env launcher="$launcher" started="$BATS_TEST_TMPDIR/started" timeout -k 5 $((60 * SLOW)) unshare --pid --fork --mount-proc --kill-child bash "$BATS_TEST_TMPDIR/script"
  echo "$output"
  [ "${lines[1]}" = "stap-python: 2: the kernel knows it by another PID, which this PID namespace does not show: run this outside of the container, or leave out -x" ]
  [ "${lines[2]}" = 'status 1' ]
  [ "${lines[3]}" = "stap-python: the kernel knows 2 by another PID, which this PID namespace does not show: -x sees nothing here: run this outside of the container, or leave out -x" ]
  [ "${lines[4]}" = 'status 0' ]
}

@test "-x of a master or of a worker says how many others there are" {
  local master worker
  cat >"$BATS_TEST_TMPDIR/serves.py" <<PY
import os, signal, time

for _ in range(3):
    if os.fork() == 0:
        break
else:
    open("$BATS_TEST_TMPDIR/forked", "w").close()
    for _ in range(3):
        os.wait()
time.sleep(600)
PY
  LD_PRELOAD=$shim /usr/bin/python3 "$BATS_TEST_TMPDIR/serves.py" 3>&- &
  master=$!
  wait_for test -e "$BATS_TEST_TMPDIR/forked"
  worker=$(pgrep -P "$master" | head -n 1)
  mapfile -t programs < <(pgrep -P "$master")
  programs+=("$master")
  STAP=true run launcher pycalls -x "$master"
  [ "$status $output" = "0 stap-python: -x does not trace the 3 Pythons that $master has already started: to see them, stap-python attach --children $master, then leave out -x" ]
  STAP=true run launcher pycalls -x "$worker"
  [ "$status $output" = "0 stap-python: -x traces $worker alone, not the 2 other Pythons of its parent $master: to see all, stap-python attach --children $master, then leave out -x" ]
}
