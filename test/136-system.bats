# The scripts that look at Python and the system together: system calls, memory, metrics.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  scripts_setup
}

# The first four columns of pysyscalls' row for the system call $1 in the function $2 of the file $3.
row() {
  awk -v call="$1" -v function_="$2" -v file="$3" \
    '$5 == call && $6 == function_ && $7 == file { print $1, $2, $3, $4 }' "$printed"
}

calls() {
  row "$@" | cut -d' ' -f1
}

# One row has $1 calls, of $2 us at least each.
took() {
  row "${@:3}" | awk -v n="$1" -v least="$2" '
    { exit !($1 == n && $2 >= n * least && $2 < 20000000 && $3 == int($2 / n) && $4 >= $3 && $4 <= $2) }
    END { if (NR != 1) exit 1 }'
}

@test "pysyscalls counts the system calls of each function, and the time in them" {
  cat >"$BATS_TEST_TMPDIR/calls.py" <<'PY'
import os
import threading


def fails_7():
    for _ in range(7):
        try:
            os.rmdir("/nonexistent")
        except OSError:
            pass


def in_thread_13():
    for _ in range(13):
        os.getppid()


def in_child_3():
    for _ in range(3):
        os.getppid()


def forks_5():
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os.getppid()
            in_child_3()
            os.getppid()
            os._exit(0)
        os.waitpid(child, 0)


fails_7()
thread = threading.Thread(target=in_thread_13)
thread.start()
thread.join()
forks_5()
PY
  script pysyscalls -G top=1000 -c "env LD_PRELOAD=$shim sh -c '$system $counted; $system $timed; $system $BATS_TEST_TMPDIR/calls.py'"
  [ "$(head -n 1 "$printed")" = "   CALLS    TOTAL us    AVG us    MAX us  SYSCALL          FUNCTION                 FILE" ]
  [ "$(calls getppid main "$counted")" = 19 ]
  [ "$(calls openat main "$counted")" = 3 ]
  [ "$(calls rmdir fails_7 "$BATS_TEST_TMPDIR/calls.py")" = 7 ]
  [ "$(calls getppid in_thread_13 "$BATS_TEST_TMPDIR/calls.py")" = 13 ]
  # the children are in the functions of their parent
  [ "$(calls getppid in_child_3 "$BATS_TEST_TMPDIR/calls.py")" = 15 ]
  [ "$(calls getppid forks_5 "$BATS_TEST_TMPDIR/calls.py")" = 10 ]
  [ "$(calls exit_group forks_5 "$BATS_TEST_TMPDIR/calls.py")" = 5 ]
  # four sleeps of 200 ms, one of 500 ms
  took 4 200000 clock_nanosleep sleeps_200_ms "$timed"
  took 1 500000 clock_nanosleep holder "$timed"
  # nothing else: rows in full, largest first
  refute grep -vE '^ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+  [a-z0-9_]+ +[^ ]+ +[^ ].*$' <(tail -n +2 "$printed")
  tail -n +2 "$printed" | sort -s -c -k2,2nr
}

@test "pysyscalls with trace=1 shows calls and system calls, indented, in colour on demand" {
  local escape=$'\033'
  cat >"$BATS_TEST_TMPDIR/calls.py" <<'PY'
import os


def outer():
    os.getppid()
    inner()
    os.getppid()


def inner():
    try:
        os.rmdir("/nonexistent")
    except OSError:
        pass


outer()
PY
  script pysyscalls -G trace=1 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/calls.py"
  sed -nE '/=> <module> in .*calls.py:/,/<= <module> in .*calls.py:/p' "$printed" |
    sed -E "s,^ *[0-9]+ [^ (]+\([0-9]+\):,,; s, in $BATS_TEST_TMPDIR/, ,; s, = [0-9]+ \([0-9]+ us\)$, = N,; s,\([0-9]+ us\),(T us)," |
    grep -E '=|rmdir' >"$printed.text"
  cat "$printed.text"
  diff "$printed.text" - <<'EXPECTED'
 => <module> calls.py:1
  => outer calls.py:4
   getppid = N
   => inner calls.py:10
    rmdir = -2 (ENOENT) (T us)
   <= inner calls.py:14
   getppid = N
  <= outer calls.py:7
 <= <module> calls.py:17
EXPECTED
  refute grep "$escape\|CALLS" "$printed"
  script pysyscalls -G trace=1 -G color=1 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/calls.py"
  grep -qF " ${escape}[32m=> outer in $BATS_TEST_TMPDIR/calls.py:4${escape}[0m" "$printed"
  [ "$(grep -cE " ${escape}\[33mgetppid = [0-9]+ \([0-9]+ us\)${escape}\[0m" "$printed")" = 2 ]
  grep -qE " ${escape}\[31mrmdir = -2 \(ENOENT\) \([0-9]+ us\)${escape}\[0m" "$printed"
}
