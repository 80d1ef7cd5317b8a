# What programs do seldom, while a tracer comes or goes at the worst moment: they go on.
#
# SPDX-License-Identifier: MIT

load helper

# In each interpreter that fulfils a condition, while the markers of a regular expression are wanted.
# usage: goes_on CASE CONDITION MARKERS
goes_on() {
  local python
  need gcc readelf
  make_semaphores "$BATS_TEST_TMPDIR" "$3"
  for python in $(few_pythons); do
    "$python" -c "import sys; sys.exit(not ($2))" || continue
    run env LD_PRELOAD="$shim" timeout -k 1 30 "$python" "$top/test/workloads/seldom.py" "$1"
    echo "$python $1: $status $output"
    [ "$status $output" = "0 fine" ]
  done
}

own_evaluator() {
  need gcc
  export EVALUATOR=$BATS_TEST_TMPDIR/evaluator.so
  gcc -shared -fPIC -o "$EVALUATOR" "$top/test/workloads/evaluator.c"
}

@test "the child of a fork by C goes on that came while the shim waited for the GIL" {
  goes_on forks_in_c_while_asked 'sys.version_info < (3, 12)' function__entry
}

@test "the child of a fork that the C library tells nobody of goes on, and forks" {
  getconf GNU_LIBC_VERSION >/dev/null || skip "needs glibc"
  python3 -c 'import ctypes; ctypes.CDLL(None)._Fork' || skip "needs _Fork(): glibc 2.34"
  goes_on forks_without_handlers True function__entry
}

@test "the child of a fork by C leaves the stacks of threads alone that are not there" {
  goes_on forks_in_c_beside_threads True function__return
}

@test "an evaluator of the program's may be put in front of ours again and again" {
  own_evaluator
  goes_on puts_its_evaluator_in_front_again 'sys.version_info >= (3, 9)' function__entry
}

@test "an evaluator of the program's that is in front stays there, whatever the depth" {
  own_evaluator
  goes_on has_its_evaluator_in_front_of_the_deep '(3, 9) <= sys.version_info < (3, 12)' function__entry
}

@test "a subinterpreter in which the index of code objects is another's goes on" {
  local markers
  for markers in cfunction__entry ${EVERY:+'function__.*'}; do
    goes_on shares_the_index_of_code_objects '(3, 8) <= sys.version_info < (3, 12)' "$markers"
  done
}

@test "a list of gc.callbacks that is the program's own may go" {
  local python
  need gcc readelf
  make_semaphores "$BATS_TEST_TMPDIR" gc__start
  for python in $(few_pythons); do
    run timeout -k 1 30 "$python" "$top/test/workloads/seldom.py" has_a_list_of_gc_callbacks_that_goes "$shim"
    echo "$python: $status $output"
    [ "$status $output" = "0 fine" ]
  done
}

@test "every callback of the program's hears of a collection in which the tracer leaves" {
  goes_on loses_its_tracer_in_a_gc_callback True gc__start
}

@test "what an audit hook of a subinterpreter raises stays there" {
  goes_on has_a_subinterpreter_that_refuses_once '(3, 12) <= sys.version_info < (3, 13)' function__entry
}
