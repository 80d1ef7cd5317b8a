# Faults made on purpose: each line to change and each test still exists.  "make check-mutants" makes the faults.
#
# SPDX-License-Identifier: MIT

bats_require_minimum_version 1.5.0
load ../lib/helper

# Checks that a list of the lines on stdin is refused with this text.
refused() {
  export MUTANTS=$BATS_TEST_TMPDIR/list
  cat >"$MUTANTS"
  run -2 "$top/test/long/mutants/run" --check
  echo "$output"
  [[ $output == "test/long/mutants/run: "*"$1"* ]]
}

@test "each mutant still has its place in a file, once, and a test that is to kill it" {
  run -0 "$top/test/long/mutants/run" --check
  [[ $output =~ ^[1-9][0-9]+\ mutants$ ]]
}

@test "a mutant that has lost its place or its test is named" {
  refused "lost: probes/shim/hooks/gc.c doesn't have the line" <<'LIST'
mutant: lost
file: probes/shim/hooks/gc.c
test: host/markers.bats gc
-nowhere
+anywhere
LIST
  refused 'twice: probes/shim/hooks/gc.c has the line(s) that it changes more than once' <<'LIST'
mutant: twice
file: probes/shim/hooks/gc.c
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
  refused 'unseen: it names no test' <<'LIST'
mutant: unseen
file: probes/python.d
-provider python {
+provider snake {
LIST
  refused 'gone: there is no probes/gone.c' <<'LIST'
mutant: gone
file: probes/gone.c
-x
+y
LIST
  run -2 "$top/test/long/mutants/run" unknown
  [[ $output == *'there is no mutant "unknown"'* ]]
}
