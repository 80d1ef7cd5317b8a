# Debuggers and notebooks: what they do is the same while tracers come and go, and the markers see what runs in them.
#
# SPDX-License-Identifier: MIT

load ../helper

setup() {
  can_bpftrace
}

@test "debugpy stops where it does without us, while tracers come and go, and the markers have every call" {
  /usr/bin/python3 -c 'import debugpy' 2>/dev/null || skip "needs python3-debugpy"
  cd "$BATS_TEST_TMPDIR"
  cp "$top/test/workloads/debugged.py" .
  /usr/bin/python3 "$PWD/debugged.py" >plain 2>plain.said
  cat plain
  # the stops of all kinds
  [ "$(cut -d' ' -f1 plain | sort | uniq -c | tr -s ' \n' ' ')" = ' 6 breakpoint 1 ended 4 exception 10 step ' ]
  LD_PRELOAD=$shim bpftrace_while "
    usdt:$shim:python:function__entry /str(arg0) == \"$PWD/debugged.py\"/ { @entries[str(arg1)] = count(); }
    usdt:$shim:python:function__return /str(arg0) == \"$PWD/debugged.py\"/ { @returns[str(arg1)] = count(); }
    usdt:$shim:python:line /str(arg0) == \"$PWD/debugged.py\" && str(arg1) == \"outer\"/ { @lines = count(); }" \
    /usr/bin/python3 "$PWD/debugged.py" >traced
  grep '^@' "$trace"
  diff plain traced
  grep -x '@entries\[inner\]: 3' "$trace"
  grep -x '@returns\[outer\]: 3' "$trace"
  grep -x '@entries\[squares\]: 27' "$trace"
  grep -x '@returns\[squares\]: 27' "$trace"
  grep -x '@lines: 6' "$trace"
  raise_semaphores "$PWD"
  SEMAPHORES_TOGGLE=30 LD_PRELOAD=$shim /usr/bin/python3 "$PWD/debugged.py" >toggled 2>toggled.said
  diff plain toggled
}
