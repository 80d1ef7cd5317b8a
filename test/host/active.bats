# list, attach, ps and a script's -x report a shim as active only if its events reach a tracer that attaches now.
# Otherwise they print a line with the reason and the remedy.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Makes a tree whose shim the test can replace; $launcher and $shim are this tree's.
own_tree() {
  make_tree
  cp "$shim" "$BATS_TEST_TMPDIR/tree/build"
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python shim=$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0
  mkdir "$BATS_TEST_TMPDIR/tree/build/bpftrace"
  sed "s|@SHIM@|$shim|" "$top/scripts/bpftrace/pyflow.bt" >"$BATS_TEST_TMPDIR/tree/build/bpftrace/pyflow.bt"
  mkdir "$BATS_TEST_TMPDIR/tree/scripts"
  cp "$top/scripts/pyflow.stp" "$BATS_TEST_TMPDIR/tree/scripts"
}

# Starts a program that runs BEFORE, a line of Python, and then calls tick() fifty times a second for two minutes.  Each
# call adds a byte to the file $ticks.  The PID is $program.
# usage: ticking BEFORE [VARIABLE=VALUE...] PYTHON [ARGUMENTS...]
ticking() {
  local before=$1
  shift
  ticks=$BATS_TEST_TMPDIR/ticks.$BATS_TEST_NUMBER.$((++number))
  cat >"$BATS_TEST_TMPDIR/ticking.py" <<'PY'
import os, sys, time


def tick():
    os.write(ticks, b".")


def title(text):
    """Writes it over argv[] and the environment, as modules do that set titles."""
    import ctypes

    fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    first, last = int(fields[45]), int(fields[48])
    ctypes.memmove(first, text.ljust(last - first, b"\0")[: last - first], last - first)
    ctypes.CDLL(None).prctl(15, text, 0, 0, 0)


def seccomp():
    """A thread sets a filter that allows all."""
    import ctypes, threading

    def in_thread():
        libc = ctypes.CDLL(None, use_errno=True)
        code = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\xff\x7f", 8)

        class Program(ctypes.Structure):
            _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

        program = Program(1, ctypes.addressof(code))
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()
        ready.set()
        time.sleep(120)

    ready = threading.Event()
    threading.Thread(target=in_thread, daemon=True).start()
    ready.wait()


ticks = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
exec(sys.argv[2])
end = time.time() + 120
while time.time() < end:
    tick()
    time.sleep(0.02)
PY
  env "$@" "$BATS_TEST_TMPDIR/ticking.py" "$ticks" "$before" 3>&- &
  program=$!
  programs+=("$program")
  wait_for test -s "$ticks"
}

# Whether tick() has been called $1 times.
has_ticked() {
  [ "$(stat -c %s "$ticks")" -ge "$1" ]
}

# Whether calls of tick() reach a tracer that attaches now to the shim's file, at the path at which tracers expect it.
reaches() {
  local tracer from
  bpftrace -q -e "usdt:$shim:python:function__entry /pid == $program && str(arg1) == \"tick\"/ { printf(\"tick\\n\"); }" \
    >"$BATS_TEST_TMPDIR/trace" 2>&1 3>&- &
  tracer=$!
  until is_attached "$tracer" 1 "$(sites_of_each)"; do
    kill -0 "$tracer" || { cat "$BATS_TEST_TMPDIR/trace" && return 1; }
    sleep 0.05
  done
  from=$(stat -c %s "$ticks")
  until grep -qx tick "$BATS_TEST_TMPDIR/trace" || has_ticked $((from + 100)); do
    sleep 0.05
  done
  end_bpftrace "$tracer"
  wait "$tracer" || true
  cat "$BATS_TEST_TMPDIR/trace"
  grep -qx tick "$BATS_TEST_TMPDIR/trace"
}

# Checks that list reports this state of the program's shim, with this exit status, and that events reach a tracer if,
# and only if, the state is active.
# usage: is_said STATUS PATTERN
is_said() {
  run launcher list "$program"
  echo "$output"
  [ "$status" = "$1" ]
  grep -qE "^  the shim: $2" <<<"$output"
  if [[ $2 == active* ]]; then reaches; else refute reaches; fi
}

