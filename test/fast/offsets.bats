# CPython's debug offsets (3.13 and later), by which the shim fills in its page.
#
# SPDX-License-Identifier: MIT

load ../lib/helper
load ../lib/launcher

setup() {
  launcher_setup
  need gcc
  pythons=$(pythons | while read -r python; do
    ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 13))' || echo "$python"
  done)
  [ "$pythons" ] || skip "needs CPython 3.13 or later"
  falsified=$BATS_TEST_TMPDIR/falsified.so
  gcc -D_GNU_SOURCE -shared -fPIC -I "$top/probes" -o "$falsified" "$top/test/workloads/falsified.c"
}

# bats test_tags=slow
@test "of debug offsets that are wrong in any way nothing wrong is read, and what is unknown is said" {
  local python
  raise_semaphores "$BATS_TEST_TMPDIR" function__entry
  for python in $pythons; do
    echo "$python"
    # shellcheck disable=SC2086 # a path each
    run "$python" "$top/test/workloads/falsified.py" $shim "$falsified"
    echo "$output"
    [ "$output" = "as expected" ]
  done
}

@test "list says why a process has no stacks, and nothing of the kind where it has them" {
  local python said="    no stack traces: CPython's debug offsets have another interpreter_frame.previous"
  for python in $pythons; do
    echo "$python"
    FALSIFIED="interpreter_frame.previous +8" LD_PRELOAD="$shim $falsified" "$python" -c 'import time; time.sleep(600)' &
    programs+=($!)
    wait_for thread_has "$!" comm python-stap
    run launcher list "$!"
    echo "$output"
    [ "$status" = 0 ]
    [ "$(grep -A1 '^  the shim: active, ' <<<"$output" | tail -n 1)" = "$said" ]
    LD_PRELOAD=$shim "$python" -c 'import time; time.sleep(600)' &
    programs+=($!)
    wait_for thread_has "$!" comm python-stap
    run launcher list "$!"
    echo "$output"
    [ "$(grep -A1 '^  the shim: active, ' <<<"$output" | grep -c 'no stack traces')" = 0 ]
  done
}
