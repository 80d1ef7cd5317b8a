# Programs run as without the shim if they fork while the watcher rearms, or end Python without atexit.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need gcc readelf
  library=$BATS_TEST_TMPDIR/forks.so
  make_library
  raise_semaphores "$BATS_TEST_TMPDIR"
}

# usage: make_library [OPTION...]
make_library() {
  gcc "$@" -shared -fPIC -pthread -o "$library" "$top/test/workloads/forks.c" -ldl
}

# Checks a case of test/workloads/forks.py in each interpreter for which CONDITION is true, with these variables.  The
# markers are enabled and disabled every MS milliseconds, or always enabled if MS is "".
# usage: forks CASE CONDITION MS [VARIABLE=VALUE...]
forks() {
  local python tried=''
  for python in $(few_pythons); do
    "$python" -c "import sys; sys.exit(not ($2))" || continue
    tried=yes
    run env ${3:+SEMAPHORES_TOGGLE=$3} LD_PRELOAD="$shim" "${@:4}" \
      timeout -k 1 $((30 * SLOW)) "$python" "$top/test/workloads/forks.py" "$1" "$library"
    echo "$python $1: $status $output"
    [ "$status $output" = "0 fine" ]
  done
  [ "$tried" ] || skip "needs a CPython with $2"
}

# Not in free-threaded builds, where these two programs hang without the shim, too.  The second always hangs, because
# os.fork() waits for threads that wait for its handler's lock; the first does if a thread calls gc.collect() repeatedly.
# bats test_tags=slow
@test "no thread gets the GIL in the middle of a fork by C, as its handlers may hold what that thread wants" {
  forks in_c_with_a_lock '"free-threading" not in sys.version' ''
}

# bats test_tags=slow
@test "no thread gets the GIL in the middle of os.fork()" {
  forks with_a_lock 'sys.version_info >= (3, 7) and "free-threading" not in sys.version' ''
}

# bats test_tags=slow
@test "nor in one while other threads have hooks set, from 3.12 on" {
  forks while_hooks_are_set 'sys.version_info >= (3, 12) and "free-threading" not in sys.version' 100
}

# bats test_tags=slow
@test "the child of a fork by C beside a thread that sleeps runs on, though the shim asks for the GIL" {
  forks in_c_beside_a_thread_that_sleeps True 30
}

# bats test_tags=slow
@test "nor does the shim ask for the GIL of a thread that calls Python functions" {
  forks in_c_after_calls True ''
}

@test "nor does it while that thread has no processor for some time" {
  need_time
  forks in_c_after_calls_that_come_late True ''
}

# bats test_tags=slow
@test "the child of a fork by C has no lock of pending calls that the shim's thread held, from 3.12 on" {
  forks in_c_beside_a_thread_that_sleeps 'sys.version_info >= (3, 12)' 30 \
    LD_PRELOAD="$library $shim" SLOW_SEM_POST=1
}

# bats test_tags=slow
@test "the child of os.fork() waits for no lock that the shim's thread held as it came for the GIL, up to 3.11" {
  forks after_a_sleep '(3, 7) <= sys.version_info < (3, 12)' 70 LD_PRELOAD="$library $shim" SLOW_SEM_POST=1
}

# bats test_tags=slow
@test "the child of os.fork() beside a thread that has hooks set in a pending call makes such calls, and ends, from 3.13 on" {
  forks beside_a_thread_that_arms 'sys.version_info >= (3, 13)' 60
}

# bats test_tags=slow
@test "the shim's thread is back after os.fork() beside a thread that has hooks set in a pending call, from 3.12 on" {
  forks back_beside_a_thread_that_arms 'sys.version_info >= (3, 12)' 20
}

# In a CPython that is a library: the program's own functions come before those of any library.
@test "a long handler after a fork runs on while the shim looks whether the fork is done, from 3.12 on" {
  make_library -DCOUNT_WALKS
  forks with_a_long_handler \
    'sys.version_info >= (3, 12) and __import__("sysconfig").get_config_var("Py_ENABLE_SHARED")' '' LD_PRELOAD="$library $shim"
}

@test "the child of os.fork() frees the variables of the function that forked" {
  local python
  for python in $( # 3.6 starts the watcher in a way of its own
    pythons
  ); do
    echo "$python"
    # without a tracer
    [ "$(LD_PRELOAD=${shim##* } "$python" "$top/test/workloads/forks.py" with_a_local "$library")" = fine ]
  done
}

# bats test_tags=slow
@test "a program that takes the shim's function out of atexit ends as without it" {
  forks without_functions_at_exit True ''
}
