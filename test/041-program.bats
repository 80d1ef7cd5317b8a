# The shim runs none of the program's code on a thread of its own, and walks no list that CPython may
# be changing: programs with threads of C, with locks that their audit hooks and finalizers take, and
# those that load CPython later, while tracers come and go.
#
# SPDX-License-Identifier: MIT

load helper

# callers.so in $callers; the semaphores before the shim, raised and taken down every $1 ms.
toggled() {
  need gcc
  raise_semaphores "$BATS_TEST_TMPDIR"
  export SEMAPHORES_TOGGLE=$1
}

@test "threads of C that enter and leave CPython go on while tracers come and go" {
  toggled 7
  local python callers=$BATS_TEST_TMPDIR/callers.so
  gcc -O2 -shared -fPIC -o "$callers" "$top/test/workloads/callers.c"
  cat >"$BATS_TEST_TMPDIR/callers.py" <<'PY'
import ctypes
import sys
import time

callers = ctypes.CDLL(sys.argv[1])
pythonapi = ctypes.pythonapi
calls = 0


def called():
    global calls
    calls += 1


callers.begin.argtypes = [ctypes.py_object if sys.argv[2] == "called" else ctypes.c_void_p]
callers.begin(called if sys.argv[2] == "called" else None)
end = time.monotonic() + 2
while time.monotonic() < end:
    time.sleep(0.0005)
callers.end()
print("ended", calls > 0)
PY
  for python in $(pythons); do
    for what in called nothing; do
      echo "$python $what"
      [ "$(LD_PRELOAD=$shim timeout -k 1 60 "$python" "$BATS_TEST_TMPDIR/callers.py" "$callers" "$what")" = \
        "ended $([ "$what" = called ] && echo True || echo False)" ]
    done
  done
}

@test "a program whose audit hook takes a lock, and holds it while it forks, goes on while tracers come and go" {
  toggled 61
  local python
  # as logging does, in a hook that logs
  cat >"$BATS_TEST_TMPDIR/locks.py" <<'PY'
import os
import sys
import threading
import time

lock = threading.RLock()
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def audit(event, arguments):
    if event.startswith(("sys.set", "sys.add", "sys.monitoring")):  # as an armed tracer's may
        time.sleep(0.002)
        with lock:
            pass


sys.addaudithook(audit)
forks = 0
end = time.monotonic() + 3
while time.monotonic() < end:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    forks += 1
    time.sleep(0.03)
print("ended", forks > 5)
PY
  for python in $(pythons); do
    [[ $(version_of "$python") != 3.[67] ]] || continue # they have no audit events
    echo "$python"
    [ "$(LD_PRELOAD=$shim timeout -k 1 30 "$python" -W ignore "$BATS_TEST_TMPDIR/locks.py")" = "ended True" ]
  done
}

@test "audit hooks and finalizers run on the program's threads alone" {
  toggled 31
  local python how
  cat >"$BATS_TEST_TMPDIR/where.py" <<'PY'
import ctypes
import gc
import sys
import threading
import time

foreign = set()
finalized = 0


def look():
    thread = threading.current_thread()
    if thread is not threading.main_thread():
        foreign.add(thread.name)


class Finalized:
    def __init__(self):
        self.itself = self

    def __del__(self):
        global finalized
        finalized += 1
        look()


if hasattr(sys, "addaudithook"):
    sys.addaudithook(lambda event, arguments: look())
gc.set_threshold(1)
if len(sys.argv) > 1:
    ctypes.CDLL(sys.argv[1])
end = time.monotonic() + 2
while time.monotonic() < end:
    for _ in range(100):
        Finalized()
    time.sleep(0.001)
print(sorted(foreign), threading.active_count(), finalized > 1000)
PY
  for python in $(pythons); do
    for how in preloaded attached; do
      echo "$python $how"
      if [ "$how" = preloaded ]; then
        LD_PRELOAD=$shim timeout -k 1 30 "$python" "$BATS_TEST_TMPDIR/where.py" >"$BATS_TEST_TMPDIR/output"
      else
        LD_PRELOAD=${shim% *} timeout -k 1 30 "$python" "$BATS_TEST_TMPDIR/where.py" "${shim#* }" >"$BATS_TEST_TMPDIR/output"
      fi
      cat "$BATS_TEST_TMPDIR/output"
      [ "$(cat "$BATS_TEST_TMPDIR/output")" = "[] 1 True" ]
    done
  done
}

@test "a tool id that the program has taken from us is its own from then on" {
  toggled 400
  local python tried=0
  cat >"$BATS_TEST_TMPDIR/takes.py" <<'PY'
import sys
import time

monitoring = sys.monitoring
TOOL = 4
end = time.monotonic() + 5
while monitoring.get_tool(TOOL) != "systemtap" and time.monotonic() < end:
    time.sleep(0.01)
taken = monitoring.get_tool(TOOL)
monitoring.free_tool_id(TOOL)
monitoring.use_tool_id(TOOL, "mine")
calls = 0


def on_call(*arguments):
    global calls
    calls += 1


monitoring.register_callback(TOOL, monitoring.events.PY_START, on_call)
monitoring.set_events(TOOL, monitoring.events.PY_START)


def called():
    pass


kept = True
end = time.monotonic() + 1.5
while time.monotonic() < end:
    before = calls
    called()
    kept = kept and calls == before + 1
    time.sleep(0.01)
print(taken, monitoring.get_tool(TOOL), kept)
PY
  for python in $(pythons); do
    [[ $(version_of "$python") != 3.[6-9] && $(version_of "$python") != 3.1[01] ]] || continue
    echo "$python"
    tried=$((tried + 1))
    LD_PRELOAD=$shim timeout -k 1 30 "$python" "$BATS_TEST_TMPDIR/takes.py" >"$BATS_TEST_TMPDIR/output"
    cat "$BATS_TEST_TMPDIR/output"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = "systemtap mine True" ]
  done
  [ "$tried" -gt 0 ] || skip "needs a CPython 3.12 or later"
}

@test "a libpython that a program loads later is seen, and an idle one that the shim is loaded into" {
  can_bpftrace
  need gcc
  local library scope
  gcc -O2 -o "$BATS_TEST_TMPDIR/host" "$top/test/workloads/host.c" -ldl
  for library in $(libpythons); do
    export PYTHONHOME=${library%/lib/*}
    for scope in local global; do
      echo "$library $scope, preloaded"
      bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$BATS_TEST_TMPDIR/host" "$library" "$scope" 20 >"$BATS_TEST_TMPDIR/output"
      [ "$(cat "$BATS_TEST_TMPDIR/output")" = 20 ]
      [ "$(grep -c '^> <string> serve ' "$trace")" = 20 ]
      [ "$(grep -c '^< <string> serve ' "$trace")" = 20 ]
      echo "$library $scope, loaded while it is idle"
      bpftrace_while "$(function_markers)" "$BATS_TEST_TMPDIR/host" "$library" "$scope" 60 "$shim" >"$BATS_TEST_TMPDIR/output"
      [ "$(cat "$BATS_TEST_TMPDIR/output")" = 60 ]
      [ "$(grep -c '^> <string> serve ' "$trace")" -ge 40 ]
      [ "$(grep -c '^> <string> serve ' "$trace")" = "$(grep -c '^< <string> serve ' "$trace")" ]
    done
    unset PYTHONHOME
  done
}