@test "a shim is active where its events reach a tracer, and nowhere else" {
  can_bpftrace
  own_tree
  local number=0
  ticking '' LD_PRELOAD="$shim" /usr/bin/python3
  is_said 0 'active, '
  ticking '' PYTHON_STAP=off LD_PRELOAD="$shim" /usr/bin/python3
  is_said 1 'silent, '
  grep -qx '    it was started with PYTHON_STAP=off: restart it without' <<<"$output"
  ticking '' PYTHON_STAP=On LD_PRELOAD="$shim" /usr/bin/python3
  is_said 1 'silent, '
  grep -qx '    it was started with PYTHON_STAP=On, which is off, as it is neither auto nor all: restart it without' <<<"$output"
  ticking '' /usr/bin/python3
  is_said 0 "not loaded; load it with stap-python attach $program"
  if has_remote_calls; then
    launcher attach "$program"
    is_said 0 'active, '
  fi
  # without its hooks, and with them again
  if has_remote_calls; then
    launcher detach "$program"
    is_said 0 'detached, '
    launcher attach "$program"
    is_said 0 'active, '
  fi
  # another file of the shim
  cp "$shim" "$BATS_TEST_TMPDIR/libpython-stap.so.0"
  ticking '' LD_PRELOAD="$BATS_TEST_TMPDIR/libpython-stap.so.0" /usr/bin/python3
  is_said 1 'silent, '
  grep -q "^    it is another file, $BATS_TEST_TMPDIR/libpython-stap.so.0, and tracers look in $shim: restart the program" <<<"$output"
  # a thread's filter
  ticking 'seccomp()' LD_PRELOAD="$shim" /usr/bin/python3
  is_said 1 'silent, '
  grep -q '^    a thread of it has set a seccomp filter, .*: restart it' <<<"$output"
  # a title over the environment
  ticking 'title(b"web: worker")' LD_PRELOAD="$shim" /usr/bin/python3
  is_said 0 'active, '
  ticking 'title(b"web: worker")' PYTHON_STAP=off LD_PRELOAD="$shim" /usr/bin/python3
  is_said 1 'silent, '
  grep -q "^    it is off, and why can't be told, as the program has overwritten its environment: restart it" <<<"$output"
}

@test "while others have all ids of sys.monitoring, attach, list, ps and -x say that there are no functions" {
  need_remote_calls
  can_bpftrace
  own_tree
  local number=0 python why='other tools hold all ids of sys.monitoring'
  python=$(which_pythons 'sys.version_info >= (3, 12)' | head -n 1)
  [ -n "$python" ] || skip "needs a CPython of 3.12 or later"
  ticking 'for i in range(6): sys.monitoring.use_tool_id(i, "another")' "$python"
  refuses 1 "attach: $program: the shim is loaded, but tracers don't see it: $why, .*: end one of them" attach "$program"
  is_said 1 'silent, '
  grep -q "^    $why, so that there are no markers of functions" <<<"$output"
  launcher ps 2>/dev/null | grep -E "^ *$program .* silent: $why  "
  STAP=true refuses 1 "$program: the shim is loaded, but tracers don't see it: $why" pyflow -x "$program"
  # a shim that was preloaded, and to which no tracer has attached
  ticking 'for i in range(6): sys.monitoring.use_tool_id(i, "another")' LD_PRELOAD="$shim" "$python"
  wait_for refute launcher list "$program" >/dev/null
  is_said 1 'silent, '
  grep -q "^    $why, so that there are no markers of functions" <<<"$output"
  ticking 'for i in range(6): sys.monitoring.use_tool_id(i, "another")
time.sleep(0.2)
sys.monitoring.free_tool_id(0)' LD_PRELOAD="$shim" "$python"
  wait_for launcher list "$program" >/dev/null
  is_said 0 'active, '
}

@test "a shim whose file was replaced or deleted under a running program is silent, and --backend bpftrace finds it" {
  can_bpftrace
  own_tree
  local number=0 gone
  for gone in replaced deleted moved; do
    ticking '' LD_PRELOAD="$shim" /usr/bin/python3
    wait_for launcher list "$program" >/dev/null
    cp "$shim" "$shim.new"
    case $gone in
      replaced) mv "$shim.new" "$shim" ;;
      deleted) rm "$shim" && mv "$shim.new" "$shim" ;;
      moved) mv "$shim" "$shim.old" && mv "$shim.new" "$shim" ;;
    esac
    is_said 1 'silent, '
    grep -qE "^    it(s file was replaced or deleted while the program runs| is another file, .*), and tracers look in $shim: restart the program, or trace it by --backend bpftrace -x $program as root$" <<<"$output"
    refuses 1 "attach: $program: the shim is loaded, but tracers don't see it: it.*: restart the program" attach "$program"
    launcher ps --json 2>/dev/null | grep -q "\"pid\": $program,.* \"shim\": \"silent\", \"reason\": \"it.*restart"
    launcher ps 2>/dev/null | grep -E "^ *$program .* silent: (its file was replaced or deleted while the program runs|another file)  "
    STAP=true refuses 1 "$program: the shim is loaded, but tracers don't see it: it.*restart" pyflow -x "$program"
    "$launcher" pyflow --backend bpftrace -x "$program" >"$BATS_TEST_TMPDIR/flow" 2>&1 3>&- &
    programs+=($!)
    wait_for grep -q '=> tick\b' "$BATS_TEST_TMPDIR/flow"
    kill -INT $!
  done
}

