# Programs that trace, profile, debug or audit themselves: neither they nor the tracer loses events.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
}

# A bpftrace program that prints the events of marked(), and of len(), which it calls.
marked() {
  cat <<EOF
usdt:$shim:python:function__entry /str(arg1) == "marked"/ { printf("> %s\n", str(arg0)); }
usdt:$shim:python:function__return /str(arg1) == "marked"/ { printf("< %s\n", str(arg0)); }
usdt:$shim:python:line /str(arg1) == "marked"/ { printf(". %s\n", str(arg0)); }
usdt:$shim:python:cfunction__entry /str(arg1) == "len" && str(arg3) == "builtins"/ { printf("( %s %d\n", str(arg0), arg2); }
usdt:$shim:python:cfunction__return /str(arg1) == "len" && str(arg3) == "builtins"/ { printf(") %s %d\n", str(arg0), arg2); }
usdt:$shim:python:gc__start /arg0 == 1/ { printf("gc\n"); }
usdt:$shim:python:gc__done { @=count(); }
usdt:$shim:python:import__find__load__start { printf("import %s\n", str(arg0)); }
usdt:$shim:python:import__find__load__done { printf("import %s\n", str(arg0)); }
usdt:$shim:python:audit /str(arg0) == "open"/ { printf("open\n"); }
EOF
}

@test "debuggers, profilers, coverage, monitoring and audit hooks see what they see without the shim, and the markers all the rest" {
  local python name line file marked
  line=$(grep -n 'n = len("x")' "$top/test/workloads/neighbours.py")
  for python in $(few_pythons | some 2); do
    run_cases "$python" neighbours.py "$(marked)"
    for name in $cases; do
      file=$folder/$name.py marked=$(marked_by "$name")
      echo "$name: $(grep -F "$file" "$trace" | sort | uniq -c | tr '\n' ';')"
      [ "$(grep -Fcx "> $file" "$trace")" = "$marked" ]
      [ "$(grep -Fcx "< $file" "$trace")" = "$marked" ]
      [ "$(grep -Fcx ". $file" "$trace")" = $((2 * marked)) ]
      [ "$(grep -Fcx "( $file ${line%%:*}" "$trace")" = "$marked" ]
      [ "$(grep -Fcx ") $file ${line%%:*}" "$trace")" = "$marked" ]
    done
    [ "$(grep -cx 'import no_such_module' "$trace")" = 2 ]
    # collections_of_its_own() empties gc.callbacks, and collects 500 times after
    [ "$(grep -cx gc "$trace")" -ge 500 ]
  done
}

@test "a recursion that ends in RecursionError is balanced" {
  local python
  for python in $(pythons); do
    bpftrace_while "
      usdt:$shim:python:function__entry /str(arg1) == \"counted\"/ { @entries = count(); }
      usdt:$shim:python:function__return /str(arg1) == \"counted\"/ { @returns = count(); }" \
      env LD_PRELOAD="$shim" "$python" "$top/test/workloads/neighbours.py" recursion >/dev/null
    echo "$python" && cat "$trace"
    [ "$(sed -n 's/^@entries: //p' "$trace")" -gt 900 ]
    [ "$(sed -n 's/^@entries: //p' "$trace")" = "$(sed -n 's/^@returns: //p' "$trace")" ]
  done
}

@test "coverage.py measures the same" {
  /usr/bin/python3 -c 'import coverage' 2>/dev/null || skip "needs python3-coverage"
  cd "$BATS_TEST_TMPDIR"
  local run="cd $PWD && /usr/bin/python3 -m coverage run --branch --include='*/semantics.py' $top/test/workloads/semantics.py &&
    /usr/bin/python3 -m coverage report -m && rm .coverage"
  bash -c "$run" >plain
  LD_PRELOAD=$shim bash -c "$run" >loaded
  LD_PRELOAD=$shim bpftrace_while "$(marked)" bash -c "$run" >traced
  cat plain
  grep -E 'semantics.py +[0-9]+' plain
  diff plain loaded
  diff plain traced
}

@test "events that a C library reports itself fire markers if it passes a code object, and leave the caller its return" {
  local python headers tried=0 program=$BATS_TEST_TMPDIR/fires.py
  cp "$top/test/workloads/fires.py" "$program"
  for python in $(pythons); do
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    grep -qs PyMonitoring_EnterScope "$headers/cpython/monitoring.h" || continue
    tried=1
    gcc -shared -fPIC -I "$headers" -o "$BATS_TEST_TMPDIR/fires.so" "$top/test/workloads/fires.c"
    echo "$python"
    bpftrace_while "$(function_markers && line_markers)" env LD_PRELOAD="$shim" "$python" "$program" >"$BATS_TEST_TMPDIR/printed"
    [ "$(cat "$BATS_TEST_TMPDIR/printed")" = fine ]
    diff - <(awk '/fires\.py|compiled/ && $3 ~ /^(compiled|caller|leaf|fails)$/ { print $1, $3 ($3 == "compiled" ? " " $4 : "") }' "$trace") <<'EVENTS'
> caller
. caller
> compiled 7
. compiled 11
> leaf
. leaf
< leaf
< compiled 7
< caller
> caller
. caller
> leaf
. leaf
< leaf
< caller
> caller
. caller
> leaf
. leaf
< leaf
< caller
> caller
. caller
> compiled 7
. compiled 11
> leaf
. leaf
< leaf
< compiled 7
< caller
> caller
. caller
> compiled 7
. compiled 11
> fails
. fails
< fails
< compiled 7
< caller
EVENTS
  done
  [ "$tried" = 1 ] || skip "needs Python.h of CPython 3.13 or later"
}
