# The tool ids of sys.monitoring, 3.12 and later: the shim uses a free id, releases it if the program requests it, and
# reports if no id is free.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
}

# The interpreters that have sys.monitoring.
monitored_pythons() {
  local python
  for python in $(pythons); do
    [[ $(version_of "$python") == 3.[6-9] || $(version_of "$python") == 3.1[01] ]] || echo "$python"
  done
}

# Runs a case of test/workloads/ids.py while a tracer counts calls.  Checks that the case prints the text on stdin, and
# that the tracer gets SEEN calls and returns of seen(), and none of unseen().  With SHIM the case loads the shim itself,
# as attach does.
# usage: prints CASE SEEN [SHIM]
prints() {
  local python text tried=0 preload=$shim
  [ $# -lt 3 ] || preload=''
  text=$(cat)
  for python in $(monitored_pythons); do
    tried=1
    bpftrace_while "
      usdt:$shim:python:function__entry /str(arg1) == \"seen\" || str(arg1) == \"unseen\"/ { @[str(arg1), \"entry\"] = count(); }
      usdt:$shim:python:function__return /str(arg1) == \"seen\" || str(arg1) == \"unseen\"/ { @[str(arg1), \"return\"] = count(); }
      usdt:$shim:python:function__entry { @entries[arg3] = count(); }
      usdt:$shim:python:function__return { @returns[arg3] = count(); }
      usdt:$shim:python:gc__done { @collections = count(); }" \
      env LD_PRELOAD="$preload" "$python" "$top/test/workloads/ids.py" "$1" "${@:3}" >"$BATS_TEST_TMPDIR/printed" || true
    echo "$python: $1"
    diff - "$BATS_TEST_TMPDIR/printed" <<<"$text"
    grep '^@\[' "$trace" | sort | diff - <(printf '@[seen, %s]: %d\n' entry "$2" return "$2")
    # of no frame more returns than entries
    awk -F'[][]' '/^@entries/ { entries[$2] = $3 } /^@returns/ && substr($3, 3) > substr(entries[$2], 3) + 0 { print; wrong = 1 }
      END { exit wrong }' "$trace"
  done
  [ "$tried" = 1 ] || skip "needs CPython 3.12 or later"
}

@test "any id that is free is taken, those with names last, and without one the watcher's name says so" {
  prints any_of_them 7 <<'EOF'
4 True
3 True
5 True
2 True
1 True
0 True
none [] True
again True
EOF
}

@test "a program whose tools have all ids is seen when one is free" {
  prints loads_it_later 1 "$shim" <<'EOF'
True True []
again True
EOF
}

@test "a program that asks for the id that the shim has gets it, and finds all as without the shim" {
  prints asks_for_ours 1 <<'EOF'
True
['seen'] mine True
ValueError tool 5 is already in use
ValueError tool name must be a str
ValueError invalid tool 7 (must be between 0 and 5)
TypeError use_tool_id expected 2 arguments, got 1
TypeError 'str' object cannot be interpreted as an integer
True [2]
EOF
}

@test "a profiler gets the id of profilers" {
  prints profiles 1 <<'EOF'
True
[1] [1]
EOF
}

@test "a call that begins before the shim goes to another id, and ends after, has its return" {
  prints moves_within_a_call 1 <<'EOF'
True
[3]
EOF
}

@test "loaded into a program whose tools have all ids, the watcher's name says so before a tracer comes" {
  local python tried=0
  for python in $(monitored_pythons); do
    tried=1
    cat >"$BATS_TEST_TMPDIR/loads.py" <<'PY'
import ctypes, glob, sys, time

for tool in range(int(sys.argv[2])):
    sys.monitoring.use_tool_id(tool, "other")
ctypes.CDLL(sys.argv[1])
end = time.monotonic() + 20
while time.monotonic() < end:
    names = {open(path).read().strip() for path in glob.glob("/proc/self/task/*/comm")}
    if sys.argv[3] in names:
        print("named")
        break
    time.sleep(0.01)
else:
    print(names)
PY
    [ "$("$python" "$BATS_TEST_TMPDIR/loads.py" "$shim" 6 python-stap-ids)" = named ]
    [ "$("$python" "$BATS_TEST_TMPDIR/loads.py" "$shim" 5 python-stap)" = named ]
  done
  [ "$tried" = 1 ] || skip "needs CPython 3.12 or later"
}