@test "a thread of the program's that has the name of the shim's is not taken for it" {
  can_bpftrace
  local number=0 name='import ctypes; ctypes.CDLL(None).prctl(15, b"python-stap", 0, 0, 0)'
  # where the shim has no thread, in a child that another thread than the main one has forked: the first, and another one
  ticking "import threading
def fork():
    global child
    child = os.fork()
    child or (exec('$name'), child_ticks())
def child_ticks():
    while True:
        tick()
        time.sleep(0.02)
thread = threading.Thread(target=fork)
thread.start()
time.sleep(0.2)
open(sys.argv[1] + '.child', 'w').write(str(child))" LD_PRELOAD="$shim" /usr/bin/python3
  wait_for test -s "$ticks.child"
  program=$(<"$ticks.child")
  programs+=("$program")
  wait_for grep -qx python-stap "/proc/$program/comm"
  is_said 1 'unknown, '
  ticking "import threading
threading.Thread(target=lambda: (exec('$name'), time.sleep(120)), daemon=True).start()" PYTHON_STAP=off LD_PRELOAD="$shim" /usr/bin/python3
  wait_for thread_has "$program" comm python-stap
  is_said 1 'silent, '
}

@test "a file of the shim's that a program has mapped as data is not taken for the shim" {
  can_bpftrace
  local number=0 data="import ctypes
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
# above all libraries
mmap(max(int(line.split('-')[0], 16) for line in open('/proc/self/maps') if line.index('-') == 12) + 0x10000000, 4096, 1, 2, os.open('$shim', 0), 0)"
  ticking "$data" /usr/bin/python3
  is_said 0 "not loaded; load it with stap-python attach $program"
  cp "$shim" "$BATS_TEST_TMPDIR/libpython-stap.so.0"
  ticking "$data" LD_PRELOAD="$BATS_TEST_TMPDIR/libpython-stap.so.0" /usr/bin/python3
  is_said 1 'silent, '
  grep -q "^    it is another file, $BATS_TEST_TMPDIR/libpython-stap.so.0, and tracers look in $shim: restart the program" <<<"$output"
}

@test "bpftrace, as root, reads no shim that another user can change" {
  [ "$(id -u)" = 0 ] || skip "needs root, to give a file to another user"
  can_bpftrace
  local number=0 copy=$BATS_TEST_TMPDIR/libpython-stap.so.0 change
  cp "$shim" "$copy"
  ticking '' LD_PRELOAD="$copy" /usr/bin/python3
  wait_for thread_has "$program" comm python-stap
  for change in 'chown 65534' 'chmod 775' 'chmod 757'; do
    chown 0 "$copy"
    chmod 755 "$copy"
    $change "$copy"
    refuses 1 "$program: its shim is $copy, a file that other users can change" pyflow --backend bpftrace -x "$program"
    run launcher list "$program"
    grep -qxF "    it is another file, $copy, and tracers look in $shim: restart the program" <<<"$output"
  done
}

@test "a copy of the shim in a mount namespace of its own is said to be one, and --backend bpftrace finds it" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need unshare
  can_bpftrace
  own_tree
  local number=0 place
  cp "$shim" "$BATS_TEST_TMPDIR/copy"
  ticking '' unshare -m bash -c 'mount --bind "$0" "$1" && LD_PRELOAD=$1 exec "${@:2}"' "$BATS_TEST_TMPDIR/copy" "$shim" /usr/bin/python3
  place="that is a copy in its root: bpftrace and perf find it as /proc/$program/root$shim, stap if it is of the same build and not on overlayfs"
  run launcher list "$program"
  [ "$status" = 0 ]
  grep -qx "  the shim: active, $shim" <<<"$output"
  grep -qxF "    $place" <<<"$output"
  refute reaches
  [ "$(launcher attach "$program")" = "$program: already active: $shim"$'\n'"$program: $place" ]
  "$launcher" pyflow --backend bpftrace -x "$program" >"$BATS_TEST_TMPDIR/flow" 2>&1 3>&- &
  programs+=("$!")
  wait_for grep -q '=> tick\b' "$BATS_TEST_TMPDIR/flow"
  kill -INT "$!"
}
