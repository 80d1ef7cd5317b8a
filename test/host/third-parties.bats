# Debuggers and notebooks: their results are the same while tracers attach and detach, and the markers fire for the code
# that runs in them.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

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

@test "of a gevent service under gunicorn the markers and the sums have every call, whatever greenlets it switches to" {
  local count
  /usr/bin/python3 -c 'import gevent, gunicorn' 2>/dev/null || skip "needs python3-gevent and gunicorn"
  cp "$top/test/workloads/greenlets.py" "$BATS_TEST_TMPDIR"
  LD_PRELOAD=$shim bpftrace_while "
    usdt:$shim:python:function__entry /str(arg0) == \"$BATS_TEST_TMPDIR/greenlets.py\"/ { @entries[str(arg1)] = count(); }
    usdt:$shim:python:function__return /str(arg0) == \"$BATS_TEST_TMPDIR/greenlets.py\"/ { @returns[str(arg1)] = count(); }
    usdt:$shim:python:function__count /str(arg0) == \"$BATS_TEST_TMPDIR/greenlets.py\"/ { @counted[str(arg1)] = sum(arg4); }
    usdt:$shim:python:function__summary /str(arg0) == \"$BATS_TEST_TMPDIR/greenlets.py\"/ { @summed[str(arg1)] = sum(arg4); @ns[str(arg1)] = sum(arg5); }" \
    /usr/bin/python3 "$BATS_TEST_TMPDIR/greenlets.py" >"$BATS_TEST_TMPDIR/answers"
  [ "$(tr '\n' ' ' <"$BATS_TEST_TMPDIR/answers")" = '0 10 10 10 10 10 ' ]
  grep '^@' "$trace"
  for count in entries returns counted summed; do
    grep -x "@$count\[app\]: 6" "$trace"
    grep -x "@$count\[requested\]: 6" "$trace"
    grep -x "@$count\[step\]: 50" "$trace"
    grep -x "@$count\[leaf\]: 100" "$trace"
  done
  # at least ten steps after each other, twice, and none is counted more than once for the greenlets that are in it
  [ "$(sed -n 's/^@ns\[step\]: //p' "$trace")" -ge 200000000 ]
}
