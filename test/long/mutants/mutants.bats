# test/long/mutants/run: a fault that a test sees, and one that no test sees.
#
# SPDX-License-Identifier: MIT

bats_require_minimum_version 1.5.0
load ../../lib/helper

@test "what a test sees is killed, what none sees lives, and the checkout stays as it is" {
  need gcc
  local before
  before=$(md5sum "$top/tapset/python_target.stp" "$top/build/python_objects.stp")
  export MUTANTS=$BATS_TEST_TMPDIR/list
  cat >"$MUTANTS" <<'LIST'
mutant: seen
file: tapset/python_target.stp
test: fast/tapset-c.bats the calls, sleeps and stacks
-    STAP_RETVALUE = !_stp_target && !python_targets_count;
+    STAP_RETVALUE = 0;

mutant: unseen
file: tapset/python_target.stp
test: fast/tapset-c.bats the calls, sleeps and stacks
-    int levels = 128;
+    int levels = 127;

mutant: absent
file: tapset/python_target.stp
test: fast/tapset-c.bats the calls, sleeps and stacks
python: 3.1
-    int levels = 128;
+    int levels = 127;
LIST
  run -1 timeout -k 5 250 "$top/test/long/mutants/run"
  echo "$output"
  [[ ${lines[0]} == *"1 seen "*" s  killed" ]]
  [[ ${lines[1]} == *"2 unseen "*" s  lived" ]]
  [[ ${lines[2]} == *"3 absent "*" s  skipped: needs CPython 3.1" ]]
  [ "${lines[3]}" = "1 killed, 1 lived, 1 skipped" ]
  [ "$before" = "$(md5sum "$top/tapset/python_target.stp" "$top/build/python_objects.stp")" ]
}
