# The shim runs none of the program's code on its own thread, and walks no list that CPython may be changing.  Programs
# with threads of C, and with locks that their audit hooks and finalizers take, run while tracers attach and detach.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

# Has the shim preloaded with a library that raises and lowers all semaphores, or that of the marker $2, every $1 ms.
toggled() {
  need gcc
  raise_semaphores "$BATS_TEST_TMPDIR" "${2:-}"
  export SEMAPHORES_TOGGLE=$1
}

# Checks that a case of programs.py prints TEXT in each interpreter.
# usage: prints CASE TEXT
prints() {
  local python
  for python in $(few_pythons); do
    echo "$python $1"
    LD_PRELOAD=$shim timeout -k 1 $((60 * SLOW)) "$python" "$top/test/long/stress/programs.py" "$1" 20 >"$BATS_TEST_TMPDIR/output"
    cat "$BATS_TEST_TMPDIR/output"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = "$2" ]
  done
}

# bats test_tags=slow
@test "threads of C that enter and leave CPython go on while tracers come and go" {
  toggled 7
  export CALLERS=$BATS_TEST_TMPDIR/callers.so
  gcc -O2 -shared -fPIC -pthread -o "$CALLERS" "$top/test/workloads/callers.c"
  prints callers 'called: True False'
}

# bats test_tags=slow
@test "a program whose audit hook takes a lock, and holds it while it forks, goes on while tracers come and go" {
  toggled 61
  prints locks forked
}

# bats test_tags=slow
@test "audit hooks and finalizers run on the program's threads alone" {
  toggled 31
  prints looks "['MainThread'] 1 True"
  # and if the shim is loaded into the running program
  export LATER=${shim#* }
  shim=${shim% *} prints looks "['MainThread'] 1 True"
}

# bats test_tags=slow
@test "what a signal handler raises within an audit hook that is told of our arming is raised" {
  toggled 61
  prints interrupts 'True 0'
}

# bats test_tags=slow
@test "an exception that one thread sets for another is raised there, also within an audit hook that is told of our arming" {
  toggled 31
  prints exceptions_set 'ended: True'
}

# bats test_tags=slow
@test "a profile function that the program sets and removes while tracers come and go" {
  toggled 70 function__return
  prints profiles 'profiled None'
}

@test "the child of a fork by C, without the GIL, goes on" {
  prints forks_in_c '{0}'
  toggled 31
  prints forks_in_c '{0}'
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
  for python in $(few_pythons); do
    [[ $(version_of "$python") != 3.[6-9] && $(version_of "$python") != 3.1[01] ]] || continue
    echo "$python"
    tried=$((tried + 1))
    LD_PRELOAD=$shim timeout -k 1 $((30 * SLOW)) "$python" "$BATS_TEST_TMPDIR/takes.py" >"$BATS_TEST_TMPDIR/output"
    cat "$BATS_TEST_TMPDIR/output"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = "systemtap mine True" ]
  done
  [ "$tried" -gt 0 ] || skip "needs a CPython 3.12 or later"
}
