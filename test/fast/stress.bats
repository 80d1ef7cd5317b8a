# The parts of "make check-stress" that need no tracer, shortened; it runs longer, in all interpreters.  Parts with
# tracers: test/host/stress-tracers.bats.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

stress() {
  ONLY_PYTHONS=$(system_python) STRESS=2 timeout -k 5 $((200 * SLOW)) "$top/test/long/stress/run" "$@"
}

# Sets $failing to what is preloaded before the shim: it raises the semaphores of the markers that match $1, or of all, and has
# calls of the shim's fail (FAIL).
make_failing() {
  make_semaphores "$BATS_TEST_TMPDIR" "$@"
  gcc -D_GNU_SOURCE -shared -fPIC -pthread -o "$BATS_TEST_TMPDIR/fails.so" "$top/test/long/stress/fails.c" -ldl
  failing="$BATS_TEST_TMPDIR/fails.so $BATS_TEST_TMPDIR/semaphores.so"
}

# The threads have asked for the GIL when Python ends, and next look half a second after that.  CPython has freed the
# interpreter by then, to the kernel or filled with 0xDD, which they see if the process still lives.
# bats test_tags=slow
@test "a program that ends slowly among daemon threads ends as without CPython 3.10's own crash" {
  need gcc
  local python end found=
  cat >"$BATS_TEST_TMPDIR/slow.c" <<'C'
#include <unistd.h>
__attribute__((destructor)) static void end(void)
{
    usleep(700000);
}
C
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/slow.so" "$BATS_TEST_TMPDIR/slow.c"
  cat >"$BATS_TEST_TMPDIR/daemons.py" <<'PY'
import atexit, ctypes, sys, threading, time

def works():
    while True:
        pass

sys.setswitchinterval(0.5)
for _ in range(4):
    threading.Thread(target=works, daemon=True).start()
atexit.register(ctypes.PyDLL(None).usleep, 600000)  # with the GIL
print("ended")
PY
  for python in $(pythons); do
    [ "$(version_of "$python")" = 3.10 ] || continue
    found=yes
    for end in MALLOC_MMAP_THRESHOLD_=16384 PYTHONMALLOC=debug PYTHONTRACEMALLOC=1; do
      run env "$end" LD_PRELOAD="$BATS_TEST_TMPDIR/slow.so $shim" \
        timeout -k 1 $((60 * SLOW)) "$python" "$BATS_TEST_TMPDIR/daemons.py"
      echo "$python $end: $status $output"
      [ "$status" = 0 ]
      [ "$output" = ended ]
    done
  done
  [ -n "$found" ] || skip "needs CPython 3.10"
}

# bats test_tags=slow
@test "whatever fails of what the shim calls, the program goes on" {
  need gcc
  run stress failures
  echo "$output"
  [ "$status" = 0 ]
}

# bats test_tags=slow
@test "a program in which nothing can be kept with code objects goes on when tracers come and go" {
  need gcc
  local python
  make_failing
  cat >"$BATS_TEST_TMPDIR/loops.py" <<'PY'
import threading, time


def loops():
    end = time.time() + 1.5
    while time.time() < end:
        time.sleep(0.001)


def calls():
    loops()


thread = threading.Thread(target=calls)
thread.start()
calls()
thread.join()
print("ended")
PY
  for python in $(pythons); do
    run env FAIL=PyUnicode_InternFromString:-0 SEMAPHORES_TOGGLE=300 PYTHON_STAP_DEBUG=1 \
      LD_PRELOAD="$failing $shim" \
      timeout -k 1 $((20 * SLOW)) "$python" "$BATS_TEST_TMPDIR/loops.py"
    echo "$python: $status $output"
    [ "$status" = 0 ]
    [[ $output == *"can't be installed here"*ended* ]]
  done
}

# bats test_tags=slow
@test "a thread whose open calls outgrow their memory ends well, whenever no more can be kept for its end" {
  need gcc
  local python i count
  make_failing 'function__summary|function__entry'
  cat >"$BATS_TEST_TMPDIR/deep.py" <<'PY'
import threading


def down(n):
    return down(n - 1) if n else print("down")


thread = threading.Thread(target=down, args=(900,))
thread.start()
thread.join()
PY
  # usage: deep PYTHON VARIABLE=VALUE
  deep() {
    run timeout -k 1 $((20 * SLOW)) env "$2" LD_PRELOAD="$failing $shim" \
      "$1" "$BATS_TEST_TMPDIR/deep.py"
    echo "$*: $status $output"
    [ "$status" = 0 ]
    [ "$output" = down ]
  }
  for python in $(pythons); do
    # once for each thread, and for each time that its calls outgrew their memory
    rm -f "$BATS_TEST_TMPDIR/calls"
    deep "$python" FAIL_COUNT="$BATS_TEST_TMPDIR/calls"
    count=$(awk '$1 == "pthread_setspecific" { print $2 }' "$BATS_TEST_TMPDIR/calls")
    [ "$count" -ge 5 ]
    for ((i = 1; i <= count; i++)); do
      deep "$python" FAIL="pthread_setspecific:-$i"
    done
  done
}
