# SystemTap's own python.stp and ours: with either, each event is reported once, or stap reports why none can be.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need_stap
  doctor="semantic error: cannot find executable 'no Python with markers here: run stap-python doctor'"
  points="python.function.entry python.function.return"
}

# Makes $tapset: the tapset that `make` builds, but with SystemTap's own python.stp.  This file and our hint for it
# search for a libpython in $libraries* instead of /usr/lib*: a test can put the shim there, and leaves nothing in this
# machine's /usr/lib.
use_stock_python_stp() {
  local stock=${STAP_VM_ROOT:-}/usr/share/systemtap/tapset/python.stp file
  # where our package has moved it
  [ ! -e "$stock.distrib" ] || stock+=.distrib
  tapset=$BATS_TEST_TMPDIR/stock libraries=$BATS_TEST_TMPDIR/lib
  cp -a "$tapsets/tapset" "$tapset"
  rm "$tapset"/{python,cpython_hint}.stp
  sed "s,/usr/lib,$libraries," "$stock" >"$tapset/python.stp"
  sed "s,/usr/lib,$libraries," "$top/tapset/cpython_hint.stp" >"$tapset/cpython_hint.stp"
  for file in "$tapset"/{python,cpython_hint}.stp; do
    grep -q "process(\"$libraries\*/libpython\*.so\*\").mark(\"function__entry\")" "$file"
  done
}

# Puts the shim into $libraries, as our package puts it into /usr/lib.
shim_in_libraries() {
  mkdir "$libraries"
  ln -s "$shim" "$libraries/libpython-stap.so.0"
}

# Checks that stap reports the functions of call_stack.py just as the interpreter does, and no event without a file
# name, as those of the hint are.
sees_each_event_once() {
  local output=$BATS_TEST_TMPDIR/output expected python
  local program=$top/test/workloads/call_stack.py
  python=$(system_python)
  expect_events "$python" "$program"
  stap_with_tapset -o "$output" -c "env LD_PRELOAD=$shim $python $program" -e '
    probe python.function.entry { if (filename == @1 || filename == "") printf("> %s %d\n", funcname, lineno) }
    probe python.function.return { if (filename == @1 || filename == "") printf("< %s %d\n", funcname, lineno) }' "$program"
  diff "$expected.functions" <(grep -E '^[<>]' "$output")
}

# Checks that with $tapset neither probe point resolves, and that stap names stap-python doctor.
names_doctor() {
  local point
  for point in $points; do
    run stap_with_tapset -p2 -e "probe $point { println(funcname) }"
    echo "$output"
    [ "$status" = 1 ]
    [[ $output == *"$doctor"* ]]
  done
}

@test "ours in force: the shim is probed, and no variable is called unassigned" {
  local point
  for point in $points; do
    run stap -p2 -e "probe $point { println(name, probestr, filename, funcname, lineno, frameptr, modulename) }"
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"process(\"$shim\")"* ]]
    [[ $output != *never-assigned* ]]
  done
}

@test "ours in force, and neither shim nor native marker: the message names stap-python doctor" {
  tapset=$(tapset_with_nothing)
  names_doctor
}

@test "SystemTap's own in force, the shim where it looks: the handler is there once, without a warning" {
  local point
  use_stock_python_stp
  shim_in_libraries
  for point in $points; do
    # what pass 3 writes has the text once for each probe that runs the handler
    run stap_with_tapset -p3 -e "probe $point { println(filename, funcname, lineno); error(\"once\") }"
    [ "$status" = 0 ]
    [ "$(grep -c '"once"' <<<"$output")" = 1 ]
    [[ $output != *never-assigned* ]]
  done
}

@test "SystemTap's own in force, nothing where it looks: the message names stap-python doctor" {
  use_stock_python_stp
  names_doctor
}

@test "live, ours in force: each event comes once" {
  need_live_stap
  tapset=$tapsets/tapset sees_each_event_once
}

@test "live, SystemTap's own in force, the shim where it looks: each event comes once" {
  need_live_stap
  use_stock_python_stp
  shim_in_libraries
  sees_each_event_once
}
