# Faults made on purpose: their list is right, and one that no test sees is reported.  "make check-mutants"
# tries them all.
#
# SPDX-License-Identifier: MIT

bats_require_minimum_version 1.5.0
load ../helper

# A list with one mutant, of the lines on stdin.
one() {
  export MUTANTS=$BATS_TEST_TMPDIR/list
  cat >"$MUTANTS"
}

# The list is refused with this text.
refused() {
  one
  run -2 "$top/test/mutants/run" --check
  echo "$output"
  [[ $output == "test/mutants/run: "*"$1"* ]]
}

@test "each mutant still has its place in a file, once, and a test that is to kill it" {
  run -0 "$top/test/mutants/run" --check
  [[ $output =~ ^[1-9][0-9]+\ mutants$ ]]
}

@test "a mutant that has lost its place or its test is named" {
  refused "lost: probes/hook_gc.c doesn't have the line" <<'LIST'
mutant: lost
file: probes/hook_gc.c
test: host/markers.bats gc
-nowhere
+anywhere
LIST
  refused 'twice: probes/hook_gc.c has the line(s) that it changes more than once' <<'LIST'
mutant: twice
file: probes/hook_gc.c
test: host/markers.bats gc
-    py.PyErr_Clear();
+    /* none */
LIST
  refused 'untested: host/markers.bats has no test "nothing of the kind"' <<'LIST'
mutant: untested
file: probes/python.d
test: host/markers.bats nothing of the kind
-provider python {
+provider snake {
LIST
  refused 'gone: there is no probes/gone.c' <<'LIST'
mutant: gone
file: probes/gone.c
-x
+y
LIST
  run -2 "$top/test/mutants/run" unknown
  [[ $output == *'there is no mutant "unknown"'* ]]
}

@test "what a test sees is killed, what none sees lives, and the checkout stays as it is" {
  need_time "make check-mutants"
  need gcc
  local before
  before=$(md5sum "$top/tapset/python_target.stp" "$top/build/python_objects.stp")
  one <<'LIST'
mutant: seen
file: tapset/python_target.stp
test: host/library.bats the calls, sleeps and stacks
-    STAP_RETVALUE = !_stp_target;
+    STAP_RETVALUE = 0;

mutant: unseen
file: tapset/python_target.stp
test: host/library.bats the calls, sleeps and stacks
-    int levels = 128;
+    int levels = 127;

mutant: absent
file: tapset/python_target.stp
test: host/library.bats the calls, sleeps and stacks
python: 3.1
-    int levels = 128;
+    int levels = 127;
LIST
  run -1 timeout -k 5 250 "$top/test/mutants/run"
  echo "$output"
  [[ ${lines[0]} == *"1 seen "*" s  killed" ]]
  [[ ${lines[1]} == *"2 unseen "*" s  lived" ]]
  [[ ${lines[2]} == *"3 absent "*" s  skipped: needs CPython 3.1" ]]
  [ "${lines[3]}" = "1 killed, 1 lived, 1 skipped" ]
  [ "$before" = "$(md5sum "$top/tapset/python_target.stp" "$top/build/python_objects.stp")" ]
}
