# CPython's JIT (3.15, --enable-experimental-jit): its code has all events, and goes on running where nothing is traced.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
  pythons=$(which_pythons 'sys.version_info >= (3, 15) and sys._jit.is_enabled()')
  [ "$pythons" ] || skip "needs a CPython 3.15 with the JIT (make check-jit)"
}

teardown() {
  kill_jobs
}

# Runs the workload, and the bpftrace program $2 from the moment when a loop runs in the JIT's code.  $3...: the events
# of sys.monitoring that the program's markers need.
traced_in_jit() {
  local folder=$BATS_TEST_TMPDIR target
  rm -f "$folder/compiled" "$folder/traced"
  LD_PRELOAD=$shim "$1" "$top/test/workloads/jit.py" "$folder" "${@:3}" >"$folder/output" 3>&- &
  target=$!
  wait_for test -e "$folder/compiled"
  # shellcheck disable=SC2016 # sh expands it
  bpftrace_while "$2" sh -c 'until [ -e "$1" ]; do sleep 0.05; done' - "$folder/traced"
  wait "$target"
  read -r some every before chosen other chosen_after other_after <"$folder/output"
  echo "$1: $every calls, $some; in the JIT's code $before, $chosen, $other, $chosen_after and $other_after%"
  [ "$before" -gt 50 ] && [ "$chosen_after" -gt 50 ] && [ "$other_after" -gt 50 ]
}

count_of() {
  sed -n "s/^@$1\[.*, $2\]: //p" "$trace"
}

# Checks the count of the trace's map $1 for the function $2, which is called $3 times in each iteration: the tracer
# comes in the middle of one.
has_all() {
  echo "$1 of $2: $(count_of "$1" "$2")"
  [ "$(count_of "$1" "$2")" -ge $(((every - 1) * $3)) ] && [ "$(count_of "$1" "$2")" -le $((some * $3)) ]
}

# Checks the entries, the returns and, with $1, the lines of the functions that are traced in a loop.
has_all_of_the_loop() {
  local map
  for map in entries returns ${1:-}; do
    has_all "$map" outer 1
    has_all "$map" inner 8
  done
  # unless the tracer of returns came later
  [ "$some" != "$every" ] || [ "$(count_of entries inner)" = "$(count_of returns inner)" ]
}

@test "each call, return and line is seen once of a loop that runs in the JIT's code when the tracer comes" {
  local python
  for python in $pythons $pythons $pythons; do
    traced_in_jit "$python" "
usdt:$shim:python:function__entry { @entries[str(arg0), str(arg1)] = count(); }
usdt:$shim:python:function__return { @returns[str(arg0), str(arg1)] = count(); }
usdt:$shim:python:line { @lines[str(arg0), str(arg1)] = count(); }" PY_START PY_RETURN LINE
    has_all_of_the_loop lines
  done
}

@test "so it is of the sums" {
  local python
  for python in $pythons; do
    traced_in_jit "$python" "
usdt:$shim:python:function__count { @entries[str(arg0), str(arg1)] = sum(arg4); }
usdt:$shim:python:function__summary { @returns[str(arg0), str(arg1)] = sum(arg4); }" PY_START PY_RETURN
    has_all_of_the_loop
  done
}

@test "functions that no pattern names go on in the JIT's code, and those that one names have all events" {
  local python map
  export PYTHON_STAP_FILTER='*/jit.py:outer */jit.py:inner'
  for python in $pythons; do
    traced_in_jit "$python" "
usdt:$shim:python:filtered__function__entry { @entries[str(arg0), str(arg1)] = count(); }
usdt:$shim:python:filtered__function__return { @returns[str(arg0), str(arg1)] = count(); }
usdt:$shim:python:filtered__line { @lines[str(arg0), str(arg1)] = count(); }" PY_START PY_RETURN LINE
    has_all_of_the_loop lines
    refute grep -F ', other]' "$trace"
    [ "$other" -gt 50 ]
  done
}

@test "a tracer of exceptions leaves functions that raise none in the JIT's code" {
  local python
  for python in $pythons; do
    traced_in_jit "$python" "usdt:$shim:python:exception__raise { @raises = count(); }" RAISE
    [ "$chosen" -gt 50 ] && [ "$other" -gt 50 ]
  done
}

@test "the functions of a stack are right at each machine instruction, and its line but where [jit] is said" {
  [ "$(uname -m)" = x86_64 ] || skip "needs x86-64, for the thread pointer"
  local python target folder=$BATS_TEST_TMPDIR looked compiled functions lines elsewhere
  for python in $pythons; do
    LD_PRELOAD=$shim "$python" "$top/test/workloads/jit_stacks.py" >"$folder/list" 3>&- &
    target=$!
    wait_for test -s "$folder/list"
    read -r looked compiled functions lines elsewhere < <(/usr/bin/python3 "$top/test/workloads/jit_walk.py" "$target" "$(cat "$folder/list")")
    kill "$target"
    echo "$python: $compiled of $looked in the JIT's code; other functions $functions, lines $lines, lines elsewhere $elsewhere"
    [ "$looked" = 5000 ] && [ "$compiled" -gt 500 ] && [ "$functions" = 0 ]
    # between the instructions that set a variable, and the next one
    [ "$elsewhere" -lt 100 ]
  done
}
