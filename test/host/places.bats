# Pythons in unusual surroundings: attach loads the shim, bpftrace gets their events, and they continue unharmed.  In
# other roots: stap-python-attach-roots.bats; with filters: stap-python-attach-seccomp.bats.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Checks that bpftrace gets calls of fib() in the files whose names end with $1.
fib_is_counted() {
  can_bpftrace
  bpftrace_until function__entry 'str(arg1) == "fib"' 'str(arg0)'
  cat "$trace"
  grep -qE "^@calls\[.*$1\]: [1-9]" "$trace"
}

@test "the first process of a PID namespace: attach from outside, and from inside, where it is 1" {
  [ "$(id -u)" = 0 ] || skip "needs root, for namespaces"
  need_remote_calls
  need unshare nsenter
  local parent first
  for from in outside inside; do
    start_program unshare -pf --kill-child --mount-proc /usr/bin/python3
    parent=$program
    first=$(cat "/proc/$parent/task/$parent/children")
    [ "$(awk '/^NSpid/ { print $3 }' "/proc/${first// /}/status")" = 1 ]
    if [ "$from" = outside ]; then
      run launcher attach "${first// /}"
      [ "$status $output" = "0 ${first// /}: active: $shim" ]
    else
      run timeout $((20 * SLOW)) nsenter -t "${first// /}" -p -m "$launcher" attach 1
      [ "$status $output" = "0 1: active: $shim" ]
      run timeout $((20 * SLOW)) nsenter -t "${first// /}" -p -m "$launcher" ps
      grep -E '^ *1  .* active ' <<<"$output"
    fi
    fib_is_counted program.py
    program_ends
  done
}

@test "a zipapp is found by its name, and its functions have the archive in their files' names" {
  need_remote_calls
  local python
  for python in $(few_pythons | some 9); do
    echo "$python"
    cat >"$BATS_TEST_TMPDIR/zipped.sh" <<SH
#!/bin/sh
mkdir -p $BATS_TEST_TMPDIR/app
cp "\$1" $BATS_TEST_TMPDIR/app/__main__.py
$python -m zipapp -o $BATS_TEST_TMPDIR/shop.pyz $BATS_TEST_TMPDIR/app
exec $python $BATS_TEST_TMPDIR/shop.pyz "\$2"
SH
    start_program sh "$BATS_TEST_TMPDIR/zipped.sh"
    run launcher attach --name shop.pyz
    echo "$output"
    grep -qxE "$program: active: $shim" <<<"$output"
    fib_is_counted shop.pyz/__main__.py
    program_ends
  done
}

@test "a Python within gdb gets the shim, and its functions are seen" {
  need_remote_calls
  need gdb
  gdb -batch -ex 'python import sys' >/dev/null 2>&1 || skip "needs a gdb with Python"
  cat >"$BATS_TEST_TMPDIR/gdb.sh" <<'SH'
#!/bin/sh
exec gdb -nx -batch -ex "python import sys; sys.argv = ['$1', '$2']; exec(compile(open('$1').read(), '$1', 'exec'))"
SH
  start_program sh "$BATS_TEST_TMPDIR/gdb.sh"
  [[ $(readlink "/proc/$program/exe") == */gdb ]]
  run launcher attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  fib_is_counted program.py
  program_ends
}

# Starts a program that waits in vfork() until $BATS_TEST_TMPDIR/line gets a line, and then computes.  Its PID is $program,
# its child's $child.  With the word "threads" two other threads compute meanwhile.
start_vfork() {
  gcc -shared -fPIC -O1 -o "$BATS_TEST_TMPDIR/vfork.so" -x c - <<'C'
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>
int in_vfork(int fd)
{
    char byte;
    int status = -1;
    pid_t child = vfork();
    if (child == 0)
        _exit(read(fd, &byte, 1) == 1 ? 7 : 8);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
C
  cat >"$BATS_TEST_TMPDIR/vforks.py" <<'PY'
import ctypes, os, sys, threading, time

folder = sys.argv[1]
end = folder + "/end"


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute():
    while not os.path.exists(end):
        fib(12)


if sys.argv[2:]:
    for _ in range(2):
        threading.Thread(target=compute).start()
line = os.open(folder + "/line", os.O_RDWR)
print("started", flush=True)
print("child:", ctypes.CDLL(folder + "/vfork.so").in_vfork(line), flush=True)
compute()
print("forked:", os.waitpid(os.fork() or os._exit(3), 0)[1] >> 8)
PY
  rm -f "$BATS_TEST_TMPDIR"/{line,end}
  mkfifo "$BATS_TEST_TMPDIR/line"
  /usr/bin/python3 "$BATS_TEST_TMPDIR/vforks.py" "$BATS_TEST_TMPDIR" "$@" >"$BATS_TEST_TMPDIR/output" 2>&1 &
  program=$!
  programs+=("$program")
  wait_for grep -q '[0-9]' "/proc/$program/task/$program/children"
  child=$(tr -d ' ' <"/proc/$program/task/$program/children")
  wait_for grep -q '^0 ' "/proc/$child/syscall"
}

# Checks that the program leaves vfork(), computes, forks and ends as without the shim.
vfork_ends() {
  local status=0
  : >"$BATS_TEST_TMPDIR/end"
  wait "$program" || status=$?
  cat "$BATS_TEST_TMPDIR/output"
  [ "$status" = 0 ]
  [ "$(cat "$BATS_TEST_TMPDIR/output")" = $'started\nchild: 7\nforked: 3' ]
}

@test "a program in vfork(): attach to its child is refused, to itself waits for another thread or says to try again" {
  need_remote_calls
  need gcc
  start_vfork
  refuses 1 "attach: $child: it is in vfork\(\), in the memory of its parent: attach to $program\$" attach "$child"
  refute grep -q libpython-stap "/proc/$program/maps"
  refuses 1 "attach: $program: no thread reached a safe point within 5 s: try again\$" attach "$program"
  echo >"$BATS_TEST_TMPDIR/line"
  wait_for grep -q child: "$BATS_TEST_TMPDIR/output"
  run launcher attach "$program"
  [ "$status $output" = "0 $program: active: $shim" ]
  fib_is_counted vforks.py
  vfork_ends
  start_vfork threads
  run launcher attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  fib_is_counted vforks.py
  echo >"$BATS_TEST_TMPDIR/line"
  wait_for grep -q child: "$BATS_TEST_TMPDIR/output"
  vfork_ends
}

@test "-X perf beside the shim: forks, collections and all functions, with the map for perf that they have without it" {
  can_bpftrace
  local python how some=
  cat >"$BATS_TEST_TMPDIR/perf.py" <<'PY'
import gc
import os


def first():
    return second()


def second():
    gc.collect()
    return 1


def in_child(turn):
    return first() + turn


for turn in range(20):
    first()
    child = os.fork()
    if not child:
        os._exit(in_child(turn))
    print(child, os.waitpid(child, 0)[1] >> 8)
print(os.getpid(), first())
PY
  for python in $(pythons_by_hook); do
    "$python" -X perf -c '' 2>/dev/null && "$python" -c 'import sys; sys.exit(not hasattr(sys, "activate_stack_trampoline"))' || continue
    some=1
    for how in plain loaded traced; do
      case $how in
        plain) "$python" -X perf "$BATS_TEST_TMPDIR/perf.py" ;;
        loaded) LD_PRELOAD=$shim "$python" -X perf "$BATS_TEST_TMPDIR/perf.py" ;;
        traced) bpftrace_while "
          usdt:$shim:python:function__entry /str(arg0) == \"$BATS_TEST_TMPDIR/perf.py\"/ { @entries[str(arg1)] = count(); }
          usdt:$shim:python:function__return /str(arg0) == \"$BATS_TEST_TMPDIR/perf.py\"/ { @returns[str(arg1)] = count(); }
          usdt:$shim:python:gc__start /arg0 == 2/ { @collections = count(); }" \
          env LD_PRELOAD="$shim" "$python" -X perf "$BATS_TEST_TMPDIR/perf.py" ;;
      esac >"$BATS_TEST_TMPDIR/$how"
      # perf's names for each process, in the order of the processes, without addresses
      while read -r pid _; do
        [ ! -e "/tmp/perf-$pid.map" ] || sed -n "s,.* py::\(.*\):$BATS_TEST_TMPDIR/perf.py,\1,p" "/tmp/perf-$pid.map" | sort | tr '\n' ' '
        rm -f "/tmp/perf-$pid.map"
        echo
      done <"$BATS_TEST_TMPDIR/$how" >"$BATS_TEST_TMPDIR/$how.maps"
      cut -d' ' -f2 "$BATS_TEST_TMPDIR/$how" >"$BATS_TEST_TMPDIR/$how.results"
    done
    echo "$python"
    tail -n 2 "$BATS_TEST_TMPDIR/plain.maps"
    grep -q 'first.*second' "$BATS_TEST_TMPDIR/plain.maps"
    for how in loaded traced; do
      diff "$BATS_TEST_TMPDIR"/{plain,$how}.maps
      diff "$BATS_TEST_TMPDIR"/{plain,$how}.results
    done
    grep '^@' "$trace"
    [ "$(sed -n 's/^@entries\[first\]: //p' "$trace")" = 41 ]
    [ "$(sed -n 's/^@returns\[second\]: //p' "$trace")" = 41 ]
    [ "$(sed -n 's/^@entries\[in_child\]: //p' "$trace")" = 20 ]
    [ "$(sed -n 's/^@collections: //p' "$trace")" -ge 41 ]
  done
  [ "$some" ] || skip "needs a CPython with -X perf: 3.12 or later"
}
